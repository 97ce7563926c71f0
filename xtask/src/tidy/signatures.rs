//! No function takes a tuple, and no type alias names one: values that belong together are a named type. A
//! tuple in an `Option` or a list counts, too, except for lists of pairs, which are the entries of a map.
//! Closures and tests may take tuples.

use std::collections::BTreeSet;

use super::{SourceTree, Violation};

const RULE: &str = "signatures";

/// Functions that may take a tuple, as `path: name`.
const ALLOWED: [&str; 0] = [];

/// Checks every function outside tests.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let files: Vec<_> = super::production_code(tree).collect();
    let names = files.iter().flat_map(|(_, text)| tuple_aliases(text)).map(|alias| alias.name);
    let aliases: BTreeSet<&str> = names.collect();
    for (path, text) in &files {
        for TupleAlias { name, line } in tuple_aliases(text) {
            let message = format!("`{name}` is an alias of a tuple: define a struct");
            violations.push(Violation { path: (*path).to_owned(), line, rule: RULE, message });
        }
        for function in functions(text) {
            let is_allowed = ALLOWED.contains(&format!("{path}: {}", function.name).as_str());
            if !is_allowed && function.parameters.iter().any(|parameter| is_tuple(parameter, &aliases)) {
                let message =
                    format!("`{}` takes a tuple: pass separate parameters, or define a type", function.name);
                violations.push(Violation {
                    path: (*path).to_owned(),
                    line: function.line,
                    rule: RULE,
                    message,
                });
            }
        }
    }
    violations
}

/// An alias of a tuple: `type Pair = (u8, u8);`.
struct TupleAlias<'t> {
    name: &'t str,
    line: usize,
}

fn tuple_aliases(text: &str) -> impl Iterator<Item = TupleAlias<'_>> {
    text.match_indices("type ").filter_map(|(start, word)| {
        if text[..start].chars().next_back().is_some_and(|before| !before.is_whitespace()) {
            return None;
        }
        let statement = text[start + word.len()..].split(';').next()?;
        let (left, right) = statement.split_once(" = ")?;
        let name = left.split('<').next()?;
        let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        let line = text[..start].matches('\n').count() + 1;
        (is_name && tuple_length(right).is_some()).then_some(TupleAlias { name, line })
    })
}

struct Function<'t> {
    name: &'t str,
    line: usize,
    parameters: Vec<&'t str>,
}

fn functions(text: &str) -> Vec<Function<'_>> {
    let mut functions = Vec::new();
    for (start, _) in text.match_indices("fn ") {
        let before = text[..start].chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &text[start + 3..];
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let Some(list) = parameter_list(rest).filter(|_| !name.is_empty()) else { continue };
        let line = text[..start].matches('\n').count() + 1;
        functions.push(Function { name, line, parameters: split_parameters(list) });
    }
    functions
}

/// The parameter list of a function: the text between the parentheses after its generics.
fn parameter_list(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    let mut start = None;
    let mut last = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '(' if depth == 0 && start.is_none() => {
                start = Some(at + 1);
                depth = 1;
            }
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if last == '-' || last == '=' => {}
            ')' | ']' | '}' | '>' => {
                depth = depth.checked_sub(1)?;
                if let (0, Some(start)) = (depth, start) {
                    return Some(&text[start..at]);
                }
            }
            letter if depth == 0 && !letter.is_whitespace() => return None,
            _ => {}
        }
        last = letter;
    }
    None
}

/// Splits a list at its top-level commas.
fn split_parameters(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start, mut last) = (Vec::new(), 0usize, 0, ' ');
    for (at, letter) in list.char_indices() {
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if last == '-' || last == '=' => {}
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        last = letter;
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a parameter is a tuple, by its pattern or by its type. Parentheses around `dyn` and `impl` are not
/// tuples.
fn is_tuple(parameter: &str, aliases: &BTreeSet<&str>) -> bool {
    let (type_, has_pattern) = match parameter.strip_prefix('(') {
        Some(_) => (parameter.rsplit_once("):").map_or("", |(_, type_)| type_), true),
        None => (parameter.split_once(':').map_or("", |(_, type_)| type_), false),
    };
    holds_tuple(type_, aliases) || has_pattern && without_references(type_) != "()"
}

/// Whether a type is a tuple, or an `Option` or a list of tuples that are not pairs.
fn holds_tuple(type_: &str, aliases: &BTreeSet<&str>) -> bool {
    let type_ = without_references(type_);
    if let Some(inner) = type_.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')) {
        return holds_tuple(inner, aliases);
    }
    if let Some(item) = list_item(type_) {
        return tuple_length(item) != Some(2) && holds_tuple(item, aliases);
    }
    let name = type_.split('<').next().unwrap_or(type_);
    tuple_length(type_).is_some() || aliases.contains(name)
}

fn without_references(type_: &str) -> &str {
    let mut type_ = type_.trim();
    while let Some(inner) = type_.strip_prefix('&') {
        let inner = inner.trim_start();
        let inner = if inner.starts_with('\'') {
            inner.split_once(' ').map_or("", |(_, inner)| inner)
        } else {
            inner
        };
        type_ = inner.strip_prefix("mut ").unwrap_or(inner).trim_start();
    }
    type_
}

/// The type of the items of a list: `Vec<T>`, `[T]` or `[T; N]`.
fn list_item(type_: &str) -> Option<&str> {
    if let Some(rest) = type_.strip_prefix("Vec<") {
        return rest.strip_suffix('>');
    }
    let inner = type_.strip_prefix('[')?.strip_suffix(']')?;
    let length = inner.rsplit_once("; ").filter(|(_, length)| !length.contains([')', ']', '>']));
    Some(length.map_or(inner, |(item, _)| item))
}

/// The number of values of a tuple; `None` for other types.
fn tuple_length(type_: &str) -> Option<usize> {
    let items = type_.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(split_parameters(items).len()).filter(|length| *length > 1)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn a_tuple_is_found_by_its_pattern_and_by_its_type() {
        let text = "//! A file.\nfn a((x, y): (u8, u8)) {}\nfn b<T: Fn() -> u8>(&self, pair: &'a mut (u8, Vec<u8>)) {}\n\
                    fn c(\n    one: u8,\n    (x, y): Pair,\n) {}\n";
        let found = |line, name: &str| {
            format!(
                "crates/x/src/a.rs:{line}: signatures: `{name}` takes a tuple: pass separate parameters, or define a type"
            )
        };
        let found = [found(2, "a"), found(3, "b"), found(4, "c")];
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        expect(check, &SourceTree::of_files(&[("crates/x/src/a.rs", text)]), &found);
        expect(
            check,
            &SourceTree::of_files(&[("crates/x/tests/a.rs", text), ("crates/x/src/a/tests.rs", text)]),
            &[],
        );
    }

    #[test]
    fn an_alias_of_a_tuple_is_a_tuple() {
        let alias = "//! A file.\npub type Pair<'a, T> = (&'a T, T);\ntype Unit = ();\n";
        let text = "//! A file.\nfn a(pair: &Pair<'_, u8>) {}\nfn b(unit: Unit, pairs: &[Pair<'_, u8>]) {}\n";
        let tree = SourceTree::of_files(&[("crates/x/src/a.rs", alias), ("crates/y/src/b.rs", text)]);
        let takes = |line, name: &str| {
            format!(
                "crates/y/src/b.rs:{line}: signatures: `{name}` takes a tuple: pass separate parameters, or define a type"
            )
        };
        let alias = "crates/x/src/a.rs:2: signatures: `Pair` is an alias of a tuple: define a struct";
        expect(check, &tree, &[alias, &takes(2, "a"), &takes(3, "b")]);
    }

    #[test]
    fn a_tuple_in_an_option_or_a_list_is_found_unless_it_is_an_entry_of_a_map() {
        let text = "//! A file.\nfn a(at: Option<(u8, Vec<u8>)>) {}\nfn b(all: &[Option<(u8, u8)>]) {}\n\
                    fn c(all: Vec<(u8, u8, u8)>) {}\nfn d(all: &'a mut [(u8, u8, u8); 3]) {}\n\
                    fn e(map: &[(u8, u8)], entries: Vec<(u8, Option<u8>)>, one: Option<&[u8; 2]>) {}\n";
        let found = |line, name: &str| {
            format!(
                "crates/x/src/a.rs:{line}: signatures: `{name}` takes a tuple: pass separate parameters, or define a type"
            )
        };
        let found = [found(2, "a"), found(3, "b"), found(4, "c"), found(5, "d")];
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        expect(check, &SourceTree::of_files(&[("crates/x/src/a.rs", text)]), &found);
    }

    #[test]
    fn other_parameters_pass() {
        let text = "//! A file: fn a((x, y): (u8, u8)).\nfn a(told: &(dyn Fn(u8, u8) -> (u8, u8) + Sync), (): &(), list: &[(u8, u8)]) -> (u8, u8) {}\n\
                    fn b(Pair { x, y }: Pair, map: Map<(u8, u8), u8>) { let f = |(x, y): (u8, u8)| x; }\n\
                    type F = fn(u8) -> u8;\n#[cfg(test)]\nmod tests { fn c((x, y): (u8, u8)) {} }\n";
        expect(check, &SourceTree::of_files(&[("crates/x/src/a.rs", text)]), &[]);
    }
}

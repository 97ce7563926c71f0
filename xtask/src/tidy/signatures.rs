//! No function takes a tuple, not even by an alias: values that belong together are a named type. Closures
//! and tests may take tuples.

use std::collections::BTreeSet;

use super::{SourceTree, Violation};

const RULE: &str = "signatures";

/// Functions that may take a tuple, as `path: name`.
const ALLOWED: [&str; 0] = [];

/// Checks every function outside tests.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let files: Vec<_> = super::production_code(tree).collect();
    let aliases: BTreeSet<&str> = files.iter().flat_map(|(_, text)| tuple_aliases(text)).collect();
    for (path, text) in &files {
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

/// The names of aliases for tuples: `type Pair = (u8, u8);`.
fn tuple_aliases(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').filter_map(|statement| {
        let (left, right) = statement.rsplit_once(" = ")?;
        let (_, name) = left.rsplit_once("type ")?;
        let name = name.split('<').next()?;
        let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        (is_name && is_tuple_type(right)).then_some(name)
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
    let type_ = match parameter.strip_prefix('(') {
        Some(_) => parameter.rsplit_once("):").map_or("", |(_, type_)| type_),
        None => parameter.split_once(':').map_or("", |(_, type_)| type_),
    };
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
    let name = type_.split('<').next().unwrap_or(type_);
    is_tuple_type(type_) || aliases.contains(name) || parameter.starts_with('(') && type_ != "()"
}

fn is_tuple_type(type_: &str) -> bool {
    let items = type_.trim().strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    items.is_some_and(|items| split_parameters(items).len() > 1)
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
        let found =
            "crates/y/src/b.rs:2: signatures: `a` takes a tuple: pass separate parameters, or define a type";
        expect(check, &tree, &[found]);
    }

    #[test]
    fn other_parameters_pass() {
        let text = "//! A file: fn a((x, y): (u8, u8)).\nfn a(told: &(dyn Fn(u8, u8) -> (u8, u8) + Sync), (): &(), list: &[(u8, u8)]) -> (u8, u8) {}\n\
                    fn b(Pair { x, y }: Pair, map: Map<(u8, u8), u8>) { let f = |(x, y): (u8, u8)| x; }\n\
                    type F = fn(u8) -> u8;\n#[cfg(test)]\nmod tests { fn c((x, y): (u8, u8)) {} }\n";
        expect(check, &SourceTree::of_files(&[("crates/x/src/a.rs", text)]), &[]);
    }
}

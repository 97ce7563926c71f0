//! No function takes a tuple, no field holds one, and no type alias names one: values that belong together
//! are a named type. A tuple inside another type also counts, except in a list of pairs that begin with a
//! text, which are the entries of a map in order. A compound key of a map or set may be a tuple. Closures and
//! tests may take tuples.

use std::collections::BTreeSet;

use super::{SourceTree, Violation};

const RULE: &str = "signatures";

/// Functions and fields that may hold a tuple, as `path: name`, grouped by the reason.
const ALLOWED: [&str; 27] = [
    // Entries of a map in order, whose keys are not texts.
    "crates/template/src/filters/json.rs: ordered",
    "crates/template/src/filters/lists.rs: sorted",
    "crates/template/src/interpreter/evaluation.rs: comparisons",
    "crates/template/src/interpreter/evaluation.rs: dict_literal",
    "crates/template/src/value/dict.rs: entries",
    "crates/validate/src/schema/applicators.rs: matching",
    // Entries of a cache or a hash table, private to one module. The first part is used only for the lookup.
    "crates/bundle/src/intern.rs: entries",
    "crates/graphql/src/cache.rs: entries",
    "crates/graphql/src/execute/key_offsets.rs: last",
    "crates/graphql/src/execute/key_offsets.rs: offsets",
    "crates/runtime/src/declared_cache.rs: result",
    "crates/yaml/src/yaml11_compat.rs: last",
    // Lists of values with their positions, private to one module.
    "crates/config/src/read.rs: walk",
    "crates/inventory/src/items.rs: live",
    "crates/validate/src/rules/unique.rs: places",
    "crates/validate/src/schema/compile.rs: pending",
    "crates/yaml/src/fast/compare.rs: check_compatible",
    // Two values that are read together by the function that stores them, private to one module.
    "crates/bundle/src/build/resources.rs: cache_entries",
    "crates/bundle/src/build/schemas.rs: files",
    "crates/bundle/src/repo/directory.rs: folder",
    "crates/daemon/src/watcher.rs: events",
    "crates/graphql/src/document/rules/overlap.rs: shared",
    "crates/graphql/src/plan.rs: arguments",
    "crates/runtime/src/guard/ledger.rs: states",
    "crates/runtime/src/run/apply.rs: results",
    "crates/template/src/iterators.rs: recursion",
    "crates/template/src/jsonpath.rs: test",
];

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
        for field in fields(text) {
            let is_allowed = ALLOWED.contains(&format!("{path}: {}", field.name).as_str());
            if !is_allowed && holds_tuple(field.type_, &aliases) {
                let message = format!("the field `{}` holds a tuple: name the pair", field.name);
                violations.push(Violation {
                    path: (*path).to_owned(),
                    line: field.line,
                    rule: RULE,
                    message,
                });
            }
        }
        for function in functions(text) {
            let is_allowed = ALLOWED.contains(&format!("{path}: {}", function.name).as_str());
            if !is_allowed && function.parameters.iter().any(|parameter| is_tuple(parameter, &aliases)) {
                let message =
                    format!("`{}` takes a tuple: name the pair, or pass separate parameters", function.name);
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

/// A named field of a struct or of a variant.
struct Field<'t> {
    name: &'t str,
    line: usize,
    type_: &'t str,
}

/// The fields of all structs and enums. They are found by the layout of rustfmt: a definition begins at the
/// margin and ends with a brace at the margin, and each field begins a new line.
fn fields(text: &str) -> Vec<Field<'_>> {
    let (mut fields, mut is_inside) = (Vec::new(), false);
    for (line, content) in (1..).zip(text.lines()) {
        let start = content.trim_start();
        if content == "}" {
            is_inside = false;
        } else if start.len() == content.len() && !content.is_empty() {
            let words: Vec<&str> = content.split_whitespace().take(3).collect();
            is_inside = words.iter().any(|word| matches!(*word, "struct" | "enum")) && content.ends_with('{');
        } else if is_inside && let Some((name, type_)) = start.trim_end_matches(',').split_once(": ") {
            let name = name.rsplit(' ').next().unwrap_or(name);
            if name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
                fields.push(Field { name, line, type_ });
            }
        }
    }
    fields
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

/// Whether a type is a tuple or contains one. The parameters and results of functions do not count.
fn holds_tuple(type_: &str, aliases: &BTreeSet<&str>) -> bool {
    let type_ = without_references(type_);
    if let Some(item) = list_item(type_) {
        return !is_map_entry(item) && holds_tuple(item, aliases);
    }
    let name = type_.split('<').next().unwrap_or(type_);
    if tuple_length(type_).is_some() || aliases.contains(name) {
        return true;
    }
    if ["fn(", "Fn(", "FnMut(", "FnOnce(", "dyn ", "impl "].iter().any(|function| type_.contains(function)) {
        return false;
    }
    let (outer, arguments) = type_.split_once('<').unwrap_or((type_, ""));
    let has_key = ["BTreeMap", "BTreeSet", "HashMap", "HashSet"].contains(&outer);
    let arguments = split_parameters(arguments.strip_suffix('>').unwrap_or_default());
    arguments.into_iter().skip(usize::from(has_key)).any(|argument| holds_tuple(argument, aliases))
}

/// Whether the items of a list are entries of a map in order: pairs of a text and a value.
fn is_map_entry(item: &str) -> bool {
    const TEXTS: [&str; 9] =
        ["str", "String", "Arc<str>", "Box<str>", "Cow", "OsString", "HeaderName", "Name", "K"];
    let item = without_references(item);
    let Some(items) = item.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return false };
    let items = split_parameters(items);
    let is_text =
        |first: &str| TEXTS.contains(&first) || TEXTS.contains(&first.split('<').next().unwrap_or(first));
    items.len() == 2 && is_text(without_references(items[0]))
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
    let inner = ["Vec<", "std::vec::IntoIter<"].iter().find_map(|list| type_.strip_prefix(list));
    if let Some(inner) = inner {
        return inner.strip_suffix('>');
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
                "crates/x/src/a.rs:{line}: signatures: `{name}` takes a tuple: name the pair, or pass separate parameters"
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
        let text = "//! A file.\nfn a(pair: &Pair<'_, u8>) {}\nfn b(unit: Unit) {}\n";
        let tree = SourceTree::of_files(&[("crates/x/src/a.rs", alias), ("crates/y/src/b.rs", text)]);
        let takes = |line, name: &str| {
            format!(
                "crates/y/src/b.rs:{line}: signatures: `{name}` takes a tuple: name the pair, or pass separate parameters"
            )
        };
        let alias = "crates/x/src/a.rs:2: signatures: `Pair` is an alias of a tuple: define a struct";
        // The unit type holds nothing that needs a name.
        expect(check, &tree, &[alias, &takes(2, "a")]);
    }

    #[test]
    fn a_tuple_in_an_option_or_a_list_is_found_unless_it_is_an_entry_of_a_map() {
        let text = "//! A file.\nfn a(at: Option<(u8, Vec<u8>)>) {}\nfn b(all: &[Option<(u8, u8)>]) {}\n\
                    fn c(all: Vec<(u8, u8, u8)>) {}\nfn d(all: &'a mut [(u8, u8, u8); 3]) {}\n\
                    fn e(map: &[(&str, u8)], entries: Vec<(String, Option<u8>)>, one: Option<&[u8; 2]>) {}\n\
                    fn f(pairs: &[(u8, u8)]) {}\n";
        let found = |line, name: &str| {
            format!(
                "crates/x/src/a.rs:{line}: signatures: `{name}` takes a tuple: name the pair, or pass separate parameters"
            )
        };
        let found = [found(2, "a"), found(3, "b"), found(4, "c"), found(5, "d"), found(7, "f")];
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        expect(check, &SourceTree::of_files(&[("crates/x/src/a.rs", text)]), &found);
    }

    #[test]
    fn a_field_that_holds_a_tuple_is_found() {
        let text = "//! A file.\npub struct A<'a> {\n    pub one: Option<(u8, u8)>,\n    entries: Vec<(String, u8)>,\n    \
                    map: BTreeMap<(u8, u8), (&'a str, u8)>,\n    set: BTreeSet<(u8, u8)>,\n    call: Box<dyn Fn(u8, u8) -> (u8, u8)>,\n}\n\
                    fn a() {\n    let x: (u8, u8) = y;\n}\n";
        let found = |line, name: &str| {
            format!("crates/x/src/a.rs:{line}: signatures: the field `{name}` holds a tuple: name the pair")
        };
        let found = [found(3, "one"), found(5, "map")];
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        expect(check, &SourceTree::of_files(&[("crates/x/src/a.rs", text)]), &found);
    }

    #[test]
    fn other_parameters_pass() {
        let text = "//! A file: fn a((x, y): (u8, u8)).\nfn a(told: &(dyn Fn(u8, u8) -> (u8, u8) + Sync), (): &(), list: &[(Name, u8)]) -> (u8, u8) {}\n\
                    fn b(Pair { x, y }: Pair, map: Map<u8, u8>) { let f = |(x, y): (u8, u8)| x; }\n\
                    type F = fn(u8) -> u8;\n#[cfg(test)]\nmod tests { fn c((x, y): (u8, u8)) {} }\n";
        expect(check, &SourceTree::of_files(&[("crates/x/src/a.rs", text)]), &[]);
    }
}

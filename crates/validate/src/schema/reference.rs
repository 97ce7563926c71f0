//! Resolves a `$ref` of a schema as Python's jsonschema 3.2 does.
//!
//! The part before `#` is joined to the path of the schema like a relative URL. The part after `#` is
//! percent-decoded and followed as a JSON pointer; leading slashes are ignored.

use std::sync::LazyLock;

use qontract_bundle::{Bundle, Value, value_of};
use qontract_yaml::{Limits, Syntax, parse_as};

use crate::keywords;

/// The URL of the draft that schemas may name. The draft is built in, so it is never fetched.
pub const DRAFT: &str = "http://json-schema.org/draft-06/schema";

/// The draft, as jsonschema 3.2 ships it.
static DRAFT_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let parsed = parse_as(Syntax::Json, include_bytes!("draft-06.json"), &Limits::default());
    parsed.document.and_then(|document| value_of(document.root())).expect("a test reads the draft")
});

/// The target of a `$ref`.
#[derive(Clone, Debug, PartialEq)]
pub enum RefTarget<'b> {
    /// A schema.
    Schema(SchemaLocation<'b>),
    /// A URL outside the bundle, which is never fetched.
    External,
    /// A schema file that does not exist.
    NoFile(String),
    /// A location that does not exist. Holds the file and the JSON pointer.
    NoValue(&'b str, String),
    /// A value that is not a schema.
    NotASchema(SchemaLocation<'b>),
}

/// A value in a schema of the bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaLocation<'b> {
    /// The path of the schema.
    pub file: &'b str,
    /// The JSON pointer.
    pub pointer: String,
    /// The value.
    pub value: &'b Value,
}

/// Resolves a `$ref` of the schema at `path`.
pub fn resolve<'b>(bundle: &'b Bundle, path: &str, reference: &str) -> RefTarget<'b> {
    let (written, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let file = if has_scheme(written) { written.to_owned() } else { join(path, written) };
    let Some((file, root)) = document(bundle, &file) else {
        return if has_scheme(&file) { RefTarget::External } else { RefTarget::NoFile(file) };
    };
    let mut pointer = String::new();
    let mut value = Some(root);
    for step in steps(fragment) {
        keywords::push_token(&mut pointer, &step);
        value = value.and_then(|value| child(value, &step));
    }
    match value {
        None => RefTarget::NoValue(file, pointer),
        Some(value @ (Value::Map(_) | Value::Bool(_))) => {
            RefTarget::Schema(SchemaLocation { file, pointer, value })
        }
        Some(value) => RefTarget::NotASchema(SchemaLocation { file, pointer, value }),
    }
}

/// The schema at `path`, or the draft.
pub fn document<'b>(bundle: &'b Bundle, path: &str) -> Option<(&'b str, &'b Value)> {
    let schemas = bundle.schemas();
    if let Ok(at) = schemas.binary_search_by(|schema| (*schema.path).cmp(path)) {
        return Some((&schemas[at].path, &schemas[at].document.value));
    }
    (path == DRAFT).then(|| (DRAFT, &*DRAFT_SCHEMA))
}

fn has_scheme(address: &str) -> bool {
    let Some((scheme, _)) = address.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
}

/// The steps of the part after `#`.
fn steps(fragment: &str) -> Vec<String> {
    let fragment = fragment.trim_start_matches('/');
    if fragment.is_empty() {
        return Vec::new();
    }
    decode(fragment).split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

fn child<'b>(value: &'b Value, step: &str) -> Option<&'b Value> {
    match value {
        Value::Map(map) => map.get(step),
        Value::List(items) => {
            let index: isize = step.parse().ok()?;
            // As in Python, negative indices count from the end.
            let from_end = items.len().checked_sub(index.unsigned_abs());
            items.get(usize::try_from(index).ok().or(from_end)?)
        }
        _ => None,
    }
}

/// Resolves `file` relative to the schema at `path`.
fn join(path: &str, file: &str) -> String {
    if file.is_empty() || file.starts_with("//") {
        // `//name` is another host, not a file.
        return if file.is_empty() { path.to_owned() } else { file.to_owned() };
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let whole = if file.starts_with('/') { file.to_owned() } else { format!("{folder}/{file}") };
    let written: Vec<&str> = whole.split('/').collect();
    let last = written.len() - 1;
    let mut steps: Vec<&str> = Vec::new();
    for (index, step) in written.iter().enumerate() {
        match *step {
            "" if index > 0 && index < last => {}
            "." => {}
            // A path above the root resolves to an empty string without the slash, which is not the path of a
            // schema.
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    if matches!(written[last], "." | "..") {
        steps.push("");
    }
    steps.join("/")
}

/// Undoes percent-encoding.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let hex = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        if let (b'%', Some(decoded)) = (byte, hex) {
            bytes.push(decoded);
            rest = &after[2..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_relative_to_their_schema() {
        let check = |path: &str, file: &str, expect: &str| assert_eq!(join(path, file), expect, "{file}");
        check("/a/b-1.yml", "c-1.yml", "/a/c-1.yml");
        check("/a/b-1.yml", "../c-1.yml", "/c-1.yml");
        check("/a/b-1.yml", "/c/d-1.yml", "/c/d-1.yml");
        check("/a/b-1.yml", "/c//d-1.yml", "/c/d-1.yml");
        check("/a/b-1.yml", "", "/a/b-1.yml");
        check("/a/b-1.yml", "..", "/");
    }

    #[test]
    fn paths_above_the_root_or_on_other_hosts_do_not_exist() {
        assert_eq!(join("/a/b-1.yml", "../../c-1.yml"), "c-1.yml");
        assert_eq!(join("/b-1.yml", "../c-1.yml"), "c-1.yml");
        assert_eq!(join("/b-1.yml", "//c-1.yml"), "//c-1.yml");
    }

    #[test]
    fn the_fragment_is_decoded_and_its_leading_slashes_are_ignored() {
        let check = |fragment: &str, expect: &[&str]| assert_eq!(steps(fragment), expect, "{fragment}");
        check("/a%20b/c~1d/~0e", &["a b", "c/d", "~e"]);
        check("a/b", &["a", "b"]);
        check("/", &[]);
        check("//a", &["a"]);
        check("/a%2Fb/%zz", &["a", "b", "%zz"]);
    }

    #[test]
    fn the_draft_is_built_in() {
        assert!(DRAFT_SCHEMA.get("definitions").is_some());
    }
}

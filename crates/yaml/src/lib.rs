//! YAML 1.1 parser for data repos: parses bytes into a tree with byte spans.
//!
//! Scalars are resolved as in YAML 1.1 (`yes` is true, `017` is 15, `12345e7` is a string). Constructs on
//! which YAML parsers disagree are refused with a finding rather than guessed; `docs/yaml.md` lists them.
//!
//! ```
//! use qontract_yaml::{Limits, Value, parse};
//! let document = parse(b"enabled: yes\nref: 12345e7\n", &Limits::default()).document.unwrap();
//! let Value::Map(map) = document.root().value() else { panic!("a map") };
//! assert_eq!(map.get("enabled").unwrap().value(), Value::Bool(true));
//! assert_eq!(map.get("ref").unwrap().value(), Value::Str("12345e7"));
//! ```
//!
//! Stages: [`characters`] refuses bytes that no document may contain. A parser reads the text as `events`:
//! the fast parser if the text is simple block YAML, otherwise the fallback parser. The compatibility checker
//! detects differences between YAML 1.1 and 1.2, `compose` builds the [`tree`] from the events, and
//! [`scalar`] resolves plain scalars. Nothing here uses files, threads or the network.

pub mod characters;
mod compose;
mod decimal;
mod events;
mod fallback;
mod fast;
mod hints;
pub mod json;
mod limits;
pub mod lint;
mod merge;
pub mod scalar;
pub mod tree;
mod yaml11_compat;

pub use limits::Limits;
pub use tree::{Document, Entry, List, Map, Node, NodeId, Value};

use qontract_diagnostics::{Diagnostic, code};

/// The result of parsing one file.
#[derive(Debug)]
pub struct ParsedYaml {
    /// The tree; `None` if the file is empty or has an error.
    pub document: Option<Document>,
    /// Findings without the file name, in the order of the file. If there is neither a document nor an error,
    /// the file is empty.
    pub findings: Vec<Diagnostic>,
}

/// The language in which a file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// YAML 1.1.
    #[default]
    Yaml,
    /// JSON, which is parsed as YAML except for bare scalars: `1e3` is a number, and `yes` is an error. The
    /// caller checks that the text is strict JSON.
    Json,
}

impl Syntax {
    /// The language of the file with this name or path: JSON if the name ends in `.json`, otherwise YAML.
    ///
    /// ```
    /// use qontract_yaml::Syntax;
    /// assert_eq!(Syntax::of("data/teams/core.json"), Syntax::Json);
    /// assert_eq!(Syntax::of("data/teams/core.json.yml"), Syntax::Yaml);
    /// ```
    pub fn of(name: &str) -> Self {
        if matches!(name.rsplit_once('.'), Some((_, "json"))) { Self::Json } else { Self::Yaml }
    }
}

/// Parses one file that holds one YAML document.
///
/// **Invariant:** a document is returned only if no error was found.
pub fn parse(bytes: &[u8], limits: &Limits) -> ParsedYaml {
    parse_as(Syntax::Yaml, bytes, limits)
}

/// Whether the fast parser accepts `text`; an error if its result differs from that of the fallback parser.
#[cfg(fuzzing)]
pub fn takes_as_plain(text: &str) -> Result<bool, String> {
    fast::compare::takes(text)
}

/// Parses one file that holds one document in the given language.
pub fn parse_as(syntax: Syntax, bytes: &[u8], limits: &Limits) -> ParsedYaml {
    let text = match characters::check(syntax, bytes, limits) {
        Ok(text) => text,
        Err(finding) => return ParsedYaml { document: None, findings: vec![*finding] },
    };
    let plain = if syntax == Syntax::Yaml { fast::parse(text) } else { None };
    let mut parsed = match plain {
        Some(events) => compose::compose(events, text, syntax, limits),
        None => compose::compose(fallback::FallbackParser::new(text), text, syntax, limits),
    };
    for finding in &mut parsed.findings {
        if finding.code == code::YAML_SYNTAX {
            let found = std::mem::replace(finding, Diagnostic::new(code::YAML_SYNTAX, ""));
            *finding = hints::explain(found, text);
        } else if finding.code == code::YAML_DOCUMENTS {
            let found = std::mem::replace(finding, Diagnostic::new(code::YAML_DOCUMENTS, ""));
            *finding = hints::explain_conflict(found, text);
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::{Limits, Syntax, Value, parse_as};

    #[test]
    fn json_takes_characters_that_yaml_refuses() {
        for character in ['\u{85}', '\u{2028}', '\u{2029}'] {
            let text = format!("{{\"a\": \"x{character}y\"}}");
            let parsed = parse_as(Syntax::Json, text.as_bytes(), &Limits::default());
            let document = parsed.document.unwrap_or_else(|| panic!("{character:?}: {:?}", parsed.findings));
            let Value::Map(map) = document.root().value() else { panic!("a map") };
            let expect = format!("x{character}y");
            assert_eq!(map.get("a").map(crate::Node::value), Some(Value::Str(&expect)), "{character:?}");
            assert!(parse_as(Syntax::Yaml, text.as_bytes(), &Limits::default()).document.is_none());
        }
    }
}

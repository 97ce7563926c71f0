//! Names use the vocabulary of the field: no coined words in modules, types and constants, and no type that
//! is a bare participle or pronoun. Prose is checked for a few habits, which are reported as warnings.

use super::{SourceTree, Violation};

const RULE: &str = "vocabulary";

/// A word that is not used in names, and its replacement.
struct CoinedWord {
    word: &'static str,
    instead: &'static str,
}

const fn coined(word: &'static str, instead: &'static str) -> CoinedWord {
    CoinedWord { word, instead }
}

/// Words that no module, type or constant contains.
const COINED_WORDS: [CoinedWord; 42] = [
    coined("affairs", "selection, early exit"),
    coined("alarm", "watcher"),
    coined("alike", "a noun, for example `same_key`"),
    coined("anew", "again, retry, restart"),
    coined("asked", "request, query, access log"),
    coined("beginnings", "attempts"),
    coined("chance", "rng"),
    coined("crew", "supervisor, runner"),
    coined("crowd", "concurrency limit"),
    coined("deepest", "max"),
    coined("dice", "rng"),
    coined("estate", "managed scope"),
    coined("few", "incremental, or MIN_/MAX_"),
    coined("fleeting", "content dependent"),
    coined("grounds", "namespaces, shard builder"),
    coined("hearer", "observer"),
    coined("heard", "observer"),
    coined("homeless", "namespace missing"),
    coined("house", "workspace"),
    coined("keeper", "integration, reconciler"),
    coined("keeping", "loop options"),
    coined("leads", "cache"),
    coined("longest", "max"),
    coined("looping", "reconcile loop"),
    coined("meddler", "fault injection"),
    coined("most", "max"),
    coined("nobody", "the subject itself"),
    coined("onto", "precondition"),
    coined("recollection", "cache state"),
    coined("remembered", "cache"),
    coined("room", "integration"),
    coined("rooms", "integrations"),
    coined("said", "report, content"),
    coined("shelf", "registry"),
    coined("somebody", "the subject itself"),
    coined("steward", "reconciler"),
    coined("strays", "mistyped targets"),
    coined("told", "report, message, observer"),
    coined("voice", "reporter"),
    coined("walls", "lints"),
    coined("whoever", "the subject itself"),
    coined("yard", "fixture"),
];

/// Irregular participles, adjectives, pronouns and determiners that must not be type names.
const BARE_WORDS: [&str; 60] = [
    "All", "Any", "Begun", "Both", "Built", "Bound", "Caught", "Chosen", "Cut", "Done", "Drawn", "Each",
    "Few", "Found", "Given", "Gone", "Good", "Half", "Heard", "Held", "Her", "His", "How", "It", "Kept",
    "Known", "Left", "Lost", "Made", "Many", "Meant", "Met", "More", "Most", "Mine", "Nobody", "None",
    "Nothing", "One", "Other", "Others", "Ours", "Read", "Said", "Seen", "Sent", "Shown", "Somebody", "Some",
    "Spent", "Such", "Taken", "That", "Told", "What", "Which", "Who", "Whole", "Whose", "Wrong",
];

/// Words that end like a participle and are nouns, and participles that are terms of the
/// [glossary](../../docs/glossary.md).
const ALLOWED_TYPES: [&str; 14] = [
    "Breed",
    "Children",
    "Declared",
    "Desired",
    "Embed",
    "Feed",
    "Need",
    "Observed",
    "Pen",
    "Screen",
    "Seed",
    "Staged",
    "Token",
    "Unresolved",
];

/// Phrases that plain technical English does not use.
const HABITS: [&str; 14] = [
    "anew",
    "whoever",
    "somebody",
    "nobody",
    "in the midst",
    "is told",
    "are told",
    "what is told",
    "for ever",
    "all the same",
    "otherwise than",
    "side by side",
    "is no longer one",
    "road of",
];

/// Checks the names of modules, types and constants in source files.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".rs").filter(|(path, _)| !path.starts_with("xtask/src/tidy/vocabulary")) {
        let mut report = |line: usize, message: String| {
            violations.push(Violation { path: path.to_owned(), line, rule: RULE, message });
        };
        let module = path.trim_end_matches(".rs").rsplit('/').next().unwrap_or_default();
        if let Some(message) = denied(module) {
            report(1, message);
        }
        for (index, line) in text.lines().enumerate() {
            let Some(Definition { kind, name }) = definition(line) else { continue };
            let is_bare = kind == DefinitionKind::Type && is_bare_word(name);
            if is_bare {
                report(index + 1, format!("`{name}` has no noun for its content: add one"));
            } else if let Some(message) = denied(name) {
                report(index + 1, message);
            }
        }
    }
    violations
}

/// Lines of docs and comments with a habit that plain technical English avoids, as warnings.
pub fn prose(tree: &SourceTree) -> Vec<Violation> {
    let is_prose = |path: &str| {
        !path.contains("/vectors/") && !path.contains("/tests/") && !path.starts_with("xtask/src/tidy/")
    };
    let mut warnings = Vec::new();
    for (path, text) in tree.texts(".md").chain(tree.texts(".rs")).filter(|(path, _)| is_prose(path)) {
        for (index, line) in text.lines().enumerate() {
            let words = format!(" {} ", line.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " "));
            let found = HABITS.iter().find(|habit| words.contains(&format!(" {habit} ")));
            let starts_headless = line.trim_start().starts_with("/// The same, for");
            let message = match found {
                Some(habit) => format!("`{habit}`: use plain technical English"),
                None if starts_headless => "`The same, for`: write a sentence that stands alone".to_owned(),
                None => continue,
            };
            warnings.push(Violation { path: path.to_owned(), line: index + 1, rule: RULE, message });
        }
    }
    warnings
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DefinitionKind {
    Type,
    Constant,
    Module,
}

/// A name that a line defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Definition<'l> {
    kind: DefinitionKind,
    name: &'l str,
}

/// The module, type or constant that a line defines. Associated types are named by their trait.
fn definition(line: &str) -> Option<Definition<'_>> {
    let is_top_level_type = !line.starts_with(' ');
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (keyword, rest) = line.split_once(' ')?;
    let kind = match keyword {
        "struct" | "enum" | "trait" => DefinitionKind::Type,
        "type" if is_top_level_type => DefinitionKind::Type,
        "const" | "static" => DefinitionKind::Constant,
        "mod" => DefinitionKind::Module,
        _ => return None,
    };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    (!name.is_empty() && name != "fn" && name != "_").then_some(Definition { kind, name })
}

/// The message about a coined word in a name.
fn denied(name: &str) -> Option<String> {
    let words = words(name);
    let coined = COINED_WORDS.iter().find(|coined| words.iter().any(|word| word == coined.word))?;
    Some(format!("`{name}`: the field's word for `{}` is: {}", coined.word, coined.instead))
}

/// The words of a name in snake case, camel case or capitals, in lower case.
fn words(name: &str) -> Vec<String> {
    let is_constant = !name.contains(|c: char| c.is_lowercase());
    let mut words = vec![String::new()];
    for c in name.chars() {
        let starts = c == '_' || (c.is_uppercase() && !is_constant);
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Whether a type is named by one word that is a participle, an adjective or a pronoun.
fn is_bare_word(name: &str) -> bool {
    if ALLOWED_TYPES.contains(&name) || words(name).len() != 1 {
        return false;
    }
    let is_regular =
        name.len() > 4 && (name.ends_with("ed") || name.ends_with("tten") || name.ends_with("ken"));
    is_regular || BARE_WORDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{check, definition, is_bare_word, prose, words};
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("MOST_BYTES"), ["most", "bytes"]);
        assert_eq!(words("ShardKey"), ["shard", "key"]);
        assert_eq!(words("run_loop"), ["run", "loop"]);
    }

    #[test]
    fn definitions_are_found() {
        let name = |line| definition(line).map(|definition| definition.name);
        assert_eq!(name("pub(super) struct Found<'a> {"), Some("Found"));
        assert_eq!(name("    const MOST: usize = 1;"), Some("MOST"));
        assert_eq!(name("pub enum What {"), Some("What"));
        assert_eq!(name("    type Item = Found;"), None);
        assert_eq!(name("pub const fn new() -> Self {"), None);
        assert_eq!(name("let room = 1;"), None);
    }

    #[test]
    fn a_bare_participle_or_pronoun_is_not_a_type() {
        for bare in ["Found", "Written", "Asked", "What", "One", "Taken", "Parsed"] {
            assert!(is_bare_word(bare), "{bare}");
        }
        for noun in ["Token", "CacheEntry", "ParsedFile", "Observed", "Children", "Screen", "Red"] {
            assert!(!is_bare_word(noun), "{noun}");
        }
    }

    #[test]
    fn coined_words_and_bare_words_are_violations() {
        let files = [
            ("crates/a/src/few.rs", "//! a\npub struct Found;\nconst MOST_BYTES: usize = 1;\n"),
            ("crates/a/src/lib.rs", "//! a\nmod few;\npub struct RoomBuilder;\npub struct Fine;\n"),
        ];
        expect(
            check,
            &SourceTree::of_files(&files),
            &[
                "crates/a/src/few.rs:1: vocabulary: `few`: the field's word for `few` is: incremental, or MIN_/MAX_",
                "crates/a/src/few.rs:2: vocabulary: `Found` has no noun for its content: add one",
                "crates/a/src/few.rs:3: vocabulary: `MOST_BYTES`: the field's word for `most` is: max",
                "crates/a/src/lib.rs:2: vocabulary: `few`: the field's word for `few` is: incremental, or MIN_/MAX_",
                "crates/a/src/lib.rs:3: vocabulary: `RoomBuilder`: the field's word for `room` is: integration",
            ],
        );
    }

    #[test]
    fn habits_in_prose_are_warnings() {
        let files = [
            ("docs/a.md", "It begins anew.\nFine.\n"),
            ("crates/a/src/lib.rs", "//! a\n/// The same, for others.\n"),
            ("crates/a/tests/vectors/x.md", "anew"),
        ];
        expect(
            prose,
            &SourceTree::of_files(&files),
            &[
                "docs/a.md:1: vocabulary: `anew`: use plain technical English",
                "crates/a/src/lib.rs:2: vocabulary: `The same, for`: write a sentence that stands alone",
            ],
        );
    }
}

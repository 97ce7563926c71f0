//! Names use the established words of the trade: no module, type or constant contains a coined word, and no
//! type is a bare participle or pronoun. Comments and pages are checked for a few habits, which are reported
//! as warnings.

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
const COINED_WORDS: [CoinedWord; 43] = [
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
    coined("world", "current state, target, fixture"),
    coined("yard", "fixture"),
];

/// Words that must not be type names, and the concept that a name should state instead.
struct BareWords {
    words: &'static [&'static str],
    instead: &'static str,
}

/// Irregular participles, adjectives, pronouns and determiners that must not be type names.
const BARE_WORDS: [BareWords; 7] = [
    BareWords {
        words: &["Her", "His", "It", "Mine", "Nobody", "Ours", "Somebody", "Who", "Whose"],
        instead: "the party, for example `Owner` or `Caller`",
    },
    BareWords {
        words: &[
            "All", "Any", "Both", "Each", "Few", "Half", "Many", "More", "Most", "None", "Nothing", "One",
            "Other", "Others", "Some", "Such", "Whole",
        ],
        instead: "the collection or the limit, for example `Selection` or `RateLimit`",
    },
    BareWords {
        words: &["How", "That", "What", "Which"],
        instead: "the kind or the mode, for example `ChangeKind` or `RunMode`",
    },
    BareWords {
        words: &["Caught", "Chosen", "Found", "Gone", "Kept", "Known", "Left", "Lost", "Seen", "Taken"],
        instead: "the entry or the result, for example `CacheEntry` or `SearchResult`",
    },
    BareWords {
        words: &["Heard", "Read", "Said", "Sent", "Shown", "Told"],
        instead: "the message, for example `Response` or `LogLine`",
    },
    BareWords {
        words: &[
            "Begun", "Bound", "Built", "Cut", "Done", "Drawn", "Given", "Held", "Made", "Meant", "Met",
            "Spent",
        ],
        instead: "the state or the outcome, for example `RunState` or `BuildOutcome`",
    },
    BareWords { words: &["Good", "Wrong"], instead: "the verdict, for example `ValueVerdict`" },
];

/// The concept that a type name should state instead of a regular participle.
const INSTEAD_OF_PARTICIPLE: &str = "the noun that it describes, for example `ParsedFile`";

/// Nouns that end as a participle does, and participles that are terms of the
/// [glossary](../../docs/glossary.md).
const ALLOWED_TYPES: [&str; 4] = ["Declared", "Observed", "Token", "Unresolved"];

/// Phrases that plain technical English does not use: archaic and vague words, passives of *tell*, *ask*, *say*
/// and *hear*, and genitives in place of compound nouns.
const HABITS: [&str; 30] = [
    "anew",
    "whoever",
    "somebody",
    "nobody",
    "thereby",
    "in the midst",
    "for ever",
    "all the same",
    "otherwise than",
    "side by side",
    "is no longer one",
    "road of",
    "is told",
    "are told",
    "was told",
    "be told",
    "is asked",
    "are asked",
    "was asked",
    "be asked",
    "is said",
    "are said",
    "is heard",
    "are heard",
    "options of the command line",
    "options of the log",
    "lines of the log",
    "levels of the log",
    "rules of prometheus",
    "limit of open files",
];

/// Clauses in place of a noun. They are checked only in comments and pages, because `what` is a name in code.
const HEADLESS_CLAUSES: [&str; 3] = ["is what", "are what", "was what"];

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
            let bare = if kind == DefinitionKind::Type { instead_of_bare_word(name) } else { None };
            if let Some(instead) = bare {
                report(index + 1, format!("`{name}` has no noun for its content: name {instead}"));
            } else if let Some(message) = denied(name) {
                report(index + 1, message);
            }
        }
    }
    violations
}

/// Lines of docs and comments with a habit that plain technical English avoids, as warnings.
pub fn prose(tree: &SourceTree) -> Vec<Violation> {
    // The corpus has the text of recorded benchmarks, so it is not checked.
    let is_prose = |path: &str| {
        let is_text = path.contains("/vectors/") || path.starts_with("benches/src/corpus/");
        !is_text && !path.contains("/tests/") && !path.starts_with("xtask/src/tidy/")
    };
    let mut warnings = Vec::new();
    let pages = tree.texts(".md").map(|file| (file, false));
    let sources = tree.texts(".rs").map(|file| (file, true));
    for ((path, text), is_source) in pages.chain(sources).filter(|((path, _), _)| is_prose(path)) {
        for (index, line) in text.lines().enumerate() {
            // The table of habits in the contributor guide contains the habits themselves.
            if path == "CONTRIBUTING.md" && line.starts_with('|') {
                continue;
            }
            let is_code = is_source && !line.trim_start().starts_with("//");
            let Some(message) = habit(line, is_code) else { continue };
            warnings.push(Violation { path: path.to_owned(), line: index + 1, rule: RULE, message });
        }
    }
    warnings
}

/// The message about the first habit in a line.
fn habit(line: &str, is_code: bool) -> Option<String> {
    let words = format!(" {} ", line.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " "));
    let find = |phrases: &'static [&'static str]| {
        phrases.iter().find(|phrase| words.contains(&format!(" {phrase} ")))
    };
    if let Some(habit) = find(&HABITS) {
        return Some(format!("`{habit}`: use plain technical English"));
    }
    if is_code {
        return None;
    }
    if let Some(clause) = find(&HEADLESS_CLAUSES) {
        return Some(format!("`{clause}`: write the noun instead of the clause"));
    }
    if let Some(phrase) = negated_noun(&line.to_lowercase()) {
        return Some(format!("`{phrase}`: write `not a`"));
    }
    let text = line.trim_start();
    let starts_headless = text.starts_with("/// The same") || text.starts_with("//! The same");
    starts_headless.then(|| "`The same`: write a sentence that stands alone".to_owned())
}

/// `is no` before a noun in a line in lower case, as in "is no file", except after `there`: "there is no file".
fn negated_noun(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_negated = |window: &&[&str]| {
        window[0] != "there"
            && ["is", "are", "was", "were"].contains(&window[1])
            && window[2] == "no"
            && !["longer", "more", "less", "fewer", "such"].contains(&window[3])
    };
    let found = words.windows(4).find(is_negated)?;
    Some(found[1..].join(" ").trim_end_matches(|c: char| !c.is_alphanumeric()).to_owned())
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

/// The concept that a type name should state instead of one participle, adjective or pronoun.
fn instead_of_bare_word(name: &str) -> Option<&'static str> {
    if ALLOWED_TYPES.contains(&name) || words(name).len() != 1 {
        return None;
    }
    if let Some(bare) = BARE_WORDS.iter().find(|bare| bare.words.contains(&name)) {
        return Some(bare.instead);
    }
    let is_participle =
        name.len() > 4 && (name.ends_with("ed") || name.ends_with("tten") || name.ends_with("ken"));
    is_participle.then_some(INSTEAD_OF_PARTICIPLE)
}

#[cfg(test)]
mod tests {
    use super::{check, definition, habit, instead_of_bare_word, prose, words};
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
            assert!(instead_of_bare_word(bare).is_some(), "{bare}");
        }
        for noun in ["Token", "CacheEntry", "ParsedFile", "Observed", "Children", "Screen", "Red"] {
            assert!(instead_of_bare_word(noun).is_none(), "{noun}");
        }
    }

    #[test]
    fn coined_words_and_bare_words_are_violations() {
        let files = [
            ("crates/a/src/few.rs", "//! a\npub struct Found;\nconst MOST_BYTES: usize = 1;\n"),
            (
                "crates/a/src/lib.rs",
                "//! a\nmod few;\npub struct RoomBuilder;\npub struct Fine;\nmod world;\n",
            ),
        ];
        expect(
            check,
            &SourceTree::of_files(&files),
            &[
                "crates/a/src/few.rs:1: vocabulary: `few`: the field's word for `few` is: incremental, or MIN_/MAX_",
                "crates/a/src/few.rs:2: vocabulary: `Found` has no noun for its content: name the entry or the result, for example `CacheEntry` or `SearchResult`",
                "crates/a/src/few.rs:3: vocabulary: `MOST_BYTES`: the field's word for `most` is: max",
                "crates/a/src/lib.rs:2: vocabulary: `few`: the field's word for `few` is: incremental, or MIN_/MAX_",
                "crates/a/src/lib.rs:3: vocabulary: `RoomBuilder`: the field's word for `room` is: integration",
                "crates/a/src/lib.rs:5: vocabulary: `world`: the field's word for `world` is: current state, target, fixture",
            ],
        );
    }

    #[test]
    fn habits_in_prose_are_warnings() {
        let files = [
            ("docs/a.md", "It begins anew.\nFine.\n"),
            ("crates/a/src/lib.rs", "//! a\n/// The same, for others.\n"),
            ("crates/a/tests/vectors/x.md", "anew"),
            ("CONTRIBUTING.md", "| anew | again |\nIt is what you need.\n"),
        ];
        expect(
            prose,
            &SourceTree::of_files(&files),
            &[
                "CONTRIBUTING.md:2: vocabulary: `is what`: write the noun instead of the clause",
                "docs/a.md:1: vocabulary: `anew`: use plain technical English",
                "crates/a/src/lib.rs:2: vocabulary: `The same`: write a sentence that stands alone",
            ],
        );
    }

    #[test]
    fn each_habit_has_a_message() {
        let check =
            |line: &str, expect: Option<&str>| assert_eq!(habit(line, false).as_deref(), expect, "{line}");
        check(
            "/// What was left out is what is unused.",
            Some("`is what`: write the noun instead of the clause"),
        );
        check("/// The client is told.", Some("`is told`: use plain technical English"));
        check("/// The server is asked for it.", Some("`is asked`: use plain technical English"));
        check(
            "the options of the command line",
            Some("`options of the command line`: use plain technical English"),
        );
        check("/// A bundle is no folder.", Some("`is no folder`: write `not a`"));
        check("/// The same time, later.", Some("`The same`: write a sentence that stands alone"));
        let plain = [
            "There is no folder.",
            "It is no longer valid.",
            "Nothing else is: no other folder.",
            "/// The client logs it.",
        ];
        for plain in plain {
            check(plain, None);
        }
        assert_eq!(habit("let text = format!(\"the top level is {what}\");", true), None);
        assert_eq!(
            habit("let text = \"nobody\";", true),
            Some("`nobody`: use plain technical English".to_owned())
        );
    }
}

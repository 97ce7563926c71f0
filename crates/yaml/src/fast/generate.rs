//! Generates texts that are almost simple YAML: from pieces, from lines, and from damaged real files.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Pieces of a line.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "b c", "key", "-", "- ", "--", ":", ": ", " :", "?", "? ", " ", "  ", "    ", "\n", "\n", "\n  ",
    "\n- ", "\n  - ", "'", "''", "\"", "\\", "\\n", "\\\"", "\\u0041", "#", " #", "# x", "|", "|-", "|+", "|2",
    ">", ">-", ">+", "[", "]", "[]", "{", "}", "{}", ", ", ",", "&x ", "*x", "!t ", "%", "@", "`", "~", "<<",
    "=", "...", "---", "\n---\n", "\n...\n", "\t", "\r\n", "\r", "é", "\u{a0}", "\u{85}", "\u{80}", "\u{2028}",
    "\u{3000}", "\u{feff}", "\u{fffe}", "\u{1f600}", "\0", "\u{1}", "\u{7f}", "1", "on", ".", "/", "'a b'",
    "\"a b\"", "a: b", "\na: ", "\n  b: ", "\nc:",
];

/// Lines without their indentation.
#[rustfmt::skip]
const LINES: &[&str] = &[
    "", "a: b", "b:", "c: 'd'", "d: \"e\"", "- e", "- f: g", "- g:", "-", "- - h", "- - i: j", "h: |", "i: |-",
    "j: |+", "k: >", "l: >-", "- |", "- >", "text", "more text", "# note", "m: n # note", "n: # note",
    "- # note", "o: []", "p: {}", "- []", "- {}", "q: [r, 's', \"t\"]", "- {u: v, w: [x]}", "'y': z",
    "\"z\" : a", "a b: c d", "- 'a': b", "- - - c", "  ", "a:  b  ", "-   a: b", "-   - a", "$ref: /a/b.yml#c",
    "url: http://a:1/b", "---", "...", "a: \"b\\nc\"", "a: 'b''c'", "- a: |", "- a:", "é: ü", "a: {b: c}  # d",
    "a: [b, c,]", "a: - b", "a: b: c", "a: &b c", "a: *b", "a: &b", "- &b", "- *b", "- &b c", "<<: *b",
    "a: [*b, c]", "a: &b {c: d}", "? a", "\tx: y", "x:\ty", "a: 'b", "c'", "a: [b,", "c]",
];

/// A change to a text; positions are in lines or characters.
#[derive(Clone, Debug)]
enum Change {
    DropLine(Index),
    RepeatLine(Index),
    InsertLine(Index, &'static str),
    Indent(Index, usize),
    Dedent(Index, usize),
    DropCharacter(Index),
    RepeatCharacter(Index),
    Insert(Index, &'static str),
    Replace(Index, &'static str),
    DropEnd(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Change::DropLine),
        at().prop_map(Change::RepeatLine),
        (at(), select(LINES)).prop_map(|(at, line)| Change::InsertLine(at, line)),
        (at(), 1..5usize).prop_map(|(at, by)| Change::Indent(at, by)),
        (at(), 1..5usize).prop_map(|(at, by)| Change::Dedent(at, by)),
        at().prop_map(Change::DropCharacter),
        at().prop_map(Change::RepeatCharacter),
        (at(), select(PIECES)).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (at(), select(PIECES)).prop_map(|(at, piece)| Change::Replace(at, piece)),
        at().prop_map(Change::DropEnd),
    ]
}

impl Change {
    fn apply(&self, text: &mut String) {
        let character = |at: &Index| {
            let places: Vec<(usize, char)> = text.char_indices().collect();
            at.get(&places).to_owned()
        };
        if text.is_empty() {
            return;
        }
        match self {
            Self::DropCharacter(at) => drop(text.remove(character(at).0)),
            Self::RepeatCharacter(at) => {
                let (at, repeated) = character(at);
                text.insert(at, repeated);
            }
            Self::Insert(at, piece) => text.insert_str(character(at).0, piece),
            Self::Replace(at, piece) => {
                let (at, replaced) = character(at);
                text.replace_range(at..at + replaced.len_utf8(), piece);
            }
            Self::DropEnd(at) => text.truncate(character(at).0),
            _ => self.apply_to_lines(text),
        }
    }

    fn apply_to_lines(&self, text: &mut String) {
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        match self {
            Self::DropLine(at) => drop(lines.remove(at.index(lines.len()))),
            Self::RepeatLine(at) => {
                let at = at.index(lines.len());
                lines.insert(at, lines[at].clone());
            }
            Self::InsertLine(at, line) => {
                let at = at.index(lines.len());
                let indent = lines[at].len() - lines[at].trim_start_matches(' ').len();
                lines.insert(at, format!("{}{line}\n", " ".repeat(indent)));
            }
            Self::Indent(at, by) => {
                let at = at.index(lines.len());
                lines[at].insert_str(0, &" ".repeat(*by));
            }
            Self::Dedent(at, by) => {
                let at = at.index(lines.len());
                let spaces = lines[at].len() - lines[at].trim_start_matches(' ').len();
                lines[at].replace_range(..spaces.min(*by), "");
            }
            _ => {}
        }
        *text = lines.concat();
    }
}

/// A text of random pieces, mostly invalid.
fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(select(PIECES), 0..14).prop_map(|pieces| pieces.concat())
}

/// Pieces of a flow collection.
#[rustfmt::skip]
const FLOW_PIECES: &[&str] = &[
    "a", "b c", "d", "'e'", "\"f\"", "''", "g:h", "-1", "-", "~", ",", ", ", ", ", " , ", ": ", ": ", ":",
    " : ", "a: b", "i: ", "'j': ", "\"k\":", "[", "]", "{", "}", "[]", "{}", "[a, b]", "{a: b}", "#", " #", "?",
    ":?", "*x", "&x ", "!t ", "|", " ", "\t", "\n", "é",
];

/// A value in brackets, on a separate line or on the line of its key.
fn brackets() -> impl Strategy<Value = String> {
    let before = select(&["a: ", "- ", "a:\n- ", "- a: ", "x: &x y\na: ", "a:  &x "][..]);
    let around = select(
        &[("[", "]\n"), ("{", "}\n"), ("[", "]"), ("{a: ", "}\n"), ("[", "]: b\n"), ("{", "} # c\nd: e\n")][..],
    );
    (before, around, prop::collection::vec(select(FLOW_PIECES), 0..8))
        .prop_map(|(before, (open, close), pieces)| format!("{before}{open}{}{close}", pieces.concat()))
}

/// Lines, each indented about as deep as the previous line.
fn lines() -> impl Strategy<Value = String> {
    let depth = select(&[0i8, 0, 0, 1, 2, 2, -1, -2, -2, -4][..]);
    prop::collection::vec((depth, select(LINES)), 1..9).prop_map(|lines| {
        let mut column = 0i8;
        let mut text = String::new();
        for (deeper, line) in lines {
            column = (column + deeper).max(0);
            text.extend(std::iter::repeat_n(' ', usize::from(column.unsigned_abs())));
            text.push_str(line);
            text.push('\n');
        }
        text
    })
}

/// Some lines of a real file.
fn part(files: Vec<String>) -> impl Strategy<Value = String> {
    (any::<Index>(), any::<Index>(), 1..30usize).prop_map(move |(file, first, count)| {
        let lines: Vec<&str> = file.get(&files).split_inclusive('\n').collect();
        let first = if lines.len() <= count { 0 } else { first.index(lines.len()) };
        lines.iter().skip(first).take(count).copied().collect()
    })
}

/// Inputs of all kinds; `files` are valid files to be damaged.
pub fn texts(files: Vec<String>) -> impl Strategy<Value = String> {
    let whole = prop_oneof![1 => pieces(), 2 => brackets(), 3 => lines(), 4 => part(files)];
    (whole, prop::collection::vec(change(), 0..4)).prop_map(|(mut text, changes)| {
        for change in changes {
            change.apply(&mut text);
        }
        text
    })
}

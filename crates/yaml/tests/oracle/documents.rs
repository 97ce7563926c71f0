//! Generates documents at random in every style, then damages some of them.

use qontract_testkit::SeededRng;

use super::seeds::SEEDS;

/// Generates `count` documents, every second one damaged.
pub fn generate(count: usize) -> Vec<String> {
    let mut rng = SeededRng::new(0xd0c5);
    (0..count)
        .map(|index| {
            let text = match rng.below(3) {
                0 => (*rng.pick(SEEDS)).to_owned(),
                _ => Grower { rng: &mut rng, anchors: 0 }.document(),
            };
            if index % 2 == 0 { text } else { damage(&mut rng, &text) }
        })
        .collect()
}

/// Scalars outside of brackets.
const BLOCK_SCALARS: &[&str] = &[
    "a",
    "b c",
    "yes",
    "12",
    "1.5",
    "~",
    "null",
    "0755",
    "a:b",
    "a#b",
    "http://x.example/y?z=1#f",
    "'single'",
    "'it''s'",
    "\"double\"",
    "\"tab\\tnew\\nline \\u263a \\x41\"",
    "\"\"",
    "''",
    "-1",
    "<tag>",
    "%x",
    "a, b",
    "x]y",
    "é ☃ 😀",
    "a \"b\" c",
    "-x",
    "?x",
    ":x",
    "x{y}",
    "!",
    "'a\n  b'",
    "\"a\n\n  b\"",
    "\"a \\\n  b\"",
    "a\n  b",
    "a\n\n  b",
    "a\n\t\n  b",
    "a\n  # c\n  b",
    "a # comment",
    "'a' # comment",
    "''''",
    "\"\\\"\"",
    "\"\\/\"",
    "\"\\e\\_\\N\\L\\P\\0\"",
    "12:30",
    "1e3",
];

/// Scalars between brackets.
const FLOW_SCALARS: &[&str] = &[
    "a",
    "b c",
    "yes",
    "12",
    "'x, y'",
    "\"[\"",
    "a:b",
    "http://x.example",
    "~",
    "",
    "-1",
    "a#b",
    "'a': b",
    "a: b",
    "\"a\":b",
    "a:",
    "&b\n x",
    "&c y",
    "\"\" # c\n  : z",
    "\"\\ud83d\\ude00\"",
    "? a",
    "?a",
    "a?b",
    "a ?b",
    ":a",
    "-a",
    "x:-y",
    "*x",
    "é",
];

const KEYS: &[&str] = &[
    "a", "b", "c", "'q'", "\"d\"", "$ref", "a b", "a-b", "x/y", "é", "\"1\"", "<<x", "a:b", "k ", "? k\n",
    "k\t",
];

const BLOCKS: &[&str] = &["|", ">", "|-", ">-", "|+", ">+", "|2", ">1-", "| # c"];

struct Grower<'d> {
    rng: &'d mut SeededRng,
    anchors: usize,
}

impl Grower<'_> {
    fn document(&mut self) -> String {
        let start = *self.rng.pick(&["", "", "---\n", "# top\n---\n", "--- # c\n", "\n\n", "\u{feff}"]);
        let end = *self.rng.pick(&["", "", "", "\n", "...\n", "# end\n", "\n\n\n"]);
        let body = if self.rng.below(12) == 0 { self.flow(0) } else { self.map(0, 0) };
        format!("{start}{body}{end}")
    }

    fn map(&mut self, indent: usize, depth: usize) -> String {
        let mut out = String::new();
        for _ in 0..=self.rng.below(3) {
            let key = self.key(depth);
            let value = self.value(indent, depth);
            out.push_str(&format!("{}{key}:{value}", " ".repeat(indent)));
            if self.rng.below(10) == 0 {
                let gap: &str =
                    self.rng.pick::<&str>(&["\n", "# between\n", "   # indented\n", "  \n", "\t\n"]);
                out.push_str(gap);
            }
        }
        out
    }

    fn key(&mut self, depth: usize) -> String {
        if self.rng.below(15) == 0 {
            return "<<".to_owned();
        }
        let suffix = if self.rng.below(3) == 0 { String::new() } else { format!("{depth}") };
        let key = *self.rng.pick(KEYS);
        if key.ends_with(['\'', '"', '\n', '\t', ' ']) { key.to_owned() } else { format!("{key}{suffix}") }
    }

    /// The text after the colon, including the end of the line.
    fn value(&mut self, indent: usize, depth: usize) -> String {
        let anchor = match self.rng.below(12) {
            0 => {
                self.anchors += 1;
                format!(" &a{}", self.anchors)
            }
            1 if self.anchors > 0 => return format!(" *a{}\n", 1 + self.rng.below(self.anchors)),
            _ => String::new(),
        };
        let deeper = indent + *self.rng.pick(&[1, 2, 2, 2, 4]);
        match self.rng.below(if depth > 3 { 3 } else { 8 }) {
            0 | 1 => format!("{anchor} {}\n", self.rng.pick(BLOCK_SCALARS)),
            2 => format!("{anchor} {}{}", self.rng.pick(BLOCKS), self.block(deeper)),
            3 => format!("{anchor} {}\n", self.flow(depth)),
            4 => format!("{anchor}\n{}", self.map(deeper, depth + 1)),
            5 => format!("{anchor}\n{}", self.list(indent, depth + 1)),
            6 => format!("{anchor}\n{}", self.list(deeper, depth + 1)),
            _ => format!("{anchor}\n"),
        }
    }

    fn list(&mut self, indent: usize, depth: usize) -> String {
        let mut out = String::new();
        for _ in 0..=self.rng.below(3) {
            let pad = " ".repeat(indent);
            let item = match self.rng.below(6) {
                0 => format!(" {}\n", self.flow(depth)),
                1 => {
                    let map = self.map(indent + 2, depth + 1);
                    format!(" {}", map.trim_start_matches(' '))
                }
                2 => {
                    let list = self.list(indent + 2, depth + 1);
                    format!(" {}", list.trim_start_matches(' '))
                }
                _ => self.value(indent, depth),
            };
            out.push_str(&format!("{pad}-{item}"));
        }
        out
    }

    fn block(&mut self, indent: usize) -> String {
        let mut out = "\n".to_owned();
        for _ in 0..=self.rng.below(4) {
            let line =
                *self.rng.pick(&["text", "", "  more", "# no comment", "a: b", "- x", "é", "\ttab", "end "]);
            if line.is_empty() {
                let gap: &str = self.rng.pick::<&str>(&["\n", "  \n", "         \n"]);
                out.push_str(gap);
            } else {
                out.push_str(&format!("{}{line}\n", " ".repeat(indent)));
            }
        }
        out
    }

    fn flow(&mut self, depth: usize) -> String {
        let (open, close) = *self.rng.pick(&[("[", "]"), ("{", "}")]);
        let mut items = Vec::new();
        for _ in 0..self.rng.below(4) {
            let item = if depth < 3 && self.rng.below(4) == 0 {
                self.flow(depth + 1)
            } else {
                (*self.rng.pick(FLOW_SCALARS)).to_owned()
            };
            let key = if open == "{" { format!("k{}: ", items.len()) } else { String::new() };
            items.push(format!("{key}{item}"));
        }
        let comma =
            *self.rng.pick(&[", ", ",", " , ", ",\n      ", ", # c\n      ", "\n\t\n,", "\n      , "]);
        let trailing = *self.rng.pick(&["", "", "", ",", " "]);
        format!("{open}{}{trailing}{close}", items.join(comma))
    }
}

/// Characters with a meaning in YAML.
const MARKS: &[&str] = &[
    " ", "  ", "\n", "\t", ":", "-", "#", "'", "\"", "[", "]", "{", "}", ",", "&a1 ", "*a1", "!", "|", ">",
    "?", "%", "@", "\\", "---\n", "...\n", "\r\n", "\u{a0}", "\u{2028}", "é", "a", "1", "<<", ": ", " #",
    "\u{feff}", "~", "=", "`",
];

/// A few random edits.
fn damage(rng: &mut SeededRng, text: &str) -> String {
    let mut letters: Vec<String> = text.chars().map(String::from).collect();
    for _ in 0..=rng.below(3) {
        let at = rng.below(letters.len() + 1);
        match rng.below(5) {
            0 if at < letters.len() => drop(letters.remove(at)),
            1 if at < letters.len() => (*rng.pick(MARKS)).clone_into(&mut letters[at]),
            2 if at < letters.len() => letters.truncate(at),
            3 if at < letters.len() => {
                let other = rng.below(letters.len());
                letters.swap(at, other);
            }
            _ => letters.insert(at, (*rng.pick(MARKS)).to_owned()),
        }
    }
    letters.concat()
}

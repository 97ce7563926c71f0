//! Generates documents at random in every style, then damages some of them.

use super::seeds::SEEDS;

/// A stream of choices; equal seeds give equal choices.
pub struct Dice(fastrand::Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound.max(1))
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Generates `count` documents, every second one damaged.
pub fn generate(count: usize) -> Vec<String> {
    let mut dice = Dice::new(0xd0c5);
    (0..count)
        .map(|index| {
            let text = match dice.below(3) {
                0 => (*dice.pick(SEEDS)).to_owned(),
                _ => Grower { dice: &mut dice, anchors: 0 }.document(),
            };
            if index % 2 == 0 { text } else { damage(&mut dice, &text) }
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
    dice: &'d mut Dice,
    anchors: usize,
}

impl Grower<'_> {
    fn document(&mut self) -> String {
        let start = *self.dice.pick(&["", "", "---\n", "# top\n---\n", "--- # c\n", "\n\n", "\u{feff}"]);
        let end = *self.dice.pick(&["", "", "", "\n", "...\n", "# end\n", "\n\n\n"]);
        let body = if self.dice.below(12) == 0 { self.flow(0) } else { self.map(0, 0) };
        format!("{start}{body}{end}")
    }

    fn map(&mut self, indent: usize, depth: usize) -> String {
        let mut out = String::new();
        for _ in 0..=self.dice.below(3) {
            let key = self.key(depth);
            let value = self.value(indent, depth);
            out.push_str(&format!("{}{key}:{value}", " ".repeat(indent)));
            if self.dice.below(10) == 0 {
                let gap: &str =
                    self.dice.pick::<&str>(&["\n", "# between\n", "   # indented\n", "  \n", "\t\n"]);
                out.push_str(gap);
            }
        }
        out
    }

    fn key(&mut self, depth: usize) -> String {
        if self.dice.below(15) == 0 {
            return "<<".to_owned();
        }
        let suffix = if self.dice.below(3) == 0 { String::new() } else { format!("{depth}") };
        let key = *self.dice.pick(KEYS);
        if key.ends_with(['\'', '"', '\n', '\t', ' ']) { key.to_owned() } else { format!("{key}{suffix}") }
    }

    /// The text after the colon, including the end of the line.
    fn value(&mut self, indent: usize, depth: usize) -> String {
        let anchor = match self.dice.below(12) {
            0 => {
                self.anchors += 1;
                format!(" &a{}", self.anchors)
            }
            1 if self.anchors > 0 => return format!(" *a{}\n", 1 + self.dice.below(self.anchors)),
            _ => String::new(),
        };
        let deeper = indent + *self.dice.pick(&[1, 2, 2, 2, 4]);
        match self.dice.below(if depth > 3 { 3 } else { 8 }) {
            0 | 1 => format!("{anchor} {}\n", self.dice.pick(BLOCK_SCALARS)),
            2 => format!("{anchor} {}{}", self.dice.pick(BLOCKS), self.block(deeper)),
            3 => format!("{anchor} {}\n", self.flow(depth)),
            4 => format!("{anchor}\n{}", self.map(deeper, depth + 1)),
            5 => format!("{anchor}\n{}", self.list(indent, depth + 1)),
            6 => format!("{anchor}\n{}", self.list(deeper, depth + 1)),
            _ => format!("{anchor}\n"),
        }
    }

    fn list(&mut self, indent: usize, depth: usize) -> String {
        let mut out = String::new();
        for _ in 0..=self.dice.below(3) {
            let pad = " ".repeat(indent);
            let item = match self.dice.below(6) {
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
        for _ in 0..=self.dice.below(4) {
            let line =
                *self.dice.pick(&["text", "", "  more", "# no comment", "a: b", "- x", "é", "\ttab", "end "]);
            if line.is_empty() {
                let gap: &str = self.dice.pick::<&str>(&["\n", "  \n", "         \n"]);
                out.push_str(gap);
            } else {
                out.push_str(&format!("{}{line}\n", " ".repeat(indent)));
            }
        }
        out
    }

    fn flow(&mut self, depth: usize) -> String {
        let (open, close) = *self.dice.pick(&[("[", "]"), ("{", "}")]);
        let mut items = Vec::new();
        for _ in 0..self.dice.below(4) {
            let item = if depth < 3 && self.dice.below(4) == 0 {
                self.flow(depth + 1)
            } else {
                (*self.dice.pick(FLOW_SCALARS)).to_owned()
            };
            let key = if open == "{" { format!("k{}: ", items.len()) } else { String::new() };
            items.push(format!("{key}{item}"));
        }
        let comma =
            *self.dice.pick(&[", ", ",", " , ", ",\n      ", ", # c\n      ", "\n\t\n,", "\n      , "]);
        let trailing = *self.dice.pick(&["", "", "", ",", " "]);
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
fn damage(dice: &mut Dice, text: &str) -> String {
    let mut letters: Vec<String> = text.chars().map(String::from).collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(letters.len() + 1);
        match dice.below(5) {
            0 if at < letters.len() => drop(letters.remove(at)),
            1 if at < letters.len() => (*dice.pick(MARKS)).clone_into(&mut letters[at]),
            2 if at < letters.len() => letters.truncate(at),
            3 if at < letters.len() => {
                let other = dice.below(letters.len());
                letters.swap(at, other);
            }
            _ => letters.insert(at, (*dice.pick(MARKS)).to_owned()),
        }
    }
    letters.concat()
}

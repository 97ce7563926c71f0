//! Writes a parsed pattern in the syntax of `fancy-regex`, with explicit flags where they matter.

use super::parse::ParsedPattern;
use super::syntax::{
    Anchor, CharClass, CharSet, CharSetPart, Flags, Greediness, LookAround, PatternGroup, PatternItem,
    Repeat, Sequence,
};
use super::width;

/// Writes a pattern in the syntax of `fancy-regex`.
pub fn write(parsed: &ParsedPattern) -> String {
    let mut out = String::new();
    branches(&parsed.branches, parsed.flags, Continuation::Nothing, &mut out);
    out
}

/// The context after a part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continuation {
    /// Nothing that follows depends on the position, so the length of the match does not matter.
    Nothing,
    /// An item follows whose match depends on the position.
    Something,
}

fn branches(alternatives: &[Sequence], flags: Flags, follows: Continuation, out: &mut String) {
    for (index, items) in alternatives.iter().enumerate() {
        out.push_str(if index > 0 { "|" } else { "" });
        sequence(items, flags, follows, out);
    }
}

fn sequence(items: &[PatternItem], flags: Flags, follows: Continuation, out: &mut String) {
    for (index, item) in items.iter().enumerate() {
        let is_last = index + 1 == items.len();
        write_item(item, flags, if is_last { follows } else { Continuation::Something }, out);
    }
}

fn write_item(item: &PatternItem, flags: Flags, follows: Continuation, out: &mut String) {
    match item {
        PatternItem::Literal(number) => {
            let parts = vec![CharSetPart::Range(*number, *number)];
            set(&CharSet { negated: false, parts }, flags, out);
        }
        PatternItem::Any => out.push_str(if flags.dot_all { "(?s:.)" } else { "[^\\n]" }),
        PatternItem::Set(these) => set(these, flags, out),
        PatternItem::Anchor(at) => anchor(*at, flags, follows, out),
        PatternItem::Repeat(repeat) => repetition(repeat, flags, follows, out),
        PatternItem::Group(group) => {
            let PatternGroup { number, branches: inner, .. } = group;
            out.push_str(if number.is_some() { "(" } else { "(?:" });
            branches(inner, flags.within(group), follows, out);
            out.push(')');
        }
        PatternItem::Atomic(inner) => {
            out.push_str("(?>");
            branches(inner, flags, follows, out);
            out.push(')');
        }
        PatternItem::LookAround(LookAround { behind, negated, branches: inner }) => {
            out.push_str(match (behind, negated) {
                (false, false) => "(?=",
                (false, true) => "(?!",
                (true, false) => "(?<=",
                (true, true) => "(?<!",
            });
            // A look-ahead consumes nothing; a look-behind must end at its own position.
            let follows = if *behind { Continuation::Something } else { Continuation::Nothing };
            branches(inner, flags, follows, out);
            out.push(')');
        }
        PatternItem::Backreference(number) if flags.ignore_case => out.push_str(&format!("(?i:\\{number})")),
        PatternItem::Backreference(number) => out.push_str(&format!("(?:\\{number})")),
        PatternItem::Conditional { group, yes, no } => {
            out.push_str(&format!("(?({group})(?:"));
            sequence(yes, flags, follows, out);
            out.push_str(")|(?:");
            sequence(no.as_deref().unwrap_or_default(), flags, follows, out);
            out.push_str("))");
        }
    }
}

fn anchor(at: Anchor, flags: Flags, follows: Continuation, out: &mut String) {
    let word = if flags.ascii { "[0-9A-Za-z_]" } else { "[\\p{L}\\p{N}_]" };
    match at {
        Anchor::Start if flags.multiline => out.push_str("(?m:^)"),
        Anchor::Start | Anchor::TextStart => out.push_str("\\A"),
        Anchor::End if flags.multiline => out.push_str("(?m:$)"),
        // Consuming the newline is faster than a look-ahead.
        Anchor::End if follows == Continuation::Nothing => out.push_str("(?:\\n?\\z)"),
        Anchor::End => out.push_str("(?=\\n?\\z)"),
        Anchor::TextEnd => out.push_str("\\z"),
        Anchor::Boundary => out.push_str(&format!("(?:(?<={word})(?!{word})|(?<!{word})(?={word}))")),
        // In Python, an empty text matches neither `\b` nor `\B`.
        Anchor::NoBoundary => {
            out.push_str(&format!("(?!\\A\\z)(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"));
        }
    }
}

fn repetition(repeat: &Repeat, flags: Flags, follows: Continuation, out: &mut String) {
    let Repeat { items: what, min: least, max: most, greediness: greed } = repeat;
    let inner = |follows, out: &mut String| {
        out.push_str("(?:");
        sequence(what, flags, follows, out);
        out.push(')');
    };
    if *most == Some(0) {
        // Groups in this item match nothing, but they must keep their numbers.
        match captures(what) {
            0 => {}
            count => out.push_str(&format!("(?:(?!){}|)", "()".repeat(count))),
        }
        return;
    }
    // The engine does not repeat items of width 0, so they are written once, or as optional.
    if width::of(std::slice::from_ref(what), &[]).is_zero() && !has_backreference(what) {
        out.push_str("(?:");
        inner(Continuation::Something, out);
        out.push_str(if *least == 0 { "|)" } else { ")" });
        return;
    }
    let at_most_once = if *most == Some(1) { follows } else { Continuation::Something };
    out.push_str(if *greed == Greediness::Possessive { "(?>" } else { "" });
    inner(at_most_once, out);
    match (least, most) {
        (0, None) => out.push('*'),
        (1, None) => out.push('+'),
        (0, Some(1)) => out.push('?'),
        (least, None) => out.push_str(&format!("{{{least},}}")),
        (least, Some(most)) => out.push_str(&format!("{{{least},{most}}}")),
    }
    out.push_str(match greed {
        Greediness::Greedy => "",
        Greediness::Lazy => "?",
        Greediness::Possessive => ")",
    });
}

/// Number of capturing groups.
fn captures(items: &[PatternItem]) -> usize {
    let all = |branches: &[Sequence]| branches.iter().map(|items| captures(items)).sum::<usize>();
    let counts = items.iter().map(|item| match item {
        PatternItem::Repeat(repeat) => captures(&repeat.items),
        PatternItem::Group(group) => usize::from(group.number.is_some()) + all(&group.branches),
        PatternItem::Atomic(branches) => all(branches),
        PatternItem::LookAround(look) => all(&look.branches),
        PatternItem::Conditional { yes, no, .. } => {
            captures(yes) + captures(no.as_deref().unwrap_or_default())
        }
        PatternItem::Literal(_)
        | PatternItem::Any
        | PatternItem::Set(_)
        | PatternItem::Anchor(_)
        | PatternItem::Backreference(_) => 0,
    });
    counts.sum()
}

/// Whether an item refers to a group, so that its width is unknown.
fn has_backreference(items: &[PatternItem]) -> bool {
    let any = |branches: &[Sequence]| branches.iter().any(|items| has_backreference(items));
    items.iter().any(|item| match item {
        PatternItem::Backreference(_) | PatternItem::Conditional { .. } => true,
        PatternItem::Repeat(repeat) => has_backreference(&repeat.items),
        PatternItem::Group(group) => any(&group.branches),
        PatternItem::Atomic(branches) => any(branches),
        // A look-around has width 0, even if it refers to a group.
        PatternItem::Literal(_)
        | PatternItem::Any
        | PatternItem::Set(_)
        | PatternItem::Anchor(_)
        | PatternItem::LookAround(_) => false,
    })
}

/// `I` and `i` with and without dots are the same letter for Python if case is ignored.
const DOTTED_I: [u32; 4] = [0x49, 0x69, 0x130, 0x131];

fn set(these: &CharSet, flags: Flags, out: &mut String) {
    let CharSet { negated, parts } = these;
    let (mut ranges, mut kinds) = (String::new(), String::new());
    for part in parts {
        match *part {
            CharSetPart::Range(from, to) => {
                range(from, to, &mut ranges);
                if flags.ignore_case && flags.ascii {
                    other_case(from, to, &mut ranges);
                } else if flags.ignore_case && DOTTED_I.iter().any(|letter| (from..=to).contains(letter)) {
                    for letter in DOTTED_I {
                        range(letter, letter, &mut ranges);
                    }
                }
            }
            CharSetPart::Class { class: of, negated } => char_class(of, negated, flags.ascii, &mut kinds),
        }
    }
    let ignore_case = flags.ignore_case && !flags.ascii && !ranges.is_empty();
    match (ranges.is_empty() && kinds.is_empty(), negated) {
        (true, false) => out.push_str("[^\\x{0}-\\x{10FFFF}]"),
        (true, true) => out.push_str("(?s:.)"),
        (false, true) if ignore_case => out.push_str(&format!("(?i:[^{ranges}{kinds}])")),
        (false, true) => out.push_str(&format!("[^{ranges}{kinds}]")),
        // Case does not apply to character classes.
        (false, false) if ignore_case && kinds.is_empty() => out.push_str(&format!("(?i:[{ranges}])")),
        (false, false) if ignore_case => out.push_str(&format!("(?:(?i:[{ranges}])|[{kinds}])")),
        (false, false) => out.push_str(&format!("[{ranges}{kinds}]")),
    }
}

/// Writes a range without the surrogates, which no string contains.
fn range(from: u32, to: u32, out: &mut String) {
    let from = if (0xD800..0xE000).contains(&from) { 0xE000 } else { from };
    let to = if (0xD800..0xE000).contains(&to) { 0xD7FF } else { to };
    match from.cmp(&to) {
        std::cmp::Ordering::Less => out.push_str(&format!("\\x{{{from:X}}}-\\x{{{to:X}}}")),
        std::cmp::Ordering::Equal => out.push_str(&format!("\\x{{{from:X}}}")),
        std::cmp::Ordering::Greater => {}
    }
}

/// Writes the ASCII letters of a range in the opposite case.
fn other_case(from: u32, to: u32, out: &mut String) {
    for (first, last, other) in [(0x41, 0x5A, 0x61), (0x61, 0x7A, 0x41)] {
        let (from, to) = (from.max(first), to.min(last));
        if from <= to {
            range(from - first + other, to - first + other, out);
        }
    }
}

fn char_class(of: CharClass, negated: bool, ascii: bool, out: &mut String) {
    let inner = match (of, ascii) {
        (CharClass::Digit, false) => "\\p{Nd}",
        (CharClass::Digit, true) => "0-9",
        // Python counts the four ASCII separators as whitespace, but not with the flag `a`.
        (CharClass::Whitespace, false) => "\\s\\x1c-\\x1f",
        (CharClass::Whitespace, true) => "\\t-\\r ",
        (CharClass::Word, false) => "\\p{L}\\p{N}_",
        (CharClass::Word, true) => "0-9A-Za-z_",
    };
    if negated {
        out.push_str(&format!("[^{inner}]"));
    } else {
        out.push_str(inner);
    }
}

//! The syntax tree of a Python pattern.

/// Flags of a pattern, or of a part of it.
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`: case is ignored.
    pub ignore_case: bool,
    /// `m`: `^` and `$` match at the beginning and end of lines.
    pub multiline: bool,
    /// `s`: `.` also matches a newline.
    pub dot_all: bool,
    /// `x`: whitespace and comments are ignored.
    pub verbose: bool,
    /// `a`: `\w` and similar classes match only ASCII.
    pub ascii: bool,
}

/// Items that match one after another.
pub type Sequence = Vec<PatternItem>;

/// One item of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternItem {
    /// A character by its code point, which may be a surrogate.
    Literal(u32),
    /// `.`
    Any,
    /// One character of a set.
    Set(CharSet),
    /// An anchor.
    Anchor(Anchor),
    /// A repetition.
    Repeat(Repeat),
    /// A group.
    Group(PatternGroup),
    /// `(?>…)`
    Atomic(Vec<Sequence>),
    /// A look-ahead or look-behind.
    LookAround(LookAround),
    /// A backreference to a group.
    Backreference(usize),
    /// `(?(1)yes|no)`
    Conditional {
        /// The group whose match is the condition.
        group: usize,
        /// The items that must match if the group matched.
        yes: Sequence,
        /// The items that must match if the group did not match.
        no: Option<Sequence>,
    },
}

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// `^`
    Start,
    /// `$`
    End,
    /// `\A`
    TextStart,
    /// `\Z`
    TextEnd,
    /// `\b`
    Boundary,
    /// `\B`
    NoBoundary,
}

/// A set of characters.
#[derive(Clone, Debug, PartialEq)]
pub struct CharSet {
    /// Whether the set is negated.
    pub negated: bool,
    /// The characters.
    pub parts: Vec<CharSetPart>,
}

/// A part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharSetPart {
    /// A range of characters, inclusive.
    Range(u32, u32),
    /// A character class.
    Class {
        /// The class.
        class: CharClass,
        /// Whether the class is negated.
        negated: bool,
    },
}

/// Character classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharClass {
    /// `\d`
    Digit,
    /// `\s`
    Whitespace,
    /// `\w`
    Word,
}

/// A repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The repeated items.
    pub items: Sequence,
    /// The minimum number of repetitions.
    pub min: u32,
    /// The maximum number of repetitions.
    pub max: Option<u32>,
    /// Whether the repetition is greedy, lazy or possessive.
    pub greediness: Greediness,
}

/// The backtracking mode of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greediness {
    /// Matches as often as possible, and backtracks.
    Greedy,
    /// Matches as rarely as possible.
    Lazy,
    /// Matches as often as possible, and does not backtrack.
    Possessive,
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternGroup {
    /// The number, if the group captures.
    pub number: Option<usize>,
    /// The flags that the group turns on.
    pub on: Flags,
    /// The flags that the group turns off.
    pub off: Flags,
    /// Whether the group turns the flag `a` off, with the flag `u`.
    pub unicode: bool,
    /// The alternatives.
    pub branches: Vec<Sequence>,
}

/// A look-ahead or look-behind.
#[derive(Clone, Debug, PartialEq)]
pub struct LookAround {
    /// Whether the look-around is a look-behind.
    pub behind: bool,
    /// Whether the alternatives must not match.
    pub negated: bool,
    /// The alternatives.
    pub branches: Vec<Sequence>,
}

impl Flags {
    /// The flags within a group.
    pub fn within(self, group: &PatternGroup) -> Self {
        let PatternGroup { on, off, unicode, .. } = group;
        Self {
            ignore_case: (self.ignore_case || on.ignore_case) && !off.ignore_case,
            multiline: (self.multiline || on.multiline) && !off.multiline,
            dot_all: (self.dot_all || on.dot_all) && !off.dot_all,
            verbose: (self.verbose || on.verbose) && !off.verbose,
            ascii: (self.ascii && !unicode) || on.ascii,
        }
    }
}

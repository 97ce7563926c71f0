//! The syntax tree of a Python pattern.

/// Flags of a pattern, or of a part of it.
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`: case is ignored.
    pub ignore_case: bool,
    /// `m`: `^` and `$` match at lines.
    pub multiline: bool,
    /// `s`: `.` matches a newline, too.
    pub dot_all: bool,
    /// `x`: whitespace and comments are ignored.
    pub verbose: bool,
    /// `a`: `\w` and the like match ASCII only.
    pub ascii: bool,
}

/// Items that match one after the other.
pub type Sequence = Vec<Item>;

/// One item of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A character by its code, which may be that of a surrogate.
    Literal(u32),
    /// `.`
    Any,
    /// One character of a set.
    Set(Set),
    /// An anchor.
    At(At),
    /// A repetition.
    Repeat(Repeat),
    /// A group.
    Group(Group),
    /// `(?>…)`
    Atomic(Vec<Sequence>),
    /// A look-ahead or look-behind.
    Look(Look),
    /// A backreference to a group.
    Again(usize),
    /// `(?(1)yes|no)`
    Conditional {
        /// The group whose match is the condition.
        group: usize,
        /// If the group matched.
        yes: Sequence,
        /// If the group did not match.
        no: Option<Sequence>,
    },
}

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
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
pub struct Set {
    /// Whether the set is negated.
    pub negated: bool,
    /// The characters.
    pub parts: Vec<SetPart>,
}

/// A part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetPart {
    /// A range of characters, inclusive.
    Range(u32, u32),
    /// A character class.
    Kind {
        /// The class.
        kind: Kind,
        /// Whether the class is negated.
        negated: bool,
    },
}

/// Character classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `\d`
    Digit,
    /// `\s`
    Blank,
    /// `\w`
    Word,
}

/// A repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The repeated items.
    pub what: Sequence,
    /// The minimum number of repetitions.
    pub least: u32,
    /// The maximum number of repetitions.
    pub most: Option<u32>,
    /// Whether it is greedy, lazy or possessive.
    pub greed: Greed,
}

/// How a repetition backtracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greed {
    /// It matches as often as possible, and backtracks.
    Greedy,
    /// It matches as rarely as possible.
    Lazy,
    /// It matches as often as possible, and does not backtrack.
    Possessive,
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its number, if it captures.
    pub number: Option<usize>,
    /// Flags that are turned on in it.
    pub on: Flags,
    /// Flags that are turned off in it.
    pub off: Flags,
    /// Whether it turns `a` off, by `u`.
    pub unicode: bool,
    /// The alternatives.
    pub branches: Vec<Sequence>,
}

/// A look-ahead or look-behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Whether it is a look-behind.
    pub behind: bool,
    /// Whether it must not match.
    pub negated: bool,
    /// The alternatives.
    pub branches: Vec<Sequence>,
}

impl Flags {
    /// The flags within a group.
    pub fn within(self, group: &Group) -> Self {
        let Group { on, off, unicode, .. } = group;
        Self {
            ignore_case: (self.ignore_case || on.ignore_case) && !off.ignore_case,
            multiline: (self.multiline || on.multiline) && !off.multiline,
            dot_all: (self.dot_all || on.dot_all) && !off.dot_all,
            verbose: (self.verbose || on.verbose) && !off.verbose,
            ascii: (self.ascii && !unicode) || on.ascii,
        }
    }
}

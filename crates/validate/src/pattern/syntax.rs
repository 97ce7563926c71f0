//! A Python pattern, taken apart.

/// Flags of a pattern, or of a part of it.
#[expect(clippy::struct_excessive_bools, reason = "each is on or off, whatever the others are")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`: case does not matter.
    pub ignore_case: bool,
    /// `m`: `^` and `$` are about lines.
    pub multiline: bool,
    /// `s`: `.` is also a newline.
    pub dot_all: bool,
    /// `x`: blanks and comments do not count.
    pub verbose: bool,
    /// `a`: `\w` and its like know ASCII only.
    pub ascii: bool,
}

/// Things one after the other.
pub type Sequence = Vec<Item>;

/// One thing in a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A character by its number, which may be that of a surrogate.
    Literal(u32),
    /// `.`
    Any,
    /// One character of several.
    Set(Set),
    /// A place.
    At(At),
    /// A repetition.
    Repeat(Repeat),
    /// A group.
    Group(Group),
    /// `(?>…)`
    Atomic(Vec<Sequence>),
    /// A look ahead or behind.
    Look(Look),
    /// What a group found, again.
    Again(usize),
    /// `(?(1)yes|no)`
    Conditional {
        /// The group that is asked about.
        group: usize,
        /// If it found something.
        yes: Sequence,
        /// If it did not.
        no: Option<Sequence>,
    },
}

/// A place in a text.
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

/// Several characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Whether all others are meant.
    pub negated: bool,
    /// The characters.
    pub parts: Vec<SetPart>,
}

/// A part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetPart {
    /// Characters from one to another.
    Range(u32, u32),
    /// Characters of a kind.
    Kind {
        /// Which kind.
        kind: Kind,
        /// Whether all others are meant.
        negated: bool,
    },
}

/// Kinds of characters.
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
    /// What is repeated.
    pub what: Sequence,
    /// How often at least.
    pub least: u32,
    /// How often at most.
    pub most: Option<u32>,
    /// How it gives back.
    pub greed: Greed,
}

/// How a repetition gives back what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greed {
    /// It takes all it can, and gives back.
    Greedy,
    /// It takes no more than it must.
    Lazy,
    /// It takes all it can, and gives nothing back.
    Possessive,
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its number, if what it finds is kept.
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

/// A look ahead or behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Whether it looks behind.
    pub behind: bool,
    /// Whether nothing may be found.
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

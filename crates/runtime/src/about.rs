//! What an integration says about itself.

use qontract_graphql::{Named, Operation};

/// A request that is part of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its name in the text.
    pub name: String,
    /// The text.
    pub text: String,
}

impl Query {
    /// The request that `cargo xtask generate` made `Q` of.
    pub fn of<Q: Operation>() -> Self {
        Self { name: Q::NAME.to_owned(), text: Q::TEXT.to_owned() }
    }

    /// As an engine is asked.
    pub(crate) fn named(&self) -> Named<'_> {
        Named { query: &self.text, operation: &self.name }
    }
}

/// What a flag of an integration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// Only shards whose dimension has one of the values.
    Selects(&'static str),
    /// No shards whose dimension has one of the values.
    Excludes(&'static str),
    /// A value for the room.
    Value,
    /// A switch for the integration, without a value.
    Switch,
    /// A switch that selects the shards that have a label, or with `has: false` those that do not.
    Label {
        /// The label.
        label: &'static str,
        /// Whether a shard must have it.
        has: bool,
    },
    /// The number of shards that are processed concurrently.
    Concurrency,
    /// A switch of the established runtime that has no effect here; the text says why.
    Ignored(&'static str),
}

impl FlagKind {
    /// Whether the flag is given without a value.
    pub fn is_switch(self) -> bool {
        match self {
            FlagKind::Switch | FlagKind::Label { .. } | FlagKind::Ignored(_) => true,
            FlagKind::Selects(_) | FlagKind::Excludes(_) | FlagKind::Value | FlagKind::Concurrency => false,
        }
    }
}

/// A flag of an integration on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// What it is good for.
    pub help: &'static str,
    /// What it does.
    pub kind: FlagKind,
    /// The switch that this one turns off: of the two, the last one on the command line counts.
    pub opposite: Option<&'static str>,
}

/// One of two switches that turn each other off.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// What it is good for.
    pub help: &'static str,
    /// What it does.
    pub kind: FlagKind,
}

/// What an integration says about itself.
#[derive(Clone, Debug)]
pub struct About {
    /// Its name: in the data, on the command line, in metrics.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Its declared queries.
    pub queries: Vec<Query>,
    /// Its flags.
    pub flags: Vec<Flag>,
    /// How many rounds a real run has, 1 to [`MOST_ROUNDS`].
    pub rounds: u32,
    /// Whether it looks things up on the way: queries that are not declared, resources by path.
    pub looks_up: LooksUp,
    /// Whether others build on what it makes: where many run side by side, they begin when it has run once.
    pub is_groundwork: bool,
    /// The list of its queries that it works through one by one, if there is one.
    pub one_by_one: Option<OneByOne>,
    /// Whether it may look up more for an element of that list because the element names a resource of this text.
    pub looks_up_more_for: fn(&str) -> bool,
}

/// A list that is worked through one by one: what is declared of an element depends on no other element, but that two of them may be in each
/// other's way.
#[derive(Clone, Copy, Debug)]
pub struct OneByOne {
    /// The key of the list in the answer.
    pub list: &'static str,
    /// Two elements are in each other's way only if their datafiles have the same text under one of these keys; upper and lower case, and slashes
    /// at the end, make no difference.
    pub unlike: &'static [&'static str],
    /// Other lists of the answer, whose elements concern an element only if what is answered about them is read from its datafile, or from that of
    /// another element that could be in its way. They lead there by references.
    pub joined: &'static [&'static str],
}

impl OneByOne {
    /// Normalises a text for comparison: texts that differ only in case, trailing slashes or a URL's default port name the same thing. Integrations
    /// that look for conflicts between elements compare by it.
    pub fn loosely(text: &str) -> String {
        qontract_graphql::loosely(text)
    }
}

/// Whether an integration looks things up on the way: queries that are not declared, resources by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksUp {
    /// It does not.
    Never,
    /// It does while it declares, and later only what it looked up then: all answers are in its declared state. If it works through a list one by
    /// one, it looks up for an element the resources that the element names, and more only if [one of those](About::looks_up_more_for) makes it.
    ToDeclare,
    /// Whenever it likes: what is declared does not tell what its outcome depends on.
    Always,
}

/// More rounds than this are never made in one run.
pub const MOST_ROUNDS: u32 = 3;

impl About {
    /// An integration without queries and flags.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let (name, description) = (name.into(), description.into());
        Self {
            name,
            description,
            queries: Vec::new(),
            flags: Vec::new(),
            rounds: 1,
            looks_up: LooksUp::Never,
            is_groundwork: false,
            one_by_one: None,
            looks_up_more_for: |_| true,
        }
    }

    /// With a declared query.
    #[must_use]
    pub fn query<Q: Operation>(mut self) -> Self {
        self.queries.push(Query::of::<Q>());
        self
    }

    /// With a flag that selects shards by a dimension.
    #[must_use]
    pub fn selects(self, flag: &'static str, dimension: &'static str) -> Self {
        let help = "Only what is of this one; may be given several times";
        self.flag(flag, help, FlagKind::Selects(dimension))
    }

    /// With a flag that leaves out shards by a dimension.
    #[must_use]
    pub fn excludes(self, flag: &'static str, dimension: &'static str) -> Self {
        let help = "All but what is of this one; may be given several times";
        self.flag(flag, help, FlagKind::Excludes(dimension))
    }

    /// With a flag of this kind.
    #[must_use]
    pub fn flag(mut self, name: &'static str, help: &'static str, kind: FlagKind) -> Self {
        self.flags.push(Flag { name, help, kind, opposite: None });
        self
    }

    /// With two switches that turn each other off.
    #[must_use]
    pub fn switches(mut self, one: Switch, other: Switch) -> Self {
        let flag = |switch: Switch, opposite: &'static str| {
            let Switch { name, help, kind } = switch;
            Flag { name, help, kind, opposite: Some(opposite) }
        };
        self.flags.extend([flag(one, other.name), flag(other, one.name)]);
        self
    }

    /// With others that build on what it makes.
    #[must_use]
    pub fn groundwork(mut self) -> Self {
        self.is_groundwork = true;
        self
    }

    /// With a list that is worked through one by one; see [`OneByOne`].
    #[must_use]
    pub fn one_by_one(mut self, list: &'static str, unlike: &'static [&'static str]) -> Self {
        self.one_by_one = Some(OneByOne { list, unlike, joined: &[] });
        self
    }

    /// With other lists that concern elements of the one that is [worked through one by one](Self::one_by_one), which is said before.
    #[must_use]
    pub fn joined(mut self, joined: &'static [&'static str]) -> Self {
        let one_by_one = self.one_by_one.as_mut().expect("a list that is worked through one by one");
        one_by_one.joined = joined;
        self
    }

    /// With resources that do not make it look up more: those of whose text this is not true.
    #[must_use]
    pub fn looks_up_more_for(mut self, looks_up_more_for: fn(&str) -> bool) -> Self {
        self.looks_up_more_for = looks_up_more_for;
        self
    }

    /// With this many rounds.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds.clamp(1, MOST_ROUNDS);
        self
    }

    /// Allowed to ask queries that are not declared, and to read resources by path.
    #[must_use]
    pub fn looks_up(mut self) -> Self {
        self.looks_up = LooksUp::Always;
        self
    }

    /// The same, and all that it is answered is in its declared state.
    #[must_use]
    pub fn looks_up_to_declare(mut self) -> Self {
        self.looks_up = LooksUp::ToDeclare;
        self
    }
}

//! Integration metadata: name, declared queries, flags, and the properties that incremental comparison relies
//! on.

use qontract_graphql::{NamedOperation, Operation};

/// A GraphQL query that an integration declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredQuery {
    /// The name of its operation.
    pub name: String,
    /// The GraphQL document.
    pub text: String,
}

impl DeclaredQuery {
    /// The query from which `cargo xtask generate` generated `Q`.
    pub fn of<Q: Operation>() -> Self {
        Self { name: Q::SOURCE.name().to_owned(), text: Q::SOURCE.text() }
    }

    /// The query as an operation for the GraphQL engine.
    pub(crate) fn operation(&self) -> NamedOperation<'_> {
        NamedOperation { query: &self.text, operation: &self.name }
    }
}

/// The effect of an integration's flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// Selects shards whose dimension has one of the values.
    Selects(&'static str),
    /// Excludes shards whose dimension has one of the values.
    Excludes(&'static str),
    /// Passes a value to the integration.
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
    /// A switch of qontract-reconcile that has no effect here, with the reason.
    Ignored(&'static str),
}

impl FlagKind {
    /// Whether the flag takes no value.
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
    /// Its help text.
    pub help: &'static str,
    /// Its effect.
    pub kind: FlagKind,
    /// The switch that this one turns off; the last one on the command line wins.
    pub opposite: Option<&'static str>,
}

/// One of two switches that turn each other off.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// Its effect.
    pub kind: FlagKind,
}

/// The metadata of an integration.
///
/// ```
/// use qontract_runtime::{AdHocReads, IntegrationMeta, MAX_ROUNDS};
///
/// let meta = IntegrationMeta::new("groups", "Creates a group for each team")
///     .selects("cluster-name", "cluster")
///     .rounds(99)
///     .reads_ad_hoc_during_declare();
/// assert_eq!((meta.flags[0].name, meta.rounds), ("cluster-name", MAX_ROUNDS));
/// assert_eq!(meta.ad_hoc_reads, AdHocReads::DuringDeclare);
/// ```
#[derive(Clone, Debug)]
pub struct IntegrationMeta {
    /// Its name in the data, on the command line and in metrics.
    pub name: String,
    /// A one-sentence description.
    pub description: String,
    /// Its declared queries.
    pub queries: Vec<DeclaredQuery>,
    /// Its flags.
    pub flags: Vec<Flag>,
    /// Number of rounds of a real run, 1 to [`MAX_ROUNDS`].
    pub rounds: u32,
    /// When it makes ad-hoc reads: queries that it does not declare, and resources by path.
    pub ad_hoc_reads: AdHocReads,
    /// Whether other integrations depend on the objects it creates. Where many run concurrently, the others
    /// start after its first run.
    pub runs_first: bool,
    /// The list in its query results whose elements it declares independently of each other, if any.
    pub independent_list: Option<IndependentList>,
    /// Whether a resource with this content, named by an element of that list, may cause further ad-hoc reads
    /// for the element.
    pub triggers_ad_hoc_reads: fn(&str) -> bool,
}

/// A list whose elements are declared independently: the declared state of an element depends on other
/// elements only if they conflict with it. The comparison of a change to some elements then declares only
/// those elements and the ones that they can conflict with.
#[derive(Clone, Copy, Debug)]
pub struct IndependentList {
    /// The key of the list in the query result.
    pub list: &'static str,
    /// Two elements can conflict only if their datafiles have the same value for one of these keys (compared
    /// case-insensitively, trailing slashes ignored).
    pub conflict_keys: &'static [&'static str],
    /// Other lists in the query result. An element of such a list affects an element of this list only if its
    /// part of the result is read, through references, from the datafile of that element or of one that can
    /// conflict with it.
    pub joined_lists: &'static [&'static str],
}

impl IndependentList {
    /// Normalizes a conflict key: values that differ only in case, trailing slashes or a URL's default port
    /// are equal. Integrations that detect conflicts between elements must compare normalized values.
    pub fn normalize_key(text: &str) -> String {
        qontract_graphql::normalize_key(text)
    }
}

/// When an integration makes ad-hoc reads: queries that it does not declare, and resources by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdHocReads {
    /// Never.
    Never,
    /// During `declare`; later phases repeat only those reads. All results are part of the declared state. If
    /// the integration declares the elements of a list independently, it reads for each element the resources
    /// that the element names, and further ones only if [a resource triggers
    /// them](IntegrationMeta::triggers_ad_hoc_reads).
    DuringDeclare,
    /// In any phase: the declared state does not determine the outcome.
    Anytime,
}

/// Maximum number of rounds of one run.
pub const MAX_ROUNDS: u32 = 3;

impl IntegrationMeta {
    /// Metadata without queries and flags.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let (name, description) = (name.into(), description.into());
        Self {
            name,
            description,
            queries: Vec::new(),
            flags: Vec::new(),
            rounds: 1,
            ad_hoc_reads: AdHocReads::Never,
            runs_first: false,
            independent_list: None,
            triggers_ad_hoc_reads: |_| true,
        }
    }

    /// Adds a declared query.
    #[must_use]
    pub fn query<Q: Operation>(mut self) -> Self {
        self.queries.push(DeclaredQuery::of::<Q>());
        self
    }

    /// Adds a flag that selects shards by a dimension.
    #[must_use]
    pub fn selects(self, flag: &'static str, dimension: &'static str) -> Self {
        let help = "Select only shards with this value; can be repeated";
        self.flag(flag, help, FlagKind::Selects(dimension))
    }

    /// Adds a flag that excludes shards by a dimension.
    #[must_use]
    pub fn excludes(self, flag: &'static str, dimension: &'static str) -> Self {
        let help = "Exclude shards with this value; can be repeated";
        self.flag(flag, help, FlagKind::Excludes(dimension))
    }

    /// Adds a flag of this kind.
    #[must_use]
    pub fn flag(mut self, name: &'static str, help: &'static str, kind: FlagKind) -> Self {
        self.flags.push(Flag { name, help, kind, opposite: None });
        self
    }

    /// Adds two switches that turn each other off.
    #[must_use]
    pub fn switches(mut self, one: Switch, other: Switch) -> Self {
        let flag = |switch: Switch, opposite: &'static str| {
            let Switch { name, help, kind } = switch;
            Flag { name, help, kind, opposite: Some(opposite) }
        };
        self.flags.extend([flag(one, other.name), flag(other, one.name)]);
        self
    }

    /// Declares that other integrations depend on the objects that it creates.
    #[must_use]
    pub fn runs_first(mut self) -> Self {
        self.runs_first = true;
        self
    }

    /// Declares that the elements of a list are declared independently; see [`IndependentList`].
    #[must_use]
    pub fn independent_list(mut self, list: &'static str, conflict_keys: &'static [&'static str]) -> Self {
        self.independent_list = Some(IndependentList { list, conflict_keys, joined_lists: &[] });
        self
    }

    /// Adds lists whose elements affect elements of the [independent list](Self::independent_list), which must be
    /// set before.
    #[must_use]
    pub fn joined_lists(mut self, joined: &'static [&'static str]) -> Self {
        let independent = self.independent_list.as_mut().expect("the independent list is set first");
        independent.joined_lists = joined;
        self
    }

    /// Sets the predicate for resource contents that trigger further ad-hoc reads.
    #[must_use]
    pub fn triggers_ad_hoc_reads(mut self, predicate: fn(&str) -> bool) -> Self {
        self.triggers_ad_hoc_reads = predicate;
        self
    }

    /// Sets the number of rounds.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds.clamp(1, MAX_ROUNDS);
        self
    }

    /// Allows ad-hoc queries and resources by path in any phase.
    #[must_use]
    pub fn reads_ad_hoc(mut self) -> Self {
        self.ad_hoc_reads = AdHocReads::Anytime;
        self
    }

    /// Allows ad-hoc queries and resources by path during `declare`. All results must be part of the declared
    /// state.
    #[must_use]
    pub fn reads_ad_hoc_during_declare(mut self) -> Self {
        self.ad_hoc_reads = AdHocReads::DuringDeclare;
        self
    }
}

//! The flags and arguments of an integration on the command line.

/// The effect of an integration's flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// Selects shards whose dimension has one of the values.
    Selects(&'static str),
    /// Excludes shards whose dimension has one of the values.
    Excludes(&'static str),
    /// Passes a value to the integration.
    Value,
    /// A positional argument, which passes a value to the integration.
    Argument(ArgumentKind),
    /// A switch for the integration, without a value.
    Switch,
    /// A switch that prints the desired state instead of reconciling it.
    Print,
    /// A switch that selects the shards with a label, or, with `has: false`, the shards without it.
    Label {
        /// The label by which shards are selected.
        label: &'static str,
        /// Whether a shard must have the label.
        has: bool,
    },
    /// The number of shards that are processed concurrently.
    Concurrency,
    /// A switch of qontract-reconcile that has no effect in qontract, with the reason.
    Ignored(&'static str),
}

/// The number of times that a positional argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// The argument is given exactly once.
    Required,
    /// The argument is given at most once.
    Optional,
    /// The argument is given any number of times. Only the last argument can be repeated.
    Repeated,
}

impl FlagKind {
    /// Whether the flag takes no value.
    pub fn is_switch(self) -> bool {
        match self {
            FlagKind::Switch | FlagKind::Print | FlagKind::Label { .. } | FlagKind::Ignored(_) => true,
            FlagKind::Selects(_)
            | FlagKind::Excludes(_)
            | FlagKind::Value
            | FlagKind::Argument(_)
            | FlagKind::Concurrency => false,
        }
    }

    /// Whether an environment variable for the flag can hold several values, separated by white space.
    pub(crate) fn takes_several(self) -> bool {
        matches!(
            self,
            FlagKind::Selects(_) | FlagKind::Excludes(_) | FlagKind::Argument(ArgumentKind::Repeated)
        )
    }
}

/// A flag or an argument of an integration on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag's name, without the leading dashes.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The effect of the flag.
    pub kind: FlagKind,
    /// The switch that this switch turns off; the last one on the command line takes precedence.
    pub opposite: Option<&'static str>,
    /// The short option, without the dash.
    pub short: Option<char>,
    /// The environment variable that provides the value if the flag is not given.
    pub variable: Option<&'static str>,
    /// Whether the integration declares only a part of its shards if the flag is given.
    pub restricts: bool,
}

impl Flag {
    /// Creates a flag without a short option and without a variable.
    pub const fn new(name: &'static str, help: &'static str, kind: FlagKind) -> Self {
        Self { name, help, kind, opposite: None, short: None, variable: None, restricts: false }
    }

    /// The syntax on the command line: `--cluster-name`, or `PROJECT` for an argument.
    pub fn spelling(&self) -> String {
        match self.kind {
            FlagKind::Argument(_) => self.placeholder(),
            _ => format!("--{}", self.name),
        }
    }

    /// The name of the flag's value in help texts.
    pub fn placeholder(&self) -> String {
        match self.kind {
            FlagKind::Selects(dimension) | FlagKind::Excludes(dimension) => dimension.to_uppercase(),
            FlagKind::Argument(_) => self.name.to_uppercase().replace('-', "_"),
            FlagKind::Concurrency => "N".to_owned(),
            FlagKind::Value
            | FlagKind::Switch
            | FlagKind::Print
            | FlagKind::Label { .. }
            | FlagKind::Ignored(_) => "VALUE".to_owned(),
        }
    }
}

/// One of two switches that turn each other off.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// The switch's name, without the leading dashes.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The effect of the switch.
    pub kind: FlagKind,
}

/// Short options that are reserved for the runner.
const RESERVED_SHORTS: [char; 5] = ['V', 'h', 'o', 'q', 'v'];

/// Whether a short option is reserved for the runner.
pub fn is_reserved_short(short: char) -> bool {
    RESERVED_SHORTS.contains(&short)
}

/// The reason why these flags cannot be combined on one command line, if any.
///
/// ```
/// use qontract_runtime::{ArgumentKind, IntegrationMeta, flags_error};
///
/// let meta = IntegrationMeta::new("compliance", "Checks forks")
///     .argument("group", "The group", ArgumentKind::Optional)
///     .argument("project", "The project", ArgumentKind::Required);
/// let error = flags_error(&meta.flags).unwrap();
/// assert_eq!(error, "the argument `PROJECT` is required, but follows one that is not");
/// ```
pub fn flags_error(flags: &[Flag]) -> Option<String> {
    let arguments = || {
        flags.iter().filter_map(|flag| match flag.kind {
            FlagKind::Argument(kind) => Some((flag, kind)),
            _ => None,
        })
    };
    for ((_, before), (flag, kind)) in arguments().zip(arguments().skip(1)) {
        let name = flag.placeholder();
        match (before, kind) {
            (ArgumentKind::Repeated, _) => {
                return Some(format!("the argument `{name}` follows one that can be repeated"));
            }
            (ArgumentKind::Optional, ArgumentKind::Required) => {
                return Some(format!("the argument `{name}` is required, but follows one that is not"));
            }
            (ArgumentKind::Required | ArgumentKind::Optional, _) => {}
        }
    }
    for (index, flag) in flags.iter().enumerate() {
        let name = flag.spelling();
        if flags[..index].iter().any(|other| other.name == flag.name) {
            return Some(format!("the flag `{}` is defined twice", flag.name));
        }
        if flag.variable.is_some() && matches!(flag.kind, FlagKind::Print | FlagKind::Ignored(_)) {
            return Some(format!("`{name}` cannot take its value from a variable"));
        }
        let Some(short) = flag.short else { continue };
        if matches!(flag.kind, FlagKind::Argument(_)) {
            return Some(format!("the argument `{name}` cannot have a short option"));
        }
        if !short.is_ascii_alphanumeric() || is_reserved_short(short) {
            return Some(format!("the short option `-{short}` of `{name}` is reserved"));
        }
        if flags[..index].iter().any(|other| other.short == Some(short)) {
            return Some(format!("the short option `-{short}` of `{name}` is defined twice"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{ArgumentKind, flags_error};
    use crate::meta::IntegrationMeta;

    fn check(meta: impl FnOnce(IntegrationMeta) -> IntegrationMeta, expect: Option<&str>) {
        let meta = meta(IntegrationMeta::new("x", ""));
        assert_eq!(flags_error(&meta.flags).as_deref(), expect);
    }

    #[test]
    fn flags_that_cannot_be_parsed_are_refused() {
        use ArgumentKind::{Optional, Repeated, Required};
        check(
            |meta| meta.argument("a", "", Required).argument("b", "", Optional).argument("c", "", Repeated),
            None,
        );
        check(
            |meta| meta.argument("a", "", Repeated).argument("b", "", Optional),
            Some("the argument `B` follows one that can be repeated"),
        );
        check(
            |meta| meta.argument("a", "", Required).short('a'),
            Some("the argument `A` cannot have a short option"),
        );
        check(|meta| meta.selects("a", "b").short('o'), Some("the short option `-o` of `--a` is reserved"));
        check(
            |meta| meta.selects("a", "b").short('r').excludes("c", "d").short('r'),
            Some("the short option `-r` of `--c` is defined twice"),
        );
        check(|meta| meta.selects("a", "b").selects("a", "c"), Some("the flag `a` is defined twice"));
        check(|meta| meta.prints("p", "").variable("P"), Some("`--p` cannot take its value from a variable"));
    }
}

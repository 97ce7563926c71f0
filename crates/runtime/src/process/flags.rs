//! Validates the flags that programs describe.

use std::collections::BTreeSet;

use super::program::is_secret_name;
use super::wire::WireFlag;
use crate::flag::{Flag, FlagKind, flags_error};

/// Flag names that are reserved for the runner.
const RESERVED_FLAGS: [&str; 37] = [
    "all-shards",
    "base",
    "check-only-affected-shards",
    "color",
    "config",
    "data",
    "detailed-exitcode",
    "dry-run",
    "dump-schemas",
    "early-exit-compare-sha",
    "every",
    "failed-of",
    "full",
    "gql-sha-url",
    "gql-url-print",
    "help",
    "listen",
    "log-format",
    "log-level",
    "no-dry-run",
    "no-gql-sha-url",
    "no-gql-url-print",
    "no-validate",
    "no-validate-schemas",
    "output",
    "quiet",
    "repo",
    "runs",
    "sandbox",
    "shard",
    "shard-id",
    "shards",
    "trust-head",
    "validate-schemas",
    "verbose",
    "version",
    "wait",
];

/// Whether a flag name is reserved for the runner.
pub fn is_reserved(name: &str) -> bool {
    RESERVED_FLAGS.contains(&name)
}

/// Creates the flags of a program from its description; fails if one of them is invalid. `environment` contains the
/// variables that the program's registration passes to the program.
///
/// **Invariant:** a flag takes its value only from a variable that the operator passes to the program anyway, and
/// never from a variable that may contain a secret. Otherwise a program could choose which parts of the environment
/// it reads.
pub(super) fn program_flags(
    wires: Vec<WireFlag>,
    environment: &BTreeSet<String>,
) -> Result<Vec<Flag>, String> {
    for flag in &wires {
        if let Some(why) = flag_name_error(&flag.name, &wires) {
            return Err(format!("the flag `{}` {why}", flag.name));
        }
        let Some(variable) = &flag.variable else { continue };
        if is_secret_name(variable) || !environment.contains(variable) {
            return Err(format!(
                "the flag `{}` takes its value from `{variable}`, which is not in its `environment`",
                flag.name
            ));
        }
    }
    let flags = wires.into_iter().map(flag).collect::<Result<Vec<Flag>, String>>()?;
    flags_error(&flags).map_or(Ok(flags), Err)
}

/// Creates a flag of a program. The strings of the flag are leaked deliberately: a flag lives as long as this
/// process, and each program is described only once.
fn flag(wire: WireFlag) -> Result<Flag, String> {
    let WireFlag { name, help, dimension, short, variable, argument, print } = wire;
    let kind = match (dimension, argument, print) {
        (None, None, false) => FlagKind::Value,
        (Some(dimension), None, false) => FlagKind::Selects(dimension.leak()),
        (None, Some(argument), false) => FlagKind::Argument(argument.into()),
        (None, None, true) => FlagKind::Print,
        _ => {
            return Err(format!(
                "the flag `{name}` has more than one of `dimension`, `argument` and `print`"
            ));
        }
    };
    let variable = variable.map(|variable| &*variable.leak());
    Ok(Flag { short, variable, ..Flag::new(name.leak(), help.leak(), kind) })
}

/// The reason why a flag name is invalid; `None` if it is valid.
fn flag_name_error(name: &str, others: &[WireFlag]) -> Option<&'static str> {
    let fine = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    let begins = name.starts_with(|one: char| one.is_ascii_lowercase());
    if !begins || !name.chars().all(fine) {
        return Some(
            "must begin with a lowercase letter and consist of lowercase letters, digits and dashes",
        );
    }
    if RESERVED_FLAGS.contains(&name) {
        return Some("is reserved for the runner");
    }
    (others.iter().filter(|flag| flag.name == name).count() > 1).then_some("is defined twice")
}

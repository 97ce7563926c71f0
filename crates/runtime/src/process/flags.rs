//! The names of the flags of programs.

use super::wire::WireFlag;

/// Flag names that are reserved for the runner.
const RESERVED_FLAGS: [&str; 35] = [
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

/// The reason why a flag name is invalid, if it is.
pub(super) fn flag_name_error(name: &str, others: &[WireFlag]) -> Option<&'static str> {
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

//! Picks the closest branch of an `anyOf` or `oneOf` that a value does not match.

use std::collections::BTreeSet;

use crate::failure::{AllowedValues, FailureKind, SchemaFailure};

/// The result of comparing a value with branches that it does not match.
pub enum BranchMatch {
    /// The index of the closest branch, and the failures of that branch.
    Closest(usize, Vec<SchemaFailure>),
    /// One failure that all branches have in common.
    Common(SchemaFailure),
    /// Each branch fails only because one field is missing: one of these fields is required.
    MissingOneOf(Vec<String>),
    /// No branch is closer than all other branches.
    Undecided,
}

/// Finds the branch that the author of the value at `base` probably intended.
pub fn closest_branch(base: &str, branches: &[Vec<SchemaFailure>]) -> BranchMatch {
    if let Some(fields) = missing_everywhere(base, branches) {
        return BranchMatch::MissingOneOf(fields);
    }
    if let Some(failure) = common_failure(base, branches) {
        return BranchMatch::Common(failure);
    }
    let mut ranked: Vec<(BranchRank, usize)> = branches
        .iter()
        .enumerate()
        .map(|(index, failures)| (BranchRank::of(base, failures), index))
        .collect();
    ranked.sort_unstable();
    match ranked.as_slice() {
        [(best, index)] if !best.other_type => BranchMatch::Closest(*index, branches[*index].clone()),
        [(best, index), (next, _), ..] if best < next && !best.other_type => {
            BranchMatch::Closest(*index, branches[*index].clone())
        }
        _ => BranchMatch::Undecided,
    }
}

/// The distance of a value from a branch; the branch with the least distance is the closest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct BranchRank {
    /// Whether the whole value has a different type.
    other_type: bool,
    /// Number of fields whose value belongs to another branch.
    other_kind: usize,
    /// Number of other failures.
    wrong: usize,
}

impl BranchRank {
    fn of(base: &str, failures: &[SchemaFailure]) -> Self {
        let mut rank = BranchRank { other_type: false, other_kind: 0, wrong: 0 };
        for failure in failures {
            match &failure.kind {
                FailureKind::Type(_) if failure.pointer == base => rank.other_type = true,
                FailureKind::Enum(_) if is_child(base, &failure.pointer) => rank.other_kind += 1,
                FailureKind::UnknownFields(names) => rank.wrong += names.len(),
                _ => rank.wrong += 1,
            }
        }
        rank
    }
}

fn is_child(base: &str, pointer: &str) -> bool {
    pointer.strip_prefix(base).is_some_and(|rest| rest.starts_with('/') && !rest[1..].contains('/'))
}

/// The missing fields, if every branch fails only because one field is missing.
fn missing_everywhere(base: &str, branches: &[Vec<SchemaFailure>]) -> Option<Vec<String>> {
    let fields = branches.iter().map(|failures| match failures.as_slice() {
        [SchemaFailure { pointer, kind: FailureKind::MissingField(field), .. }] if pointer == base => {
            Some(field.clone())
        }
        _ => None,
    });
    fields.collect::<Option<Vec<_>>>().filter(|fields| fields.len() > 1)
}

/// One failure for all branches, if each branch requires a different type of the value or a different value
/// of the same field.
fn common_failure(base: &str, branches: &[Vec<SchemaFailure>]) -> Option<SchemaFailure> {
    let first = branches.first()?;
    first.iter().find_map(|candidate| match &candidate.kind {
        FailureKind::Type(_) if candidate.pointer == base => {
            let mut all = Vec::new();
            for failures in branches {
                let types = failures.iter().find_map(|failure| match &failure.kind {
                    FailureKind::Type(types) if failure.pointer == base => Some(types),
                    _ => None,
                })?;
                for name in types {
                    if !all.contains(name) {
                        all.push(name.clone());
                    }
                }
            }
            Some(SchemaFailure { kind: FailureKind::Type(all), ..candidate.clone() })
        }
        FailureKind::Enum(_) if candidate.pointer == base || is_child(base, &candidate.pointer) => {
            let (mut all, mut known) = (Vec::new(), BTreeSet::new());
            for failures in branches {
                let values = failures.iter().find_map(|failure| match &failure.kind {
                    FailureKind::Enum(AllowedValues(values)) if failure.pointer == candidate.pointer => {
                        Some(values)
                    }
                    _ => None,
                })?;
                all.extend(values.iter().filter(|value| known.insert(value.to_string())).cloned());
            }
            Some(SchemaFailure { kind: FailureKind::Enum(AllowedValues(all.into())), ..candidate.clone() })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failure(pointer: &str, wrong: FailureKind) -> SchemaFailure {
        SchemaFailure { pointer: pointer.to_owned(), keyword: None, kind: wrong }
    }

    #[test]
    fn the_branch_of_the_same_kind_is_the_closest() {
        let other = vec![failure("/a/provider", FailureKind::Enum(AllowedValues([json!("http")].into())))];
        let meant = vec![
            failure("/a", FailureKind::MissingField("x".to_owned())),
            failure("/a/y", FailureKind::Pattern),
        ];
        let BranchMatch::Closest(1, failures) = closest_branch("/a", &[other, meant.clone()]) else {
            panic!("the second")
        };
        assert_eq!(failures, meant);
    }

    #[test]
    fn a_kind_that_no_branch_allows_is_one_failure() {
        let branch =
            |name: &str| vec![failure("/a/provider", FailureKind::Enum(AllowedValues([json!(name)].into())))];
        let BranchMatch::Common(same) = closest_branch("/a", &[branch("http"), branch("tcp")]) else {
            panic!("one")
        };
        assert_eq!(
            same,
            failure("/a/provider", FailureKind::Enum(AllowedValues([json!("http"), json!("tcp")].into())))
        );
    }

    #[test]
    fn branches_that_each_lack_a_field_are_reported_together() {
        let branch = |name: &str| vec![failure("", FailureKind::MissingField(name.to_owned()))];
        let BranchMatch::MissingOneOf(fields) = closest_branch("", &[branch("a"), branch("b")]) else {
            panic!("fields")
        };
        assert_eq!(fields, ["a", "b"]);
    }
}

//! Early exit: ends a dry run whose declared state is equal in base and head, and records why any other run
//! continues.

use std::collections::{BTreeMap, BTreeSet};

use qontract_diagnostics::pluralize;

use crate::affected::{AffectedVerdict, BundlePair, DeclaredPair, Impact, affected};
use crate::declared_cache::SharedDeclaredState;
use crate::integration::Integration;
use crate::key::ShardKey;
use crate::outcome::{Decision, RunEnd, RunOutcome};
use crate::run_request::RunRequest;
use crate::source_location::SourceLocation;
use crate::state::{Comparison, Difference};

/// Maximum number of locations that are listed with a decision.
const MAX_PLACES: usize = 10;

/// The declared states of base and head, and their differences if they were compared.
#[derive(Default)]
pub struct ComparedStates {
    /// The declared state of head.
    pub head: Option<SharedDeclaredState>,
    /// The declared state of base.
    pub base: Option<SharedDeclaredState>,
    /// The differences, if only the differing shards run.
    pub differs: Option<Comparison>,
    /// The differences of each shard, even if all shards run.
    pub differences: BTreeMap<ShardKey, Vec<Difference>>,
    /// Shards that exist only in base.
    pub gone: BTreeSet<ShardKey>,
}

/// Compares base and head in a dry run; returns `None` if no difference affects the integration.
pub fn compare_states(
    integration: &Integration,
    request: &RunRequest,
    pair: &BundlePair,
    outcome: &mut RunOutcome,
) -> Option<ComparedStates> {
    let mut decide =
        |text: String, places: Vec<SourceLocation>| outcome.decisions.push(Decision { text, places });
    match affected(integration, pair, &request.options) {
        AffectedVerdict::Unaffected(rule) => {
            let (base, head) = (short_sha(pair.base.sha()), short_sha(pair.head.sha()));
            decide(format!("no change between {base} and {head} ({})", rule.as_str()), Vec::new());
            if request.include_unaffected {
                // Only the addresses of base may be contacted.
                let base = integration.declare(&pair.base, &request.options).ok().flatten();
                return Some(ComparedStates { base, ..ComparedStates::default() });
            }
            outcome.ended = RunEnd::EarlyExit;
            None
        }
        AffectedVerdict::Unknown(fault) => {
            decide(format!("all shards run: base and head could not be compared: {fault}"), Vec::new());
            // If only base can be declared, only its addresses may be contacted.
            let base = integration.declare(&pair.base, &request.options).ok().flatten();
            Some(ComparedStates { base, ..ComparedStates::default() })
        }
        AffectedVerdict::Affected(found) => {
            let Impact { rule, causes, comparison, all, states } = *found;
            let mut places: Vec<SourceLocation> =
                causes.iter().filter_map(|cause| cause.place.clone()).collect();
            let files: BTreeSet<_> =
                causes.iter().map(|cause| cause.place.as_ref().map(|place| &place.path)).collect();
            let text = format!("affected by {} ({})", pluralize(files.len(), "file"), rule.as_str());
            let more = if places.len() > MAX_PLACES { ", including:" } else { "" };
            let all_places = places.clone();
            places.truncate(MAX_PLACES);
            decide(format!("{text}{more}"), places);
            let flags = &integration.meta().flags;
            let differing = comparison.iter().flat_map(|comparison| &comparison.shards);
            // Shards that the flags or the slot exclude are not part of the run.
            let is_selected = |key: &ShardKey| {
                request.options.select(flags, key)
                    && request.slot.contains(&integration.meta().slot_value(key))
                    && request.selects(key)
            };
            for (key, differences) in differing.filter(|(key, _)| is_selected(key)) {
                for (text, place) in difference_texts(key, differences) {
                    decide(text, place.into_iter().collect());
                }
            }
            // The differences are known already. The complete declared state of base is still needed, because it
            // names the trusted addresses.
            let (base, head) = match states {
                Some(DeclaredPair { base, head }) => (Some(base), Some(head)),
                None => match integration.declare(&pair.base, &request.options) {
                    Ok(base) => (base, None),
                    Err(fault) => {
                        decide(format!("all shards run: base could not be read: {fault}"), Vec::new());
                        return Some(ComparedStates::default());
                    }
                },
            };
            outcome.causes = all_places;
            let renamed = causes.into_iter().filter_map(|cause| cause.place.zip(cause.renamed_from));
            outcome.renamed = renamed.collect();
            let gone = comparison.as_ref().map(|comparison| comparison.gone.clone()).unwrap_or_default();
            let differences =
                comparison.as_ref().map(|comparison| comparison.shards.clone()).unwrap_or_default();
            let differs = comparison.filter(|_| request.only_affected && !all);
            Some(ComparedStates { head, base, differs, differences, gone })
        }
    }
}

/// Describes the differences of a shard, with one message for each location.
fn difference_texts(key: &ShardKey, differences: &[Difference]) -> Vec<(String, Option<SourceLocation>)> {
    let mut by_place: Vec<(&Difference, usize)> = Vec::new();
    for difference in differences {
        match by_place.iter_mut().find(|(first, _)| first.place == difference.place) {
            Some((_, more)) => *more += 1,
            None => by_place.push((difference, 0)),
        }
    }
    let shown = by_place.into_iter().take(MAX_PLACES).map(|(first, more)| {
        let text = match (first.path.as_str(), more) {
            ("", _) => format!("`{key}` is new, or its address changed"),
            (path, 0) => format!("`{key}` differs at {path}"),
            (path, more) => format!("`{key}` differs at {path} and {more} more"),
        };
        (text, first.place.clone())
    });
    shown.collect()
}

fn short_sha(sha: &str) -> &str {
    sha.get(..12).unwrap_or(sha)
}

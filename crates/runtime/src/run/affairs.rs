//! What there is to do: early exit, which shards, by whose leave.

use std::collections::BTreeSet;

use qontract_access::Mode;
use qontract_diagnostics::counted;

use crate::affected::{Affected, Rule, Verdict, affected};
use crate::allowed;
use crate::data::Data;
use crate::erased::AnyDeclared;
use crate::fault::Fault;
use crate::guard::{Approvals, Judge};
use crate::key::ShardKey;
use crate::listing;
use crate::outcome::{Decision, Ended, Outcome, ShardOutcome, ShardState};
use crate::place::Place;
use crate::plan::Thing;
use crate::room::Room;

use super::Request;

/// More places than this are not told with a decision.
const MOST_PLACES: usize = 10;

/// What there is to do in a run.
pub struct Work {
    /// The declared state of head.
    pub head: Option<Box<dyn AnyDeclared>>,
    /// The declared state of base, for what only base has.
    pub base: Option<Box<dyn AnyDeclared>>,
    /// Shards to run.
    pub keys: Vec<ShardKey>,
    /// Shards that only base has.
    pub orphans: Vec<ShardKey>,
}

/// What there is to do; nothing if nothing that concerns the integration changed.
pub fn decide(
    room: &Room,
    request: &Request,
    data: &Data,
    outcome: &mut Outcome,
) -> Result<Option<Work>, Fault> {
    let mut decide = |text: String, places: Vec<Place>| outcome.decisions.push(Decision { text, places });
    let (mut comparison, mut states) = (None, None);
    if let (Some(pair), Mode::DryRun) = (request.pair(room, data), request.mode) {
        match affected(room, &pair, &request.options) {
            Verdict::Unaffected(rule) => {
                let (base, head) = (short(pair.base.sha()), short(pair.head.sha()));
                decide(format!("no change between {base} and {head} ({})", rule.as_str()), Vec::new());
                outcome.ended = Ended::EarlyExit;
                return Ok(None);
            }
            Verdict::Affected(found) => {
                let Affected { rule, causes, comparison: differs, states: declared } = *found;
                let places: Vec<Place> = causes.iter().filter_map(|cause| cause.place.clone()).collect();
                let files = counted(causes.len(), "file");
                let more = if places.len() > MOST_PLACES { ", the first of them:" } else { "" };
                let text = format!("affected by {files} ({}){more}", rule.as_str());
                decide(text, places.into_iter().take(MOST_PLACES).collect());
                if rule != Rule::OwnFile {
                    comparison = differs;
                }
                states = declared;
            }
            Verdict::Unknown(fault) => {
                decide(format!("everything runs: base and head could not be compared: {fault}"), Vec::new());
            }
        }
    }
    let (base, head) = match states {
        Some((base, head)) => (Some(base), Some(head)),
        None => (None, room.declare(data, &request.options)?),
    };
    if let Some(comparison) = &comparison {
        for (key, differences) in &comparison.shards {
            for difference in differences.iter().take(MOST_PLACES) {
                let path = if difference.path.is_empty() { "all of it" } else { &difference.path };
                decide(format!("`{key}` differs at {path}"), difference.place.clone().into_iter().collect());
            }
        }
    }
    let Some(declared) = &head else {
        return Ok(Some(Work { head, base, keys: vec![ShardKey::default()], orphans: Vec::new() }));
    };
    for (key, faults) in declared.faults() {
        if selected(room, request, key) {
            let mut shard = ShardOutcome::new(ShardState::Skipped("it is declared wrongly".to_owned()));
            shard.faults.clone_from(faults);
            outcome.shards.insert(key.clone(), shard);
        }
    }
    let differs = comparison.as_ref().filter(|_| request.only_affected);
    let trusted: Option<BTreeSet<_>> = base
        .as_ref()
        .filter(|_| !request.trust_head)
        .map(|base| base.keys().iter().filter_map(|key| base.target(key)).collect());
    let mut keys = Vec::new();
    let mut unaffected = 0;
    for key in declared.keys().into_iter().filter(|key| selected(room, request, key)) {
        if differs.is_some_and(|comparison| !comparison.affects(&key)) {
            unaffected += 1;
            continue;
        }
        let why = skip(&**declared, &key, trusted.as_ref());
        match why {
            Some(why) => {
                outcome.shards.insert(key, ShardOutcome::new(ShardState::Skipped(why)));
            }
            None => keys.push(key),
        }
    }
    if unaffected > 0 {
        let text = format!("{} not affected by the change", counted(unaffected, "shard"));
        outcome.decisions.push(Decision { text, places: Vec::new() });
    }
    let gone = comparison.map(|comparison| comparison.gone).unwrap_or_default();
    let faulty = declared.faults();
    let orphans: Vec<ShardKey> =
        gone.into_iter().filter(|key| selected(room, request, key) && !faulty.contains_key(key)).collect();
    Ok(Some(Work { head, base, keys, orphans }))
}

/// Why a shard is not run although it is selected.
fn skip(
    declared: &dyn AnyDeclared,
    key: &ShardKey,
    trusted: Option<&BTreeSet<qontract_bundle::Sha256>>,
) -> Option<String> {
    if let Some(disabled) = declared.disabled(key) {
        return Some(format!("the data switches the integration off for {}", disabled.by));
    }
    let target = declared.target(key)?;
    let known = trusted.is_none_or(|trusted| trusted.contains(&target));
    (!known)
        .then(|| "how it is reached is new or changed, and is not dialled until it is approved".to_owned())
}

fn selected(room: &Room, request: &Request, key: &ShardKey) -> bool {
    request.options.select(&room.about().flags, key) && request.slot.has(&key.slot_value())
}

/// What decides about removals in this run.
pub fn judge(room: &Room, request: &Request) -> Result<Judge, Fault> {
    Ok(Judge {
        integration: room.about().name.clone(),
        budgets: request.budgets,
        approvals: Approvals::on(request.today, listing::approvals(&*request.head)?),
        spent: request.spent.clone(),
    })
}

/// Writes down the datafile that would approve what the guards hold.
pub fn approval(judge: &Judge, request: &Request, outcome: &mut Outcome) {
    let held: Vec<&Thing> = outcome
        .shards
        .values()
        .flat_map(|shard| &shard.held)
        .filter(|held| held.approvable && held.change.kind.removes())
        .map(|held| &held.change.thing)
        .collect();
    if !held.is_empty() {
        outcome.approval = Some(Approvals::text(&judge.integration, &held, request.today));
    }
}

/// Tells what was read although it may not be, and what is listed although it is not read.
pub fn report_asked(room: &Room, request: &Request, outcome: &mut Outcome) {
    let Ok(Some(listing)) = listing::of(&*request.head, &room.about().name) else { return };
    for (query, schemas) in &outcome.asked.forbidden {
        let lines: Vec<String> = schemas.iter().map(|schema| format!("- {schema}")).collect();
        let fault = Fault::author(format!("the query {query} read what `{}` may not", room.about().name))
            .hint(format!("add to `schemas`:\n{}", lines.join("\n")))
            .at(listing.place.below("/schemas"));
        outcome.faults.push(fault);
    }
    let early = outcome.ended != Ended::Ok || outcome.shards.is_empty();
    if !request.validate_schemas || early || room.about().looks_up {
        return;
    }
    // Elsewhere only what was read is known, which is not all that can be.
    let Some(engine) = request.head.engine() else { return };
    let Ok(reach) = allowed::reach(engine, &room.about().queries) else { return };
    let read: BTreeSet<String> = reach.into_iter().map(|one| one.schema).collect();
    for schema in allowed::unused(engine, &listing, &read) {
        outcome.warnings.push(format!("`{schema}` is listed in `schemas` and never read"));
    }
}

fn short(sha: &str) -> &str {
    sha.get(..12).unwrap_or(sha)
}

//! Shard selection: decides on early exit, selects the shards to run, and reports approvals.

use std::collections::BTreeSet;

use qontract_access::Mode;
use qontract_diagnostics::counted;
use qontract_diagnostics::suggest::Patience;

use crate::about::LooksUp;
use crate::affected::{Affected, Pair, Verdict, affected};
use crate::allowed;
use crate::data::Data;
use crate::declarations::Declaration;
use crate::erased::AnyDeclared;
use crate::fault::Fault;
use crate::guard::{Approvals, RemovalGuard, ThingRef};
use crate::key::ShardKey;
use crate::listing;
use crate::options::UnmatchedSelector;
use crate::outcome::{Decision, Ended, Outcome, ShardOutcome, ShardState, Skip};
use crate::place::Place;
use crate::plan::{Held, Hold, Thing};
use crate::room::Room;
use crate::slot::Slot;
use crate::state::{Comparison, Difference};

use super::Request;

/// Maximum number of locations that are listed with a decision.
const MAX_PLACES: usize = 10;

/// Maximum number of approval entries that a run compares with held removals, to find misspelt ones.
const MAX_COMPARISONS: usize = 100_000;

/// The shards that a run processes, with their declared states.
pub struct Work {
    /// The declared state of head.
    pub head: Option<Declaration>,
    /// The declared state of base, for shards that only base has.
    pub base: Option<Declaration>,
    /// Shards to run.
    pub keys: Vec<ShardKey>,
    /// Shards that only base has.
    pub orphans: Vec<ShardKey>,
}

/// The declared states of base and head, and their differences as far as they were compared.
#[derive(Default)]
struct Compared {
    head: Option<Declaration>,
    base: Option<Declaration>,
    /// The differences, if only differing shards are run.
    differs: Option<Comparison>,
    /// Shards that only base has.
    gone: BTreeSet<ShardKey>,
}

/// Selects the shards to run; `None` for an early exit, if the change does not affect the integration.
pub fn decide(
    integration: &Room,
    request: &Request,
    data: &Data,
    outcome: &mut Outcome,
) -> Result<Option<Work>, Fault> {
    let compared = match (request.pair(integration, data), request.mode) {
        (Some(pair), Mode::DryRun) => compare(integration, request, &pair, outcome),
        (Some(pair), Mode::Real) => Some(orphans(integration, request, &pair, outcome)?),
        (None, _) => Some(Compared::default()),
    };
    let is_unaffected = compared.is_none();
    if is_unaffected && (!request.strict_selectors || request.options.is_empty()) {
        return Ok(None);
    }
    let mut compared = compared.unwrap_or_default();
    if compared.head.is_none() {
        compared.head = integration.declare(data, &request.options)?;
    }
    if check_selectors(integration, request, &compared, outcome) == Selectors::Wrong || is_unaffected {
        return Ok(None);
    }
    Ok(Some(select(integration, request, compared, outcome)))
}

/// Whether all selecting flags match something in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selectors {
    Fine,
    /// The run ends as a usage error.
    Wrong,
}

/// Reports selecting flags that match nothing: as errors if the request is strict, else as warnings.
fn check_selectors(
    integration: &Room,
    request: &Request,
    compared: &Compared,
    outcome: &mut Outcome,
) -> Selectors {
    let is_error = |one: &UnmatchedSelector| request.strict_selectors && !one.excludes;
    let (errors, warnings): (Vec<_>, Vec<_>) =
        unmatched(integration, request, compared).into_iter().partition(is_error);
    outcome.warnings.extend(warnings.iter().map(ToString::to_string));
    if errors.is_empty() {
        return Selectors::Fine;
    }
    outcome.faults.extend(errors.iter().map(|one| Fault::operator(one.to_string())));
    outcome.ended = Ended::Usage;
    Selectors::Wrong
}

/// Selecting flags that match no shard at all, including shards that only base has and invalid ones.
fn unmatched(integration: &Room, request: &Request, compared: &Compared) -> Vec<UnmatchedSelector> {
    let Some(declared) = &compared.head else { return Vec::new() };
    let mut known = declared.keys();
    known.extend(compared.gone.iter().chain(declared.faults().keys()));
    request.options.unmatched(&integration.about().flags, &known)
}

/// Compares base and head in a dry run; `None` if no difference affects the integration.
fn compare(integration: &Room, request: &Request, pair: &Pair, outcome: &mut Outcome) -> Option<Compared> {
    let mut decide = |text: String, places: Vec<Place>| outcome.decisions.push(Decision { text, places });
    match affected(integration, pair, &request.options) {
        Verdict::Unaffected(rule) => {
            let (base, head) = (short(pair.base.sha()), short(pair.head.sha()));
            decide(format!("no change between {base} and {head} ({})", rule.as_str()), Vec::new());
            if request.even_unaffected {
                // Only the addresses of base may be contacted.
                let base = integration.declare(&pair.base, &request.options).ok().flatten();
                return Some(Compared { base, ..Compared::default() });
            }
            outcome.ended = Ended::EarlyExit;
            None
        }
        Verdict::Unknown(fault) => {
            decide(format!("everything runs: base and head could not be compared: {fault}"), Vec::new());
            // If base alone can be declared, only its addresses may be contacted.
            let base = integration.declare(&pair.base, &request.options).ok().flatten();
            Some(Compared { base, ..Compared::default() })
        }
        Verdict::Affected(found) => {
            let Affected { rule, causes, comparison, all, states } = *found;
            let mut places: Vec<Place> = causes.iter().filter_map(|cause| cause.place.clone()).collect();
            let files: BTreeSet<_> =
                causes.iter().map(|cause| cause.place.as_ref().map(|place| &place.path)).collect();
            let text = format!("affected by {} ({})", counted(files.len(), "file"), rule.as_str());
            let more = if places.len() > MAX_PLACES { ", among others at:" } else { "" };
            let all_places = places.clone();
            places.truncate(MAX_PLACES);
            decide(format!("{text}{more}"), places);
            for (key, differences) in comparison.iter().flat_map(|comparison| &comparison.shards) {
                for (text, place) in differing(key, differences) {
                    decide(text, place.into_iter().collect());
                }
            }
            // The differences are known; the whole of base is needed for the addresses that may be contacted.
            let (base, head) = match states {
                Some((base, head)) => (Some(base), Some(head)),
                None => match integration.declare(&pair.base, &request.options) {
                    Ok(base) => (base, None),
                    Err(fault) => {
                        decide(format!("everything runs: base could not be read: {fault}"), Vec::new());
                        return Some(Compared::default());
                    }
                },
            };
            outcome.causes = all_places;
            let renamed = causes.into_iter().filter_map(|cause| cause.place.zip(cause.renamed_from));
            outcome.renamed = renamed.collect();
            let gone = comparison.as_ref().map(|comparison| comparison.gone.clone()).unwrap_or_default();
            let differs = comparison.filter(|_| request.only_affected && !all);
            Some(Compared { head, base, differs, gone })
        }
    }
}

/// The differences of a shard in words, one per location.
fn differing(key: &ShardKey, differences: &[Difference]) -> Vec<(String, Option<Place>)> {
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

/// Finds the shards that only base has, in a real run: they are observed at base's address. All of head runs
/// anyway.
fn orphans(
    integration: &Room,
    request: &Request,
    pair: &Pair,
    outcome: &mut Outcome,
) -> Result<Compared, Fault> {
    let head = integration.declare(&pair.head, &request.options)?;
    let base = integration.declare(&pair.base, &request.options).unwrap_or_else(|fault| {
        let text = format!("shards that only base has are not known: {fault}");
        outcome.decisions.push(Decision { text, places: Vec::new() });
        None
    });
    let gone = match (&base, &head) {
        (Some(base), Some(head)) => base.compare(&**head).gone,
        _ => BTreeSet::new(),
    };
    Ok(Compared { head, base, differs: None, gone })
}

/// Selects the shards to run: selected by flags and slot, different from base, and neither disabled nor
/// untrusted.
fn select(integration: &Room, request: &Request, compared: Compared, outcome: &mut Outcome) -> Work {
    let Compared { head, base, differs, gone } = compared;
    let Some(declared) = &head else {
        return Work { head, base, keys: vec![ShardKey::default()], orphans: Vec::new() };
    };
    outcome.warnings.extend(request.options.ignored(&integration.about().flags));
    let mut pass_over = |key: ShardKey, why: Skip, faults: &[Fault]| {
        let mut shard = ShardOutcome::new(ShardState::Skipped(why));
        shard.faults.extend_from_slice(faults);
        outcome.shards.insert(key, shard);
    };
    // A fault that belongs to no particular shard is reported whatever is selected.
    let concerns = |key: &ShardKey| key.is_whole() || selected(integration, request, &**declared, key);
    for (key, faults) in declared.faults().iter().filter(|(key, _)| concerns(key)) {
        pass_over(key.clone(), Skip::Wrong, faults);
    }
    // New and changed addresses of head are not contacted before they are merged.
    let trusted: Option<BTreeSet<_>> = base
        .as_ref()
        .filter(|_| request.distrusts_head())
        .map(|base| base.keys().into_iter().filter_map(|key| base.target(key)).collect());
    let (mut keys, mut unaffected) = (Vec::new(), 0);
    for key in declared.keys().into_iter().filter(|key| selected(integration, request, &**declared, key)) {
        if differs.as_ref().is_some_and(|comparison| !comparison.affects(key)) {
            unaffected += 1;
        } else if let Some(why) = skip(&**declared, key, trusted.as_ref()) {
            pass_over(key.clone(), why, &[]);
        } else {
            keys.push(key.clone());
        }
    }
    let mut orphans = Vec::new();
    let wrong = declared.faults();
    let is_selected =
        |key: &ShardKey| base.as_ref().is_none_or(|base| selected(integration, request, &**base, key));
    for key in gone.into_iter().filter(|key| is_selected(key) && !wrong.contains_key(key)) {
        match base.as_ref().and_then(|base| base.disabled(&key)) {
            Some(off) => pass_over(key, Skip::DisabledBefore(off.by.clone()), &[]),
            None => orphans.push(key),
        }
    }
    if unaffected > 0 {
        let text = format!("{} not affected by the change", counted(unaffected, "shard"));
        outcome.decisions.push(Decision { text, places: Vec::new() });
    }
    Work { head, base, keys, orphans }
}

/// The reason why a selected shard does not run, if any.
fn skip(
    declared: &dyn AnyDeclared,
    key: &ShardKey,
    trusted: Option<&BTreeSet<qontract_bundle::Sha256>>,
) -> Option<Skip> {
    if let Some(disabled) = declared.disabled(key) {
        return Some(Skip::Disabled(disabled.by.clone()));
    }
    let target = declared.target(key)?;
    let known = trusted.is_none_or(|trusted| trusted.contains(&target));
    (!known).then_some(Skip::Undialled)
}

/// Whether flags and slot select a shard of this declared state.
fn selected(integration: &Room, request: &Request, declared: &dyn AnyDeclared, key: &ShardKey) -> bool {
    let (options, flags) = (&request.options, &integration.about().flags);
    options.select(flags, key)
        && options.select_labelled(flags, |label| declared.has_label(label, key))
        && request.slot.has(&key.slot_value())
}

/// The removal guard of this run.
pub fn guard(integration: &Room, request: &Request, work: &Work) -> Result<RemovalGuard, Fault> {
    let approvals = Approvals::on(request.today, listing::approvals(&*request.head)?);
    let Work { head, keys, .. } = work;
    let own: BTreeSet<&ShardKey> = keys.iter().collect();
    let declared =
        head.iter().flat_map(|head| head.keys().into_iter().filter(|key| head.disabled(key).is_none()));
    let other_shards = declared.filter(|key| !own.contains(key)).map(ToString::to_string).collect();
    let integration = integration.about().name.clone();
    Ok(RemovalGuard {
        integration,
        protected: request.protected.clone(),
        budgets: request.budgets,
        approvals,
        other_shards,
        now: request.now,
    })
}

/// Reports the datafile that would approve the held removals, and the problems of existing approvals.
pub fn approval(guard: &RemovalGuard, request: &Request, outcome: &mut Outcome) {
    let is_approvable = |held: &Held| held.hold == Hold::Approval && guard.removes(&held.change);
    let held: Vec<&Thing> = outcome
        .shards
        .values()
        .flat_map(|shard| &shard.held)
        .filter(|held| is_approvable(held))
        .map(|held| &held.change.thing)
        .collect();
    let RemovalGuard { integration, approvals, .. } = guard;
    let text = (!held.is_empty()).then(|| Approvals::text(integration, &held, request.today));
    outcome.approval = text;
    let mut removed: BTreeSet<ThingRef> = held.into_iter().map(ThingRef::from).collect();
    let planned = outcome.shards.values().flat_map(|shard| &shard.changes);
    removed.extend(planned.filter(|change| guard.removes(change)).map(|change| (&change.thing).into()));
    let patience = Patience::new(MAX_COMPARISONS);
    for held in outcome.shards.values_mut().flat_map(|shard| &mut shard.held) {
        let thing = ThingRef::from(&held.change.thing);
        if let Some(why) = is_approvable(held)
            .then(|| approvals.mismatch(integration, &thing, &removed, &patience))
            .flatten()
        {
            held.why = format!("{}; {why}", held.why);
        }
    }
    let is_complete = request.slot == Slot::default()
        && request.options.is_empty()
        && request.base.is_none()
        && !request.stop.is_asked()
        && outcome.all_faults().next().is_none();
    for (path, text) in approvals.remarks(integration, &removed, is_complete) {
        let places = if path.is_empty() { Vec::new() } else { vec![Place::datafile(&path, "")] };
        outcome.decisions.push(Decision { text, places });
    }
}

/// Reports schemas that were read without being on the allow-list, and schemas on it that no query reads.
pub fn report_asked(integration: &Room, request: &Request, outcome: &mut Outcome) {
    let Ok(Some(listing)) = listing::of(&*request.head, &integration.about().name) else { return };
    for (query, schemas) in &outcome.asked.forbidden {
        let lines: Vec<String> = schemas.iter().map(|schema| format!("- {schema}")).collect();
        let fault = Fault::author(format!(
            "the query {query} read schemas that `{}` may not read",
            integration.about().name
        ))
        .hint(format!("add to `schemas`:\n{}", lines.join("\n")))
        .at(listing.place.below("/schemas"));
        outcome.faults.push(fault);
    }
    let early = outcome.ended != Ended::Ok || outcome.shards.is_empty();
    if !request.validate_schemas || early || integration.about().looks_up != LooksUp::Never {
        return;
    }
    // A remote bundle reports only the schemas that were read, not all that can be read.
    let Some(engine) = request.head.engine() else { return };
    let Ok(reach) = allowed::reach(engine, &integration.about().queries) else { return };
    let read: BTreeSet<String> = reach.into_iter().map(|one| one.schema).collect();
    for schema in allowed::unused(engine, &listing, &read) {
        outcome.warnings.push(format!("`{schema}` is listed in `schemas` and never read"));
    }
}

fn short(sha: &str) -> &str {
    sha.get(..12).unwrap_or(sha)
}

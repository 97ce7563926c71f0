//! The removal approvals of a run: creates the guard that uses them, and reports how to approve held removals.

use std::collections::{BTreeMap, BTreeSet};

use qontract_access::Permits;
use qontract_diagnostics::pluralize;
use qontract_diagnostics::suggest::ComparisonBudget;

use crate::definition;
use crate::fault::Fault;
use crate::guard::{Approvals, Date, HeldEntry, ObjectRef, RemovalGuard};
use crate::integration::{Integration, IntegrationForm};
use crate::key::ShardKey;
use crate::outcome::{ApprovalForm, Decision, RunOutcome, ShardOutcome};
use crate::plan::{Change, HeldPlanChange, Hold, ObjectKey};
use crate::run_request::RunRequest;
use crate::slot::Slot;
use crate::source_location::SourceLocation;

use super::selection::ShardSelection;

/// Maximum number of approval entries that a run compares with held removals, to find misspelt ones.
const MAX_COMPARISONS: usize = 100_000;

/// Creates the removal guard of this run.
pub fn removal_guard(
    integration: &Integration,
    request: &RunRequest,
    work: &ShardSelection,
) -> Result<RemovalGuard, Fault> {
    let approvals = Approvals::valid_on(request.today, definition::approvals(&*request.head)?);
    let ShardSelection { head, keys, .. } = work;
    let own: BTreeSet<&ShardKey> = keys.iter().collect();
    let declared =
        head.iter().flat_map(|head| head.keys().into_iter().filter(|key| head.disabled(key).is_none()));
    let other_shards = declared.filter(|key| !own.contains(key)).map(ToString::to_string).collect();
    let integration = integration.meta().name.clone();
    Ok(RemovalGuard {
        integration,
        protected: request.protected.clone(),
        budgets: request.budgets,
        approvals,
        other_shards,
        now: request.now,
    })
}

/// Reports the removals that earlier runs held and that this run cannot plan, because the data no longer declares
/// their shards. These removals stay held, and an approval for them would have no effect. Not called if the run declares
/// only a part of the shards.
pub async fn report_unplanned_holds(
    guard: &RemovalGuard,
    request: &RunRequest,
    permits: &Permits,
    outcome: &mut RunOutcome,
) {
    // The guard reports a ledger that cannot be used.
    let Ok(snapshot) = request.ledger.load(&permits.read, &guard.integration).await else { return };
    let shards: BTreeSet<String> = outcome.shards.keys().map(ToString::to_string).collect();
    let is_unplanned =
        |entry: &&HeldEntry| !shards.contains(&entry.shard) && !guard.other_shards.contains(&entry.shard);
    let mut unplanned: BTreeMap<&str, Vec<&HeldEntry>> = BTreeMap::new();
    for entry in snapshot.state.held.iter().filter(is_unplanned) {
        unplanned.entry(&entry.shard).or_default().push(entry);
    }
    for (shard, entries) in unplanned {
        let removals = pluralize(entries.len(), "removal");
        let (first, since) = (&entries[0].object, entries.iter().map(|entry| entry.since).min());
        let since = since.map(|since| since.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
        outcome.unplanned_holds += entries.len();
        outcome.warnings.push(format!(
            "{removals} held since {since} UTC cannot be planned, such as {} `{}` in `{}`: the data no longer declares the shard `{shard}`; after an approval, run `qontract reconcile {} --base REV` with a revision that declares it",
            first.kind, first.name, first.target, guard.integration
        ));
    }
}

/// Reports how to approve the held removals (by default with a datafile) and which existing approvals have problems.
pub fn report_approvals(
    guard: &RemovalGuard,
    integration: &Integration,
    request: &RunRequest,
    outcome: &mut RunOutcome,
) {
    let is_approvable = |held: &HeldPlanChange| held.hold == Hold::Approval && guard.removes(&held.change);
    let held: Vec<&Change> = outcome
        .shards
        .values()
        .flat_map(|shard| &shard.held)
        .filter(|held| is_approvable(held))
        .map(|held| &held.change)
        .collect();
    let own = own_text(integration, &held, request.today, &outcome.shards);
    let RemovalGuard { integration, approvals, .. } = guard;
    let objects: Vec<&ObjectKey> = held.iter().map(|change| &change.object).collect();
    let mut removed: BTreeSet<ObjectRef> = objects.iter().map(|object| ObjectRef::from(*object)).collect();
    let datafile = || Approvals::datafile_text(integration, &objects, request.today);
    (outcome.approval, outcome.approval_form) = match own {
        _ if held.is_empty() => (None, ApprovalForm::Datafile),
        Some(text) => (Some(text), ApprovalForm::Own),
        None => (Some(datafile()), ApprovalForm::Datafile),
    };
    let planned = outcome.shards.values().flat_map(|shard| &shard.changes);
    removed.extend(planned.filter(|change| guard.removes(change)).map(|change| (&change.object).into()));
    let patience = ComparisonBudget::new(MAX_COMPARISONS);
    for held in outcome.shards.values_mut().flat_map(|shard| &mut shard.held) {
        let thing = ObjectRef::from(&held.change.object);
        if let Some(why) = is_approvable(held)
            .then(|| approvals.mismatch(integration, &thing, &removed, &patience))
            .flatten()
        {
            held.why = format!("{}; {why}", held.why);
        }
    }
    let is_complete = request.slot == Slot::default()
        && request.options.is_empty()
        && request.only_shards.is_none()
        && request.base.is_none()
        && !request.shutdown.is_requested()
        && outcome.all_faults().next().is_none();
    for (path, text) in approvals.remarks(integration, &removed, is_complete) {
        let places = if path.is_empty() { Vec::new() } else { vec![SourceLocation::datafile(&path, "")] };
        outcome.decisions.push(Decision { text, places });
    }
}

/// The integration's own instructions for approving held changes, if it has any: instructions for all changes or, if
/// the integration has none, the instructions of each shard that holds a change, without duplicates.
fn own_text(
    integration: &Integration,
    held: &[&Change],
    today: Date,
    shards: &BTreeMap<ShardKey, ShardOutcome>,
) -> Option<String> {
    let IntegrationForm::Staged(staged) = integration.form() else { return None };
    if held.is_empty() {
        return None;
    }
    staged.approval_text(held, today).or_else(|| {
        let holding = shards.values().filter(|shard| shard.held.iter().any(|held| held.hold.is_held()));
        let texts: BTreeSet<&str> = holding.filter_map(|shard| shard.approval.as_deref()).collect();
        (!texts.is_empty()).then(|| texts.into_iter().collect::<Vec<_>>().join("\n"))
    })
}

//! Shard selection: selects the shards to run, and reports schemas that are missing on the allow-list or unused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qontract_access::Mode;
use qontract_diagnostics::pluralize;
use qontract_diagnostics::suggest::nearest;

use crate::affected::{BundlePair, is_unaffected_on_server};
use crate::allow_list;
use crate::data::{Data, QueryPolicy};
use crate::declared_cache::SharedDeclaredState;
use crate::fault::Fault;
use crate::integration::Integration;
use crate::key::ShardKey;
use crate::meta::AdHocReads;
use crate::options::UnmatchedSelector;
use crate::outcome::{Decision, RunEnd, RunOutcome, ShardOutcome, ShardState, SkipReason};
use crate::run_request::RunRequest;
use crate::type_erasure::AnyDeclaredState;

use crate::trust::{AddressTrust, TargetAddress};

use super::early_exit::{ComparedStates, compare_states};
use super::orphaned_shard::{HeadErrors, OrphanedShard};
use super::preflight::Preflight;
use super::unplanned;

/// The shards that a run processes, with their declared states.
pub struct ShardSelection {
    /// The declared state of head.
    pub head: Option<SharedDeclaredState>,
    /// The declared state of base, for shards that exist only in base.
    pub base: Option<SharedDeclaredState>,
    /// The keys of the shards to run.
    pub keys: Vec<ShardKey>,
    /// Shards that exist only in base.
    pub orphans: Vec<OrphanedShard>,
    /// The addresses that the run may contact.
    pub trust: AddressTrust,
}

impl ShardSelection {
    /// The keys of the shards that are processed.
    pub fn processed_keys(&self) -> Vec<&ShardKey> {
        self.keys.iter().chain(self.orphans.iter().map(|orphan| &orphan.key)).collect()
    }
}

/// The two bundles to compare. The handle of head is the one that the run uses, so that its reads are logged.
fn bundle_pair(integration: &Integration, request: &RunRequest, head: &Data) -> Option<BundlePair> {
    let base = Data::new(Arc::clone(request.base.as_ref()?), QueryPolicy::of(integration.meta()));
    Some(BundlePair { base, head: head.clone() })
}

/// Selects the shards to run. Returns `None` if the change does not affect the integration (early exit).
pub fn select_shards(
    integration: &Integration,
    request: &RunRequest,
    data: &Data,
    outcome: &mut RunOutcome,
) -> Result<Option<ShardSelection>, Fault> {
    let compared = match (bundle_pair(integration, request, data), request.mode) {
        (Some(pair), Mode::DryRun) => compare_states(integration, request, &pair, outcome),
        (Some(pair), Mode::Real) => Some(find_orphans(integration, request, &pair, outcome)?),
        (None, _) => Some(ComparedStates::default()),
    };
    let is_unaffected = compared.is_none();
    let has_selectors = request.strict_selectors && !request.options.is_empty();
    if is_unaffected && !has_selectors && request.only_shards.is_none() {
        return Ok(None);
    }
    let mut compared = compared.unwrap_or_default();
    if compared.head.is_none() {
        compared.head = integration.declare(data, &request.options)?;
    }
    if check_only_shards(integration, request, &compared, outcome) == SelectorCheck::Unmatched
        || check_selectors(integration, request, &compared, outcome) == SelectorCheck::Unmatched
        || is_unaffected
    {
        return Ok(None);
    }
    Ok(Some(filter_shards(integration, request, compared, outcome)))
}

/// The result of checking whether all selecting flags match a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectorCheck {
    Matched,
    /// A flag matches no shard, so the run ends with a usage error.
    Unmatched,
}

/// Reports selecting flags that match no shard: as errors if the request is strict, otherwise as warnings.
fn check_selectors(
    integration: &Integration,
    request: &RunRequest,
    compared: &ComparedStates,
    outcome: &mut RunOutcome,
) -> SelectorCheck {
    let is_error = |one: &UnmatchedSelector| request.strict_selectors && !one.excludes;
    let (errors, warnings): (Vec<_>, Vec<_>) =
        unmatched_selectors(integration, request, compared).into_iter().partition(is_error);
    outcome.warnings.extend(warnings.iter().map(ToString::to_string));
    if errors.is_empty() {
        return SelectorCheck::Matched;
    }
    outcome.faults.extend(errors.iter().map(|one| Fault::operator(one.to_string())));
    outcome.ended = RunEnd::Usage;
    SelectorCheck::Unmatched
}

/// Reports keys that select no shard of a restricted run and warns about shards that the flags or the slot exclude.
fn check_only_shards(
    integration: &Integration,
    request: &RunRequest,
    compared: &ComparedStates,
    outcome: &mut RunOutcome,
) -> SelectorCheck {
    let Some(only) = &request.only_shards else { return SelectorCheck::Matched };
    let declared = compared.head.as_deref().filter(|_| integration.is_sharded());
    let whole = ShardKey::default();
    let mut keys: Vec<&ShardKey> = declared.map_or_else(|| vec![&whole], AnyDeclaredState::keys);
    keys.extend(compared.gone.iter().chain(declared.iter().flat_map(|declared| declared.faults().keys())));
    let mut check = SelectorCheck::Matched;
    for one in only {
        let Some(key) = keys.iter().find(|key| key.has_same_parts(one)) else {
            let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
            let nearest = nearest(&one.to_string(), names.iter().map(String::as_str)).map(str::to_owned);
            let hint = match nearest {
                _ if declared.is_none() => "; the integration has no shards".to_owned(),
                Some(nearest) => format!("; did you mean `{nearest}`?"),
                None => String::new(),
            };
            outcome.faults.push(Fault::operator(format!("no shard `{one}` in the data{hint}")));
            outcome.ended = RunEnd::Usage;
            check = SelectorCheck::Unmatched;
            continue;
        };
        let states = [compared.head.as_deref(), compared.base.as_deref()];
        let is_selected = declared.is_none()
            || states.into_iter().flatten().any(|state| matches_selectors(integration, request, state, key));
        if !is_selected {
            outcome.warnings.push(format!("the flags or the slot do not select the shard `{key}`"));
        }
    }
    check
}

/// Selecting flags that match no shard, including invalid shards and shards that exist only in base.
fn unmatched_selectors(
    integration: &Integration,
    request: &RunRequest,
    compared: &ComparedStates,
) -> Vec<UnmatchedSelector> {
    let Some(declared) = &compared.head else { return Vec::new() };
    let mut keys = declared.keys();
    keys.extend(compared.gone.iter().chain(declared.faults().keys()));
    request.options.unmatched(&integration.meta().flags, &keys)
}

/// Finds the shards that exist only in base, in a real run. Such a shard is observed at its address in base. All
/// shards of head run in any case.
fn find_orphans(
    integration: &Integration,
    request: &RunRequest,
    pair: &BundlePair,
    outcome: &mut RunOutcome,
) -> Result<ComparedStates, Fault> {
    let head = integration.declare(&pair.head, &request.options)?;
    // A shard can exist only in base if the declared states differ. A server can compare the states without sending
    // the data of base.
    if is_unaffected_on_server(integration, pair) {
        return Ok(ComparedStates { head, ..ComparedStates::default() });
    }
    let base = integration.declare(&pair.base, &request.options).unwrap_or_else(|fault| {
        let text = format!("cannot determine which shards exist only in base: {fault}");
        outcome.decisions.push(Decision { text, places: Vec::new() });
        None
    });
    let gone = match (&base, &head) {
        (Some(base), Some(head)) => base.compare(&**head).gone,
        _ => BTreeSet::new(),
    };
    Ok(ComparedStates { head, base, differs: None, differences: BTreeMap::new(), gone })
}

/// Filters the shards to run. A shard runs if flags and slot select it, it differs from base, and it is neither
/// disabled nor untrusted.
fn filter_shards(
    integration: &Integration,
    request: &RunRequest,
    compared: ComparedStates,
    outcome: &mut RunOutcome,
) -> ShardSelection {
    let ComparedStates { head, base, differs, differences, gone } = compared;
    let Some(declared) = &head else {
        let (keys, trust) = (vec![ShardKey::default()], AddressTrust::default());
        return ShardSelection { head, base, keys, orphans: Vec::new(), trust };
    };
    outcome.warnings.extend(request.options.ignored(&integration.meta().flags));
    let mut pass_over = |key: ShardKey, why: SkipReason, faults: &[Fault]| {
        let mut shard = ShardOutcome::new(ShardState::Skipped(why));
        shard.faults.extend_from_slice(faults);
        outcome.shards.insert(key, shard);
    };
    // A fault that does not belong to a single shard is always reported.
    let concerns =
        |key: &ShardKey| key.is_whole() || matches_selectors(integration, request, &**declared, key);
    for (key, faults) in declared.faults().iter().filter(|(key, _)| concerns(key)) {
        pass_over(key.clone(), SkipReason::Invalid, faults);
    }
    let trust = trusted_addresses(integration, request, base.as_deref());
    let (mut keys, mut untrusted, mut unaffected) = (Vec::new(), Vec::new(), 0);
    for key in
        declared.keys().into_iter().filter(|key| matches_selectors(integration, request, &**declared, key))
    {
        if differs.as_ref().is_some_and(|comparison| !comparison.affects(key)) {
            unaffected += 1;
        } else if let Some(disabled) = declared.disabled(key) {
            pass_over(key.clone(), SkipReason::Disabled(disabled.by.clone()), &[]);
        } else if is_untrusted(&integration.addresses(&**declared, key), &trust) {
            pass_over(key.clone(), SkipReason::UntrustedTarget, &[]);
            let differences = differences.get(key).map_or(&[][..], Vec::as_slice);
            let item = unplanned::untrusted_shard(key, base.as_deref(), &**declared, differences);
            untrusted.push((key.clone(), item));
        } else {
            keys.push(key.clone());
        }
    }
    let (mut orphans, mut renamed) = (Vec::new(), Vec::new());
    let faults = declared.faults();
    let head_errors = HeadErrors::new(&**declared, base.as_deref(), &concerns);
    let is_selected = |key: &ShardKey| {
        base.as_ref().is_none_or(|base| matches_selectors(integration, request, &**base, key))
    };
    for key in gone.into_iter().filter(|key| is_selected(key) && !faults.contains_key(key)) {
        let target = base.as_ref().and_then(|base| base.target_key(&key));
        if let Some(other) = target.and_then(|target| declared.shard_on_target(target)) {
            renamed.push(format!("the data renames the shard `{key}` to `{other}`, which keeps its objects"));
            continue;
        }
        match base.as_ref().and_then(|base| base.disabled(&key)) {
            Some(off) => pass_over(key, SkipReason::DisabledInBase(off.by.clone()), &[]),
            None => orphans.push(head_errors.orphan(key)),
        }
    }
    if let (Some(base), Mode::DryRun) = (&base, request.mode) {
        let keys = differences.keys().filter(|key| matches_selectors(integration, request, &**base, key));
        outcome.released = unplanned::released(integration, &**base, &**declared, keys);
    }
    for (key, item) in untrusted {
        outcome.shards.entry(key).and_modify(|shard| shard.unplanned.push(item));
    }
    outcome.decisions.extend(renamed.into_iter().map(|text| Decision { text, places: Vec::new() }));
    if unaffected > 0 {
        let text = format!("{} not affected by the change", pluralize(unaffected, "shard"));
        outcome.decisions.push(Decision { text, places: Vec::new() });
    }
    ShardSelection { head, base, keys, orphans, trust }
}

/// The addresses that a run may contact: in a dry run with a base, the addresses of all shards of base. Addresses
/// that are new or changed in head are not contacted before the change is merged.
fn trusted_addresses(
    integration: &Integration,
    request: &RunRequest,
    base: Option<&dyn AnyDeclaredState>,
) -> AddressTrust {
    let Some(base) = base.filter(|_| request.distrusts_head()) else { return AddressTrust::default() };
    AddressTrust::only(base.keys().into_iter().flat_map(|key| integration.addresses(base, key)))
}

/// Whether a shard is skipped because none of its addresses may be contacted. If one of them may be contacted, the
/// shard runs, and the scopes at the other addresses are unknown.
fn is_untrusted(addresses: &[TargetAddress], trust: &AddressTrust) -> bool {
    !addresses.is_empty() && addresses.iter().all(|address| !trust.trusts(address))
}

/// Whether flags and slot select a shard of this declared state.
fn matches_selectors(
    integration: &Integration,
    request: &RunRequest,
    declared: &dyn AnyDeclaredState,
    key: &ShardKey,
) -> bool {
    let (options, flags) = (&request.options, &integration.meta().flags);
    options.select(flags, key)
        && options.select_labelled(flags, |label| declared.has_label(label, key))
        && request.slot.contains(&integration.meta().slot_value(key))
        && request.selects(key)
}

/// Reports schemas that were read although they are not on the allow-list, and schemas on the allow-list that no
/// query reads.
pub fn report_schemas(integration: &Integration, preflight: &Preflight, outcome: &mut RunOutcome) {
    let Preflight { definition: Some(listing), reachable, .. } = preflight else { return };
    for (query, schemas) in &outcome.query_log.forbidden {
        let lines: Vec<String> = schemas.iter().map(|schema| format!("- {schema}")).collect();
        let fault = Fault::author(format!(
            "the query {query} read schemas that `{}` may not read",
            integration.meta().name
        ))
        .hint(format!("add to `schemas`:\n{}", lines.join("\n")))
        .at(listing.place.below("/schemas"));
        outcome.faults.push(fault);
    }
    let early = outcome.ended != RunEnd::Ok || outcome.shards.is_empty();
    if early || integration.meta().ad_hoc_reads != AdHocReads::Never {
        return;
    }
    let Some(reachable) = reachable else { return };
    for schema in allow_list::unused_schemas(reachable, listing, &BTreeSet::new()) {
        outcome.warnings.push(format!("`{schema}` is listed in `schemas` but never read"));
    }
}

//! The removal ledger: recent removals, held removals, and for each shard the number of its objects when it was last
//! read.
//!
//! All processes that run an integration share one ledger, with optimistic concurrency. A run loads the ledger,
//! judges its plan against it, and stores the removals that it is about to apply. The store has a precondition: the
//! ledger must still have the version that was loaded; otherwise the run judges its plan again. **Invariant:** a
//! removal without approval is applied only after it is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use qontract_access::{ReadPermit, WritePermit};
use serde::{Deserialize, Serialize};

use super::approval::ObjectRef;
use crate::plan::{ChangeKind, PlanDigest};

/// Maximum number of expired removals that a ledger keeps, so that no removal is forgotten if the clock jumps forward
/// and back.
const MAX_EXPIRED: usize = 1000;

/// A reserved removal without approval: it was applied or was about to be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The start time of the run that reserved it.
    pub at: Timestamp,
    /// The run that reserved it.
    pub run: String,
    /// The shard of the object.
    pub shard: String,
    /// The caller of the object, if its scope names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The removed object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Identifies the object among the objects that have had its name. Absent if the target has no such identifier,
    /// and in a ledger of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
}

/// A removed object, as the ledger counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RemovedObject<'a> {
    /// The removed object.
    pub object: &'a ObjectRef,
    /// The incarnation of the object, such as a uid.
    pub incarnation: Option<&'a str>,
}

impl LedgerEntry {
    pub(super) fn removed_object(&self) -> RemovedObject<'_> {
        RemovedObject { object: &self.object, incarnation: self.incarnation.as_deref() }
    }
}

/// A removal that is held until it is approved or the object is declared again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldEntry {
    /// The start time of the first run that held the removal.
    pub since: Timestamp,
    /// The shard of the object.
    pub shard: String,
    /// The reason why the last run held the removal.
    pub why: String,
    /// The kind of the change that was held; absent in a ledger of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeKind>,
    /// The object whose removal is held.
    #[serde(flatten)]
    pub object: ObjectRef,
}

impl HeldEntry {
    /// The reason to report now for a held change of this kind. The reason for a removal does not apply to a loss of
    /// keys, and vice versa.
    pub(super) fn reason_for(&self, kind: ChangeKind) -> String {
        match self.change {
            Some(before) if before.removes() == kind.removes() => self.why.clone(),
            Some(before) if before.removes() => "its removal was held before and is not approved".to_owned(),
            Some(_) => "its loss of keys was held before and is not approved".to_owned(),
            // In ledgers of earlier versions, the reason is preceded by the loss of the object.
            None => {
                let reason = self.why.rsplit(", which counts as a removal: ").next();
                reason.unwrap_or_default().to_owned()
            }
        }
    }
}

/// The use of an approval for a single use: the removal was applied or was about to be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedApproval {
    /// The path of the approval in the data; empty if it is unknown.
    pub approval: String,
    /// The last day of its validity.
    pub expiration: String,
    /// The plan to which the approval was bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanDigest>,
    /// The start time of the run that used the approval.
    pub at: Timestamp,
    /// The run that used the approval.
    pub run: String,
    /// The shard of the object.
    pub shard: String,
    /// The removed object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Identifies the object among the objects that have had its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
    /// Whether a later run has observed that the object no longer exists. Until then, the removal may be
    /// repeated.
    #[serde(default)]
    pub is_gone: bool,
}

/// Number of objects of a shard when it was last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardCount {
    /// The total number.
    pub total: usize,
    /// The number of objects of each caller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub callers: BTreeMap<String, usize>,
}

/// The content of the ledger of one integration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerState {
    /// Reserved removals, oldest first.
    #[serde(default)]
    pub removals: Vec<LedgerEntry>,
    /// Removals that are held until they are approved.
    #[serde(default)]
    pub held: Vec<HeldEntry>,
    /// Number of objects of each shard when it was last read.
    #[serde(default)]
    pub counts: BTreeMap<String, ShardCount>,
    /// The uses of approvals for a single use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_approvals: Vec<UsedApproval>,
}

impl LedgerState {
    /// The objects whose removal was reserved after `start` and that `select` accepts. Entries with a time in the
    /// future are included.
    pub(super) fn reserved(
        &self,
        start: Timestamp,
        select: impl Fn(&LedgerEntry) -> bool,
    ) -> BTreeSet<RemovedObject<'_>> {
        self.removals
            .iter()
            .filter(|entry| entry.at > start && select(entry))
            .map(LedgerEntry::removed_object)
            .collect()
    }

    /// The entry of a removal that is held.
    pub(super) fn held(&self, object: &ObjectRef) -> Option<&HeldEntry> {
        self.held.iter().find(|entry| entry.object == *object)
    }

    /// Adds removals. An earlier reservation for the same object is replaced, unless the object has been created
    /// again since then.
    pub(super) fn reserve(&mut self, entries: Vec<LedgerEntry>) {
        let again: BTreeSet<RemovedObject<'_>> = entries.iter().map(LedgerEntry::removed_object).collect();
        self.removals.retain(|entry| !again.contains(&entry.removed_object()));
        self.removals.extend(entries);
        self.removals.sort_by(|a, b| (a.at, &a.object).cmp(&(b.at, &b.object)));
    }

    /// Drops the oldest of the removals that were reserved at `start` or before, if there are more than
    /// [`MAX_EXPIRED`].
    pub(super) fn prune(&mut self, start: Timestamp) {
        let expired = self.removals.iter().filter(|entry| entry.at <= start).count();
        self.removals.drain(..expired.saturating_sub(MAX_EXPIRED));
    }
}

/// The content of a ledger when it was loaded, and the version of this content. The next state is stored only if the
/// ledger still has this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSnapshot {
    /// The content of the ledger.
    pub state: LedgerState,
    /// The version of the content; `None` if the ledger was never stored.
    pub version: Option<String>,
}

/// The result of storing a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreResult {
    /// The state was stored.
    Done,
    /// The state was not stored: another process stored one since the snapshot was loaded.
    Conflict,
}

/// The reason why a ledger cannot be used. In this case, nothing is removed without approval.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The ledger does not exist: it was never initialised, or it was lost completely.
    #[error("the removal ledger in `{place}` is not initialised; if it is new, run `{init}`")]
    NotInitialised {
        /// The location of the ledger.
        place: String,
        /// The command that initialises it.
        init: String,
    },
    /// Parts of the ledger are lost or damaged.
    #[error("the removal ledger in `{place}` {what}; restore it, or start a new one with `{init}`")]
    Damaged {
        /// The location of the ledger.
        place: String,
        /// A description of the damage.
        what: String,
        /// The command that starts a new ledger.
        init: String,
    },
    /// The ledger cannot be read or written.
    #[error("the removal ledger cannot be used: {0}")]
    Unavailable(String),
}

/// A store for ledgers, one per integration.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// Loads the ledger of an integration.
    fn load<'a>(
        &'a self,
        permit: &'a ReadPermit,
        integration: &'a str,
    ) -> BoxFuture<'a, Result<LedgerSnapshot, LedgerError>>;

    /// Stores the next state of a ledger durably, if its version is still `over`.
    fn store<'a>(
        &'a self,
        permit: &'a WritePermit,
        integration: &'a str,
        over: Option<&'a str>,
        state: &'a LedgerState,
    ) -> BoxFuture<'a, Result<StoreResult, LedgerError>>;
}

/// A ledger in memory, for a process that does not outlive the window of its budgets.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    /// The state of each integration, with its version number.
    states: Mutex<BTreeMap<String, (u64, LedgerState)>>,
}

impl MemoryLedger {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (u64, LedgerState)>> {
        self.states.lock()
    }
}

impl Ledger for MemoryLedger {
    fn load<'a>(
        &'a self,
        _: &'a ReadPermit,
        integration: &'a str,
    ) -> BoxFuture<'a, Result<LedgerSnapshot, LedgerError>> {
        let stored = self.lock().get(integration).cloned();
        let (version, state) =
            stored.map_or_else(Default::default, |(version, state)| (Some(version), state));
        let version = version.map(|version| version.to_string());
        std::future::ready(Ok(LedgerSnapshot { state, version })).boxed()
    }

    fn store<'a>(
        &'a self,
        _: &'a WritePermit,
        integration: &'a str,
        over: Option<&'a str>,
        state: &'a LedgerState,
    ) -> BoxFuture<'a, Result<StoreResult, LedgerError>> {
        let mut states = self.lock();
        let current = states.get(integration).map(|(version, _)| *version);
        let is_current = current.map(|version| version.to_string()).as_deref() == over;
        if is_current {
            states.insert(integration.to_owned(), (current.unwrap_or_default() + 1, state.clone()));
        }
        std::future::ready(Ok(if is_current { StoreResult::Done } else { StoreResult::Conflict })).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn entry(second: i64, name: &str) -> LedgerEntry {
        let object =
            ObjectRef { target: "cluster=c".to_owned(), kind: "ConfigMap".to_owned(), name: name.to_owned() };
        let (run, shard) = ("run".to_owned(), "all".to_owned());
        LedgerEntry { at: at(second), run, shard, caller: None, object, incarnation: None }
    }

    fn names(state: &LedgerState) -> Vec<(i64, &str)> {
        state.removals.iter().map(|entry| (entry.at.as_second(), entry.object.name.as_str())).collect()
    }

    #[test]
    fn the_reason_for_a_held_object_matches_the_change_that_is_held_now() {
        use ChangeKind::{Change, Remove, Replace};
        let check = |before: Option<ChangeKind>, why: &str, now: ChangeKind, expect: &str| {
            let LedgerEntry { at: since, shard, object, .. } = entry(1, "a");
            let entry = HeldEntry { since, shard, why: why.to_owned(), change: before, object };
            assert_eq!(entry.reason_for(now), expect);
        };
        check(Some(Remove), "why", Remove, "why");
        check(Some(Remove), "why", Replace, "why");
        check(Some(Change), "why", Change, "why");
        check(Some(Remove), "why", Change, "its removal was held before and is not approved");
        check(Some(Replace), "why", Change, "its removal was held before and is not approved");
        check(Some(Change), "why", Remove, "its loss of keys was held before and is not approved");
        check(None, "why", Remove, "why");
        check(None, "it loses 5 of 9 keys, which counts as a removal: why", Remove, "why");
    }

    #[test]
    fn a_reservation_at_the_start_of_the_window_no_longer_counts() {
        let state = LedgerState {
            removals: vec![entry(10, "a"), entry(11, "b"), entry(99, "c")],
            ..Default::default()
        };
        let counted: Vec<&str> = state
            .reserved(at(10), |_| true)
            .into_iter()
            .map(|removed| removed.object.name.as_str())
            .collect();
        assert_eq!(counted, ["b", "c"]);
        assert_eq!(state.reserved(at(10), |entry| entry.object.name == "b").len(), 1);
    }

    #[test]
    fn a_removal_that_is_reserved_again_counts_once_and_from_now_on() {
        let mut state = LedgerState { removals: vec![entry(10, "a"), entry(11, "b")], ..Default::default() };
        state.reserve(vec![entry(20, "c"), entry(20, "a")]);
        assert_eq!(names(&state), [(11, "b"), (20, "a"), (20, "c")]);
    }

    #[test]
    fn an_object_that_was_created_again_counts_again() {
        let of = |second, incarnation: &str| LedgerEntry {
            incarnation: Some(incarnation.to_owned()),
            ..entry(second, "a")
        };
        let mut state = LedgerState { removals: vec![of(10, "one")], ..Default::default() };
        state.reserve(vec![of(20, "one")]);
        assert_eq!(state.reserved(at(0), |_| true).len(), 1);
        state.reserve(vec![of(30, "two")]);
        assert_eq!((names(&state), state.reserved(at(0), |_| true).len()), (vec![(20, "a"), (30, "a")], 2));
    }

    #[test]
    fn a_ledger_in_memory_is_stored_over_its_last_version_only() {
        let (ledger, permits) =
            (MemoryLedger::default(), qontract_testkit::permits(qontract_access::Mode::Real));
        let write = permits.write.as_ref().unwrap();
        let store = |over: Option<&str>| {
            ledger.store(write, "x", over, &LedgerState::default()).now_or_never().unwrap().unwrap()
        };
        let version = || ledger.load(&permits.read, "x").now_or_never().unwrap().unwrap().version;
        assert_eq!((version(), store(None)), (None, StoreResult::Done));
        let first = version();
        assert_eq!(store(first.as_deref()), StoreResult::Done);
        assert_eq!((store(first.as_deref()), store(None)), (StoreResult::Conflict, StoreResult::Conflict));
        assert_eq!(store(version().as_deref()), StoreResult::Done);
    }

    #[test]
    fn only_expired_removals_beyond_a_limit_are_pruned() {
        let many =
            |count: i64| (0..count).map(|second| entry(second, &second.to_string())).collect::<Vec<_>>();
        let limit = i64::try_from(MAX_EXPIRED).unwrap();
        let mut state = LedgerState { removals: many(limit + 2), ..Default::default() };
        // A removal at the start of the window is expired.
        state.prune(at(limit - 1));
        assert_eq!(state.removals.len(), MAX_EXPIRED + 2);
        state.prune(at(limit));
        assert_eq!(names(&state)[0], (1, "1"));
        assert_eq!(state.removals.len(), MAX_EXPIRED + 1);
    }
}

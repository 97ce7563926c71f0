//! Callers through whole runs: two callers of an integration share a place, and objects move between them.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::slot::Slot;
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, CALLER_DIMENSION, Change, ChangeKind, CurrentState, Data, DeclaredShardView,
    DeclaredStateOf, DesiredItem, DesiredState, Fault, Integration, IntegrationMeta, ObjectKey, Observed,
    Options, Plan, ReadContext, RunEnd, RunOutcome, RunRequest, Scope, ShardKey, StagedIntegration,
    WriteContext, run,
};
use support::fixture::{DeclaredBox, ShelvesQuery, Stock, declared, source};

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 3, 31);

/// An object of the place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedBox {
    name: String,
    caller: String,
    uid: usize,
}

/// The place that all callers share.
#[derive(Default)]
struct Place {
    boxes: BTreeMap<String, OwnedBox>,
    created: usize,
}

/// An integration whose callers are the shelves of the data.
struct Callers {
    meta: IntegrationMeta,
    place: Arc<Mutex<Place>>,
}

enum Action {
    Put(String, String),
    Remove(String),
}

/// What a caller declares, and all callers.
type State = (Vec<DeclaredBox>, BTreeSet<String>);

fn scope(caller: &str) -> Scope {
    Scope::new([("place", "p"), (CALLER_DIMENSION, caller)])
}

fn object(caller: &str, name: &str) -> ObjectKey {
    ObjectKey { scope: scope(caller), kind: "Box".to_owned(), name: name.to_owned() }
}

impl StagedIntegration for Callers {
    type Common = ();
    type Target = ();
    type State = State;
    type Desired = BTreeSet<String>;
    type Current = OwnedBox;
    type Action = Action;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let shelves = declared(data)?.shards;
        let callers: BTreeSet<String> = shelves.values().map(|shelf| shelf.target.clone()).collect();
        let mut declared = DeclaredState::new(());
        for shelf in shelves.into_values() {
            let key = ShardKey::new([("place", "p"), (CALLER_DIMENSION, shelf.target.as_str())]);
            declared.add(key, Shard::new((), (shelf.state, callers.clone()), None));
        }
        Ok(declared)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), (), State>,
    ) -> Result<Vec<DesiredItem<BTreeSet<String>>>, Fault> {
        let caller = view.key.get(CALLER_DIMENSION).unwrap();
        let (boxes, callers) = &view.shard.state;
        let items = boxes.iter().map(|one| DesiredItem {
            object: object(caller, &one.name),
            place: None,
            state: DesiredState::Present(callers.clone()),
        });
        Ok(items.collect())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), (), State>,
        desired: &[DesiredItem<BTreeSet<String>>],
    ) -> Result<CurrentState<OwnedBox>, Fault> {
        let caller = view.key.get(CALLER_DIMENSION).unwrap();
        let is_relevant =
            |one: &&OwnedBox| one.caller == caller || desired.iter().any(|item| item.object.name == one.name);
        let place = self.place.lock().unwrap();
        let boxes = place.boxes.values().filter(is_relevant).cloned().collect();
        Ok([(scope(caller), Observed::Known(boxes))].into())
    }

    fn plan(
        &self,
        desired: &[DesiredItem<BTreeSet<String>>],
        current: &CurrentState<OwnedBox>,
    ) -> Plan<Action> {
        let mut plan = Plan::default();
        for (scope, observed) in current {
            let Observed::Known(boxes) = observed else { continue };
            let caller = scope.get(CALLER_DIMENSION).unwrap();
            for item in desired {
                let DesiredState::Present(callers) = &item.state else { continue };
                let name = &item.object.name;
                let put = || Action::Put(name.clone(), caller.to_owned());
                match boxes.iter().find(|one| one.name == *name) {
                    None => {
                        plan.add_step(Change::new(ChangeKind::Add, item.object.clone(), "put box"), put());
                    }
                    Some(one) if one.caller == caller => {}
                    Some(one) if callers.contains(&one.caller) => {
                        plan.faults.push(Fault::author(format!("`{name}` belongs to `{}`", one.caller)));
                    }
                    Some(_) => {
                        plan.add_step(
                            Change::new(ChangeKind::Change, item.object.clone(), "take over"),
                            put(),
                        );
                    }
                }
            }
            let own = boxes.iter().filter(|one| one.caller == caller);
            for one in own.filter(|one| desired.iter().all(|item| item.object.name != one.name)) {
                let change = Change::new(ChangeKind::Remove, object(caller, &one.name), "remove box");
                plan.add_step(change, Action::Remove(one.name.clone()));
            }
        }
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, action: &Action) -> Result<ApplyResult, Fault> {
        let mut place = self.place.lock().unwrap();
        match action {
            Action::Put(name, caller) => {
                place.created += 1;
                let new = OwnedBox { name: name.clone(), caller: caller.clone(), uid: place.created };
                let one = place.boxes.entry(name.clone()).or_insert(new);
                one.caller.clone_from(caller);
            }
            Action::Remove(name) => drop(place.boxes.remove(name)),
        }
        Ok(ApplyResult::Done)
    }
}

#[derive(Default)]
struct Fixture {
    place: Arc<Mutex<Place>>,
}

/// Callers with the names of their boxes.
fn stock(callers: &[(&str, &str)]) -> Stock {
    let declared = |name: &str| DeclaredBox {
        name: name.to_owned(),
        content: String::new(),
        delete: None,
        secret: None,
    };
    let boxes = |names: &str| names.split_whitespace().map(declared).collect();
    callers.iter().map(|(caller, names)| ((*caller).to_owned(), boxes(names))).collect()
}

impl Fixture {
    fn run(&self, callers: &[(&str, &str)], change: impl Fn(&mut RunRequest)) -> RunOutcome {
        let meta = IntegrationMeta::new("shelves", "boxes").query::<ShelvesQuery>().slots_without_caller();
        let integration = Integration::staged(Callers { meta, place: Arc::clone(&self.place) });
        let head = source(&stock(callers));
        let mut request = RunRequest::new("run", Mode::Real, head, TODAY, ProtectedKinds::default());
        change(&mut request);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(&integration, &request))
    }

    /// The boxes, each with its caller and uid.
    fn boxes(&self) -> Vec<String> {
        let place = self.place.lock().unwrap();
        place.boxes.values().map(|one| format!("{}={} {}", one.name, one.caller, one.uid)).collect()
    }
}

fn not_removed(outcome: &RunOutcome) -> Vec<&str> {
    outcome.shards.values().flat_map(|shard| &shard.held).map(|held| held.why.as_str()).collect()
}

#[test]
fn an_object_that_moves_between_existing_callers_is_neither_removed_nor_written() {
    let fixture = Fixture::default();
    assert_eq!(fixture.run(&[("one", "a"), ("two", "b c")], |_| {}).ended, RunEnd::Ok);
    let before = fixture.boxes();
    for _ in 0..2 {
        let outcome = fixture.run(&[("one", "a c"), ("two", "b")], |_| {});
        assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Failed, 0), "{outcome:?}");
        let faults: Vec<&str> = outcome.all_faults().map(|fault| fault.text.as_str()).collect();
        assert_eq!(faults, ["`c` belongs to `two`"]);
        assert_eq!(not_removed(&outcome), ["another caller declares it"]);
        assert_eq!(fixture.boxes(), before);
    }
    // Without the new declaration, the old caller removes it as usual.
    let outcome = fixture.run(&[("one", "a"), ("two", "b")], |_| {});
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1), "{outcome:?}");
    let outcome = fixture.run(&[("one", "a"), ("two", "b")], |_| {});
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 0), "{outcome:?}");
}

#[test]
fn the_objects_of_a_renamed_caller_are_taken_over_in_whichever_slot() {
    for count in [1, 2, 5] {
        let fixture = Fixture::default();
        let (old, new) = ([("old", "a b"), ("other", "z")], [("new", "a b"), ("other", "z")]);
        assert_eq!(fixture.run(&old, |_| {}).ended, RunEnd::Ok);
        let uids = |boxes: Vec<String>| -> Vec<String> {
            boxes.iter().map(|one| one.split(' ').next_back().unwrap().to_owned()).collect()
        };
        let before = uids(fixture.boxes());
        let mut applied = 0;
        for index in 0..count {
            let outcome = fixture.run(&new, |request| {
                request.base = Some(source(&stock(&old)));
                request.slot = Slot::new(index, count).unwrap();
            });
            assert_eq!(outcome.ended, RunEnd::Ok, "{outcome:?}");
            applied += outcome.applied();
        }
        assert_eq!((applied, uids(fixture.boxes())), (2, before), "{count}");
        let outcome = fixture.run(&new, |_| {});
        assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 0), "{outcome:?}");
    }
}

//! Targets that the data renames together with their addresses: the old name and the new one lead to the same
//! objects.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::{
    ApplyResult, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem,
    DesiredState, Fault, Integration, IntegrationMeta, ObjectKey, Observed, Options, Plan, ReadContext,
    RunEnd, RunOutcome, RunRequest, Scope, StagedIntegration, WriteContext, run,
};
use support::fixture::{DeclaredBox, ShelvesQuery, Stock, declared, source};

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 3, 31);

/// A box in the target: its name and its uid.
type UidBox = (String, String);

/// The servers, by name. A shelf `prod@a` is the shelf `prod` at an address of the server `prod`: what follows
/// the at sign is only another address.
#[derive(Default)]
struct Servers {
    boxes: BTreeMap<String, BTreeSet<UidBox>>,
    /// Addresses that do not respond.
    unreachable: BTreeSet<String>,
    created: usize,
}

fn server(address: &str) -> String {
    address.split('@').next().unwrap().to_owned()
}

struct Warehouse {
    meta: IntegrationMeta,
    servers: Arc<Mutex<Servers>>,
}

enum Action {
    Add(String, String),
    Remove(String, UidBox),
}

impl StagedIntegration for Warehouse {
    type Common = ();
    type Target = String;
    type State = Vec<DeclaredBox>;
    type Desired = ();
    type Current = UidBox;
    type Action = Action;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        declared(data)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
    ) -> Result<Vec<DesiredItem<()>>, Fault> {
        let scope = Scope::new([("shelf", view.shard.target.as_str())]);
        let object =
            |name: &str| ObjectKey { scope: scope.clone(), kind: "Box".to_owned(), name: name.to_owned() };
        let items = view.shard.state.iter().map(|one| DesiredItem {
            object: object(&one.name),
            place: None,
            state: DesiredState::Present(()),
        });
        Ok(items.collect())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<UidBox>, Fault> {
        let address = &view.shard.target;
        let servers = self.servers.lock().unwrap();
        let observed = if servers.unreachable.contains(address) {
            Observed::Unknown(Fault::remote("no response"))
        } else {
            let boxes = servers.boxes.get(&server(address));
            Observed::Known(boxes.into_iter().flatten().cloned().collect())
        };
        Ok([(Scope::new([("shelf", address.as_str())]), observed)].into())
    }

    fn incarnations(&self, current: &CurrentState<UidBox>) -> BTreeSet<String> {
        let known = current.values().filter_map(|observed| match observed {
            Observed::Known(boxes) => Some(boxes),
            Observed::Unknown(_) => None,
        });
        known.flatten().map(|(_, uid)| uid.clone()).collect()
    }

    fn plan(&self, wanted: &[DesiredItem<()>], current: &CurrentState<UidBox>) -> Plan<Action> {
        let mut plan = Plan::default();
        for (scope, observed) in current {
            let Observed::Known(boxes) = observed else { continue };
            let address = scope.get("shelf").unwrap().to_owned();
            for want in wanted.iter().filter(|want| boxes.iter().all(|(name, _)| *name != want.object.name)) {
                let change = Change::new(ChangeKind::Add, want.object.clone(), "put box");
                plan.add_step(change, Action::Add(address.clone(), want.object.name.clone()));
            }
            for (name, uid) in boxes {
                if wanted.iter().all(|want| want.object.name != *name) {
                    let object =
                        ObjectKey { scope: scope.clone(), kind: "Box".to_owned(), name: name.clone() };
                    let mut change = Change::new(ChangeKind::Remove, object, "remove box");
                    change.incarnation = Some(uid.clone());
                    plan.add_step(change, Action::Remove(address.clone(), (name.clone(), uid.clone())));
                }
            }
        }
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, action: &Action) -> Result<ApplyResult, Fault> {
        let mut servers = self.servers.lock().unwrap();
        servers.created += 1;
        let uid = format!("uid-{}", servers.created);
        match action {
            Action::Add(address, name) => {
                servers.boxes.entry(server(address)).or_default().insert((name.clone(), uid));
            }
            Action::Remove(address, gone) => {
                servers.boxes.entry(server(address)).or_default().remove(gone);
            }
        }
        Ok(ApplyResult::Done)
    }
}

/// A warehouse whose data changed from one list of shelves to another. Each shelf declares one box: a scope with
/// one object may be emptied without an approval.
struct Fixture {
    servers: Arc<Mutex<Servers>>,
}

fn stock(shelves: &[&str]) -> Stock {
    let declared = DeclaredBox { name: "box".to_owned(), content: String::new(), delete: None, secret: None };
    shelves.iter().map(|shelf| ((*shelf).to_owned(), vec![declared.clone()])).collect()
}

impl Fixture {
    /// A warehouse that was reconciled with these shelves.
    fn new(shelves: &[&str]) -> Self {
        let fixture = Self { servers: Arc::default() };
        assert_eq!(fixture.run(None, shelves).ended, RunEnd::Ok);
        fixture
    }

    fn run(&self, base: Option<&[&str]>, head: &[&str]) -> RunOutcome {
        let meta = IntegrationMeta::new("shelves", "boxes").query::<ShelvesQuery>();
        let integration = Integration::staged(Warehouse { meta, servers: Arc::clone(&self.servers) });
        let head = source(&stock(head));
        let mut request = RunRequest::new("run", Mode::Real, head, TODAY, ProtectedKinds::default());
        request.base = base.map(|shelves| source(&stock(shelves)));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(&integration, &request))
    }

    /// The uid of the box of each server.
    fn uids(&self) -> Vec<String> {
        let servers = self.servers.lock().unwrap();
        servers.boxes.values().flatten().map(|(_, uid)| uid.clone()).collect()
    }
}

fn not_removed(outcome: &RunOutcome) -> Vec<&str> {
    outcome.shards.values().flat_map(|shard| &shard.held).map(|held| held.why.as_str()).collect()
}

#[test]
fn an_object_that_a_current_shard_observes_is_kept() {
    let fixture = Fixture::new(&["dev", "prod"]);
    let before = fixture.uids();
    let outcome = fixture.run(Some(&["dev", "prod"]), &["dev", "prod@eu"]);
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 0), "{outcome:?}");
    assert_eq!(
        not_removed(&outcome),
        ["kept: the shard `shelf=prod@eu` observes the same object (the target was renamed)"]
    );
    assert_eq!(fixture.uids(), before);
    let outcome = fixture.run(None, &["dev", "prod@eu"]);
    assert_eq!((outcome.ended, outcome.applied(), not_removed(&outcome).len()), (RunEnd::Ok, 0, 0));
}

#[test]
fn an_object_of_the_same_name_on_another_target_is_removed() {
    let fixture = Fixture::new(&["dev", "prod"]);
    let outcome = fixture.run(Some(&["dev", "prod"]), &["dev", "other"]);
    assert_eq!((outcome.ended, outcome.applied(), not_removed(&outcome).len()), (RunEnd::Ok, 2, 0));
    let servers = fixture.servers.lock().unwrap();
    assert!(servers.boxes["prod"].is_empty() && servers.boxes["other"].len() == 1);
}

#[test]
fn removals_are_postponed_while_a_new_shard_cannot_be_read() {
    let fixture = Fixture::new(&["dev", "prod"]);
    let before = fixture.uids();
    fixture.servers.lock().unwrap().unreachable.insert("prod@eu".to_owned());
    let outcome = fixture.run(Some(&["dev", "prod"]), &["dev", "prod@eu"]);
    // The run is not the last one that compares the data with the older data.
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Transient, 0), "{outcome:?}");
    assert_eq!(
        not_removed(&outcome),
        ["postponed: the new shard `shelf=prod@eu` could not be read; it may be the same target, renamed"]
    );
    assert_eq!(fixture.uids(), before);
    // Shards that exist in both are no candidates, however unreadable they are.
    let mut servers = fixture.servers.lock().unwrap();
    servers.unreachable = ["dev".to_owned()].into();
    drop(servers);
    let outcome = fixture.run(Some(&["dev", "prod"]), &["dev"]);
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Transient, 1), "{outcome:?}");
}

//! Addresses are trusted one by one: a shard with several targets is planned where base knows the address.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, Operation, QuerySource};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, BundleReader, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf,
    DesiredItem, DesiredState, Fault, Hold, Integration, IntegrationMeta, LoadedBundle, ObjectKey, Observed,
    Options, Plan, ReadContext, RunEnd, RunOutcome, RunRequest, Scope, ShardKey, ShardState, SkipReason,
    StagedIntegration, TargetAddress, UnplannedItem, WriteContext, run,
};
use serde::Deserialize;
use serde_json::json;

/// An account writes a card on each of its servers. A server has an old card, which no account declares.
struct Accounts {
    about: IntegrationMeta,
    contacted: Arc<Mutex<Vec<String>>>,
}

#[derive(Deserialize)]
struct AccountsQuery {
    accounts: Vec<Account>,
}

#[derive(Deserialize)]
struct Account {
    name: String,
    servers: Vec<String>,
}

impl Operation for AccountsQuery {
    const SOURCE: QuerySource =
        QuerySource::new("Accounts", "query Accounts { accounts { name servers } }", &[]);
}

type View<'a> = DeclaredShardView<'a, (), Vec<String>, ()>;

fn scope(server: &str) -> Scope {
    Scope::new([("server", server)])
}

fn card(server: &str, name: &str) -> ObjectKey {
    ObjectKey { scope: scope(server), kind: "Card".to_owned(), name: name.to_owned() }
}

fn address(server: &str) -> TargetAddress {
    TargetAddress::of(server, server)
}

impl StagedIntegration for Accounts {
    type Common = ();
    type Target = Vec<String>;
    type State = ();
    type Desired = ();
    type Current = String;
    type Action = ();

    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        for Account { name, servers } in data.query::<AccountsQuery>()?.data.accounts {
            declared.add(ShardKey::new([("account", &*name)]), Shard::new(servers, (), None));
        }
        Ok(declared)
    }

    fn addresses(&self, view: View<'_>) -> Vec<TargetAddress> {
        view.shard.target.iter().map(|server| address(server)).collect()
    }

    async fn resolve(&self, _: &ReadContext, view: View<'_>) -> Result<Vec<DesiredItem<()>>, Fault> {
        let cards = view.shard.target.iter().map(|server| card(server, "new"));
        let state = DesiredState::Present(());
        Ok(cards.map(|object| DesiredItem { object, place: None, state: state.clone() }).collect())
    }

    async fn observe(
        &self,
        read: &ReadContext,
        view: View<'_>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<String>, Fault> {
        let mut current = BTreeMap::new();
        for server in &view.shard.target {
            let observed = if let Err(fault) = read.trust.check(&address(server)) {
                Observed::Unknown(fault)
            } else {
                self.contacted.lock().unwrap().push(server.clone());
                Observed::Known(vec!["old".to_owned(), "other".to_owned()])
            };
            current.insert(scope(server), observed);
        }
        Ok(current)
    }

    fn plan(&self, desired: &[DesiredItem<()>], current: &CurrentState<String>) -> Plan<()> {
        let mut plan = Plan::default();
        for (scope, observed) in current {
            let server = scope.get("server").unwrap();
            // A faulty integration would remove without having read; the guards do not let it.
            if let Observed::Unknown(_) = observed {
                plan.add_step(Change::new(ChangeKind::Remove, card(server, "old"), "remove card"), ());
                continue;
            }
            plan.add_step(Change::new(ChangeKind::Remove, card(server, "old"), "remove card"), ());
            for want in desired.iter().filter(|want| want.object.scope == *scope) {
                plan.add_step(Change::new(ChangeKind::Add, want.object.clone(), "write card"), ());
            }
        }
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, (): &()) -> Result<ApplyResult, Fault> {
        Ok(ApplyResult::Done)
    }
}

/// A bundle with these accounts: `a: s1 s2`.
fn source(accounts: &[&str]) -> Arc<dyn BundleReader> {
    let mut data = json!({});
    for account in accounts {
        let (name, servers) = account.split_once(':').unwrap();
        let servers: Vec<&str> = servers.split_whitespace().collect();
        data[format!("/{name}.yml")] = json!({"$schema": "/account", "name": name, "servers": servers});
    }
    let bundle = json!({"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {}, "data": data,
        "graphql": [
            {"name": "Query", "fields": [
                {"name": "accounts", "type": "Account", "isList": true, "datafileSchema": "/account"}]},
            {"name": "Account", "fields": [{"name": "name", "type": "string"},
                {"name": "servers", "type": "string", "isList": true}]}]});
    let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).unwrap();
    Arc::new(LoadedBundle::new(Arc::new(Engine::new(Arc::new(bundle)).unwrap())))
}

/// A run, and the servers that it contacted.
fn perform(mode: Mode, base: &[&str], head: &[&str], trust_head: bool) -> (RunOutcome, Vec<String>) {
    let contacted = Arc::<Mutex<Vec<String>>>::default();
    let about = IntegrationMeta::new("accounts", "Writes cards").query::<AccountsQuery>();
    let integration = Integration::staged(Accounts { about, contacted: Arc::clone(&contacted) });
    let (today, protected) = (jiff::civil::date(2026, 3, 31), ProtectedKinds::default());
    let mut request = RunRequest::new("run", mode, source(head), today, protected);
    request.base = Some(source(base));
    (request.validate_schemas, request.trust_head) = (false, trust_head);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let outcome = runtime.block_on(run(&integration, &request));
    let contacted = contacted.lock().unwrap().clone();
    (outcome, contacted)
}

fn changes(outcome: &RunOutcome) -> Vec<String> {
    outcome.shards.values().flat_map(|shard| &shard.changes).map(ToString::to_string).collect()
}

#[test]
fn a_refused_address_is_unknown_in_its_own_scope_and_the_rest_is_planned() {
    let (outcome, contacted) = perform(Mode::DryRun, &["a: s1 s2"], &["a: s1 evil"], false);
    assert_eq!(contacted, ["s1"]);
    assert_eq!(outcome.ended, RunEnd::Ok, "{:?}", outcome.all_faults().collect::<Vec<_>>());
    assert_eq!(changes(&outcome), ["- remove card `old` (server=s1)", "+ write card `new` (server=s1)"]);
    let shard = &outcome.shards[&ShardKey::new([("account", "a")])];
    let text = "`server=evil`: `evil` is new in this change and is not contacted before it is merged; it is planned and applied after the merge";
    assert_eq!(shard.unplanned, [UnplannedItem::new(text)]);
    let held: Vec<(&str, Hold)> = shard.held.iter().map(|held| (held.why.as_str(), held.hold)).collect();
    assert_eq!(held, [("`server=evil` was not read", Hold::Unresolved)], "nothing is removed behind it");
}

#[test]
fn an_address_that_any_shard_of_base_has_is_trusted() {
    let (outcome, contacted) = perform(Mode::DryRun, &["a: s1", "b: s2"], &["a: s1 s2", "b: s2"], false);
    assert_eq!((outcome.ended, contacted), (RunEnd::Ok, vec!["s1".to_owned(), "s2".to_owned()]));
    assert!(outcome.shards.values().all(|shard| shard.notes.is_empty()));
}

#[test]
fn a_shard_without_a_trusted_address_is_skipped() {
    let (outcome, contacted) = perform(Mode::DryRun, &["a: s1"], &["a: s1", "b: evil worse"], false);
    assert_eq!(contacted, [""; 0]);
    let state = &outcome.shards[&ShardKey::new([("account", "b")])].state;
    assert_eq!(*state, ShardState::Skipped(SkipReason::UntrustedTarget));
    let [item] = &*outcome.shards[&ShardKey::new([("account", "b")])].unplanned else { panic!("one item") };
    assert!(item.text.starts_with("`account=b`: it is new in this change"), "{item:?}");
}

#[test]
fn the_declared_differences_of_a_skipped_shard_are_reported() {
    let (outcome, contacted) = perform(Mode::DryRun, &["a: s1"], &["a: evil worse"], false);
    assert_eq!(contacted, [""; 0]);
    let [item] = &*outcome.shards[&ShardKey::new([("account", "a")])].unplanned else { panic!("one item") };
    assert!(item.text.starts_with("`account=a`: its address is new in this change"), "{item:?}");
}

#[test]
fn head_is_trusted_on_request_and_in_a_real_run() {
    let (base, head) = (&["a: s1"], &["a: evil s1"]);
    assert_eq!(perform(Mode::DryRun, base, head, true).1, ["evil", "s1"]);
    assert_eq!(perform(Mode::Real, base, head, false).1, ["evil", "s1"]);
}

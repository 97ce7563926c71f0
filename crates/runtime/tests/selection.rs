//! Runs that are restricted to some shards, slots by a dimension, printing, and queries that the types may lack.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_bundle::{Pool, load};
use qontract_graphql::Engine;
use qontract_runtime::affected::{AffectedVerdict, BundlePair, Rule, affected};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::slot::{Slot, slot_of};
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, ArgumentKind, BundleReader, Change, ChangeKind, CurrentState, Data, DeclaredShardView,
    DeclaredStateOf, DesiredItem, DesiredState, Fault, Integration, IntegrationMeta, LoadedBundle, ObjectKey,
    Observed, Operation, Options, Plan, QuerySource, ReadContext, RunEnd, RunOutcome, RunRequest, Scope,
    ShardKey, StagedIntegration, WriteContext, run,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The books of the data, by shelf.
#[derive(Deserialize)]
struct Books {
    books: Vec<Book>,
}

#[derive(Deserialize)]
struct Book {
    name: String,
    shelf: String,
}

impl Operation for Books {
    const SOURCE: QuerySource = QuerySource::new("Books", "query Books { books { name shelf } }", &[]);
}

/// Loans: data of our own, which other types lack.
#[derive(Deserialize)]
struct Loans {
    loans: Vec<Loan>,
}

#[derive(Deserialize)]
struct Loan {
    book: String,
    reader: String,
}

impl Operation for Loans {
    const SOURCE: QuerySource = QuerySource::new("Loans", "query Loans { loans { book reader } }", &[]);
}

/// The books in the target, and the number of observations.
#[derive(Default)]
struct Library {
    books: BTreeSet<String>,
    observed: usize,
}

/// Puts each book on its shelf. A shard is a book on a shelf; the desired state of the book `lost` is unresolved.
struct Librarian {
    meta: IntegrationMeta,
    library: Arc<Mutex<Library>>,
}

impl Librarian {
    fn meta() -> IntegrationMeta {
        IntegrationMeta::new("librarian", "Puts books on shelves")
            .query::<Books>()
            .query_if_known::<Loans>()
            .slots_by("shelf")
            .prints("print-only", "Print the books")
    }
}

fn scope(key: &ShardKey) -> Scope {
    Scope::new(key.parts())
}

impl StagedIntegration for Librarian {
    type Common = ();
    type Target = ();
    type State = String;
    type Desired = String;
    type Current = String;
    type Action = String;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let loans = data.query_if_known::<Loans>()?.map(|loans| loans.data.loans).unwrap_or_default();
        let mut declared = DeclaredState::new(());
        for Book { name, shelf } in data.query::<Books>()?.data.books {
            let key = ShardKey::new([("shelf", shelf.as_str()), ("book", name.as_str())]);
            let reader = loans.iter().find(|loan| loan.book == name).map(|loan| loan.reader.as_str());
            declared.add(key, Shard::new((), reader.unwrap_or("nobody").to_owned(), None));
        }
        Ok(declared)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), (), String>,
    ) -> Result<Vec<DesiredItem<String>>, Fault> {
        let name = view.key.get("book").unwrap().to_owned();
        let state = match name.as_str() {
            "lost" => DesiredState::Unresolved(Fault::author("it cannot be found")),
            _ => DesiredState::Present(view.shard.state.clone()),
        };
        let object = ObjectKey { scope: scope(view.key), kind: "Book".to_owned(), name };
        Ok(vec![DesiredItem { object, place: None, state }])
    }

    fn print(&self, key: &ShardKey, wanted: &[DesiredItem<String>]) -> Option<String> {
        let present = wanted.iter().filter_map(|want| match &want.state {
            DesiredState::Present(reader) => Some(format!("{key}: {reader}\n")),
            DesiredState::Delete | DesiredState::Unresolved(_) => None,
        });
        Some(present.collect())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), (), String>,
        _: &[DesiredItem<String>],
    ) -> Result<CurrentState<String>, Fault> {
        let mut library = self.library.lock().unwrap();
        library.observed += 1;
        let name = view.key.get("book").unwrap();
        let there = library.books.iter().filter(|book| *book == name).cloned().collect();
        Ok(BTreeMap::from([(scope(view.key), Observed::Known(there))]))
    }

    fn plan(&self, wanted: &[DesiredItem<String>], current: &CurrentState<String>) -> Plan<String> {
        let mut plan = Plan::default();
        for (scope, observed) in current {
            let Observed::Known(there) = observed else { continue };
            let object = |name: &str| ObjectKey {
                scope: scope.clone(),
                kind: "Book".to_owned(),
                name: name.to_owned(),
            };
            for want in wanted.iter().filter(|want| !there.contains(&want.object.name)) {
                let change = Change::new(ChangeKind::Add, object(&want.object.name), "put book");
                plan.add_step(change, format!("+{}", want.object.name));
            }
            for name in there.iter().filter(|name| wanted.iter().all(|want| want.object.name != **name)) {
                plan.add_step(
                    Change::new(ChangeKind::Remove, object(name), "remove book"),
                    format!("-{name}"),
                );
            }
        }
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, action: &String) -> Result<ApplyResult, Fault> {
        let mut library = self.library.lock().unwrap();
        match action.split_at(1) {
            ("+", name) => library.books.insert(name.to_owned()),
            (_, name) => library.books.remove(name),
        };
        Ok(ApplyResult::Done)
    }
}

/// Whether the types define loans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    WithLoans,
    WithoutLoans,
}

/// A bundle with these books, as `shelf/book`, and these loans, as `book/reader`.
fn bundle(types: Types, books: &[&str], loans: &[&str], allowed: &[&str]) -> Arc<dyn BundleReader> {
    let field = |name: &str| json!({"name": name, "type": "string"});
    let list = |name: &str, of: &str, schema: &str| json!({"name": name, "type": of, "isList": true, "datafileSchema": schema});
    let mut fields =
        vec![list("integrations_v1", "Integration", "/integration"), list("books", "Book", "/book")];
    let mut graphql = vec![
        json!({"name": "Integration", "fields": [field("name"), field("path"), {"name": "schemas", "type": "string", "isList": true}]}),
        json!({"name": "Book", "fields": [field("name"), field("shelf")]}),
    ];
    if types == Types::WithLoans {
        fields.push(list("loans", "Loan", "/loan"));
        graphql.push(json!({"name": "Loan", "fields": [field("book"), field("reader")]}));
    }
    graphql.insert(0, json!({"name": "Query", "fields": fields}));
    let mut data = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "librarian", "schemas": allowed}});
    for book in books {
        let (shelf, name) = book.split_once('/').unwrap();
        data[format!("/{name}.yml")] = json!({"$schema": "/book", "name": name, "shelf": shelf});
    }
    for loan in loans {
        let (book, reader) = loan.split_once('/').unwrap();
        data[format!("/loan-{book}.yml")] = json!({"$schema": "/loan", "book": book, "reader": reader});
    }
    let bundle: Value = json!({"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
        "data": data, "graphql": graphql});
    let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).unwrap();
    Arc::new(LoadedBundle::new(Arc::new(Engine::new(Arc::new(bundle)).unwrap())))
}

const ALLOWED: [&str; 2] = ["/integration", "/book"];
const ALL_ALLOWED: [&str; 3] = ["/integration", "/book", "/loan"];

fn books(books: &[&str]) -> Arc<dyn BundleReader> {
    bundle(Types::WithoutLoans, books, &[], &ALLOWED)
}

struct Fixture {
    integration: Integration,
    library: Arc<Mutex<Library>>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Librarian::meta())
    }

    fn with(meta: IntegrationMeta) -> Self {
        let library = Arc::<Mutex<Library>>::default();
        let integration = Integration::staged(Librarian { meta, library: Arc::clone(&library) });
        Self { integration, library }
    }

    /// A run with this change of its request.
    fn run(&self, head: Arc<dyn BundleReader>, change: impl FnOnce(&mut RunRequest)) -> RunOutcome {
        let today = jiff::civil::date(2026, 1, 1);
        let mut request = RunRequest::new("r", Mode::Real, head, today, ProtectedKinds::default());
        change(&mut request);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(&self.integration, &request))
    }

    fn there(&self) -> Vec<String> {
        self.library.lock().unwrap().books.iter().cloned().collect()
    }
}

fn only(keys: &[&str]) -> BTreeSet<ShardKey> {
    keys.iter().map(|key| key.parse().unwrap()).collect()
}

fn faults(outcome: &RunOutcome) -> Vec<&str> {
    outcome.all_faults().map(|fault| fault.text.as_str()).collect()
}

#[test]
fn a_restricted_run_leaves_the_other_shards_alone() {
    let fixture = Fixture::new();
    let outcome = fixture.run(books(&["a/one", "a/two", "b/three"]), |request| {
        request.only_shards = Some(only(&["shelf=a,book=one"]));
    });
    assert_eq!((outcome.ended, fixture.there()), (RunEnd::Ok, vec!["one".to_owned()]));
    assert_eq!(fixture.library.lock().unwrap().observed, 1, "the others are not observed");
    assert_eq!(outcome.decisions[0].text, "only these shards run: `shelf=a, book=one`");
    // The order of dimensions does not matter.
    let outcome = fixture.run(books(&["a/one", "a/two", "b/three"]), |request| {
        request.only_shards = Some(only(&["book=two,shelf=a", "shelf=a,book=one"]));
    });
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1));
    let outcome = fixture.run(books(&["a/one", "a/two", "b/three"]), |_| {});
    assert_eq!((outcome.ended, outcome.applied(), fixture.there().len()), (RunEnd::Ok, 1, 3));
    let outcome = fixture.run(books(&["a/one", "a/two", "b/three"]), |_| {});
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 0));
}

#[test]
fn an_unknown_shard_is_an_error_that_names_the_nearest() {
    let fixture = Fixture::new();
    let outcome = fixture.run(books(&["a/one", "b/three"]), |request| {
        request.only_shards = Some(only(&["shelf=a,book=onne", "shelf=b,book=three"]));
    });
    assert_eq!(outcome.ended, RunEnd::Usage);
    let expect = "no shard `shelf=a, book=onne` in the data; did you mean `shelf=a, book=one`?";
    assert_eq!(faults(&outcome), [expect]);
    assert!(fixture.there().is_empty(), "nothing runs");
    // Also if the change does not affect the integration.
    let outcome = fixture.run(books(&["a/one"]), |request| {
        request.mode = Mode::DryRun;
        request.base = Some(books(&["a/one"]));
        request.only_shards = Some(only(&["shelf=zzz"]));
    });
    assert_eq!(outcome.ended, RunEnd::Usage);
}

#[test]
fn a_shard_that_only_base_has_runs_only_if_it_is_named() {
    let fixture = Fixture::new();
    let both = ["a/one", "b/two"];
    assert_eq!(fixture.run(books(&both), |_| {}).applied(), 2);
    let restricted = |keys: &[&str]| {
        fixture.run(books(&["a/one"]), |request| {
            request.base = Some(books(&both));
            request.only_shards = Some(only(keys));
        })
    };
    assert_eq!(restricted(&["shelf=a,book=one"]).ended, RunEnd::Ok);
    assert_eq!(fixture.there(), ["one", "two"]);
    let outcome = restricted(&["shelf=b,book=two"]);
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1), "{:?}", faults(&outcome));
    assert_eq!(fixture.there(), ["one"]);
}

#[test]
fn a_shard_that_flags_or_slot_leave_out_is_reported() {
    let fixture = Fixture::new();
    let other = 1 - slot_of("a", 2);
    let outcome = fixture.run(books(&["a/one"]), |request| {
        request.slot = Slot::new(other, 2).unwrap();
        request.only_shards = Some(only(&["shelf=a,book=one"]));
    });
    assert_eq!(outcome.warnings, ["the flags or the slot do not select the shard `shelf=a, book=one`"]);
    assert!(fixture.there().is_empty());
}

#[test]
fn all_shards_with_one_value_of_the_slot_dimension_are_in_one_slot() {
    let all: Vec<String> = (0..20).map(|index| format!("{}/book-{index}", ["a", "b"][index % 2])).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let count = 3;
    for index in 0..count {
        let fixture = Fixture::new();
        fixture.run(books(&all), |request| request.slot = Slot::new(index, count).unwrap());
        let shelves = ["a", "b"].into_iter().filter(|shelf| slot_of(shelf, count) == index);
        assert_eq!(fixture.there().len(), 10 * shelves.count(), "slot {index}");
    }
}

#[test]
fn a_run_that_prints_ends_after_resolve_and_writes_nothing() {
    let fixture = Fixture::new();
    let outcome =
        fixture.run(books(&["a/one", "b/two"]), |request| request.options.add("print-only", "true"));
    let printed: String = outcome.shards.values().filter_map(|shard| shard.printed.as_deref()).collect();
    assert_eq!(printed, "shelf=a, book=one: nobody\nshelf=b, book=two: nobody\n");
    assert_eq!((outcome.ended, outcome.mode), (RunEnd::Ok, Mode::DryRun));
    assert_eq!(fixture.library.lock().unwrap().observed, 0, "the target is not read");
    assert_eq!(fixture.there(), [""; 0]);
}

#[test]
fn an_unresolved_object_is_named_and_the_rest_is_printed() {
    let fixture = Fixture::new();
    let outcome =
        fixture.run(books(&["a/lost", "b/two"]), |request| request.options.add("print-only", "true"));
    let printed: String = outcome.shards.values().filter_map(|shard| shard.printed.as_deref()).collect();
    assert_eq!(printed, "shelf=b, book=two: nobody\n");
    let expect = "it cannot be found; Book `lost` (shelf=a, book=lost) is not printed";
    assert_eq!((outcome.ended, faults(&outcome)), (RunEnd::Failed, vec![expect]));
}

#[test]
fn a_text_with_control_characters_is_not_printed() {
    let fixture = Fixture::new();
    let outcome =
        fixture.run(books(&["a/one\u{1b}[2J", "b/two"]), |request| request.options.add("print-only", "true"));
    let printed: Vec<&str> = outcome.shards.values().filter_map(|shard| shard.printed.as_deref()).collect();
    assert_eq!(printed, ["shelf=b, book=two: nobody\n"]);
    assert!(faults(&outcome)[0].ends_with("is not printed: its text contains control characters"));
}

#[test]
fn a_missing_argument_ends_a_run_before_it_reads_anything() {
    let meta =
        Librarian::meta().argument("project", "The project", ArgumentKind::Required).variable("PROJECT");
    let fixture = Fixture::with(meta);
    let outcome = fixture.run(books(&["a/one"]), |_| {});
    let expect = "the argument `PROJECT` is missing and `$PROJECT` is not set";
    assert_eq!((outcome.ended, faults(&outcome)), (RunEnd::Usage, vec![expect]));
    assert!(fixture.there().is_empty());
    let outcome = fixture.run(books(&["a/one"]), |request| request.options.add("project", "shop"));
    assert_eq!(outcome.ended, RunEnd::Ok);
}

#[test]
fn a_query_that_the_types_lack_has_no_result_and_needs_no_permission() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run(books(&["a/one"]), |_| {}).ended, RunEnd::Ok);
    // Once the types have it, the integration has to list the schemas that it reads.
    let known = |allowed: &[&str]| bundle(Types::WithLoans, &["a/one"], &["one/ann"], allowed);
    let outcome = fixture.run(known(&ALLOWED), |_| {});
    assert_eq!(outcome.ended, RunEnd::Forbidden, "{:?}", faults(&outcome));
    let outcome = fixture.run(known(&ALL_ALLOWED), |request| request.options.add("print-only", "true"));
    assert_eq!(outcome.shards.values().next().unwrap().printed.as_deref(), Some("shelf=a, book=one: ann\n"));
}

#[test]
fn a_base_that_lacks_the_field_and_a_head_that_has_it_are_compared() {
    let fixture = Fixture::new();
    let check = |base: Arc<dyn BundleReader>, head: Arc<dyn BundleReader>, expect: Result<Rule, usize>| {
        let pair = BundlePair::new(&fixture.integration, base, head);
        let verdict = match affected(&fixture.integration, &pair, &Options::default()) {
            AffectedVerdict::Unaffected(rule) => Ok(rule),
            AffectedVerdict::Affected(impact) => Err(impact.comparison.unwrap().shards.len()),
            AffectedVerdict::Unknown(fault) => panic!("{fault}"),
        };
        assert_eq!(verdict, expect);
    };
    let with = |books: &[&str], loans: &[&str]| bundle(Types::WithLoans, books, loans, &ALL_ALLOWED);
    let without = |books: &[&str]| bundle(Types::WithoutLoans, books, &[], &ALL_ALLOWED);
    let both = ["a/one", "b/two"];
    // Neither bundle knows the query: it is not part of the comparison.
    check(without(&both), without(&both), Ok(Rule::Footprint));
    check(without(&["a/one"]), without(&both), Err(1));
    // Only head knows it: the declared states decide.
    check(without(&both), with(&both, &["one/ann"]), Err(1));
    check(without(&both), with(&both, &[]), Ok(Rule::Declared));
    check(with(&both, &["one/ann"]), without(&both), Err(1));
    // Both know it.
    check(with(&both, &["one/ann"]), with(&both, &["one/ann"]), Ok(Rule::Footprint));
    check(with(&both, &["one/ann"]), with(&both, &["one/bob"]), Err(1));
}

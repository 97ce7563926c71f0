//! Lines and comparisons of the example, and hostile requests.

use qontract_bundle::BuildOptions;
use qontract_bundle::Pool;
use qontract_runtime::AdHocReads;
use qontract_runtime::affected::{AffectedElements, ComparedList, ComparedQuery, FootprintVerdict};
use qontract_testkit::{Scratch, example};
use serde_json::{Value, json};

use super::*;

const NAMESPACE: &str = "data/services/catalog/namespaces/catalog-stage.yml";

fn build(scratch: &Scratch) -> Arc<Engine> {
    let opened = OpenedRepo::in_folder(scratch.path(), Layout::default()).expect("a data repo");
    let outcome = opened.bundle(&Pool::default(), BuildOptions::default());
    let bundle = outcome.expect("readable files").built.expect("no errors");
    Arc::new(Engine::new(Arc::new(bundle)).expect("valid types"))
}

fn analysis(scratch: &Scratch) -> DataAnalysis {
    DataAnalysis::of_repo(scratch.path().to_owned(), Layout::default())
}

fn lines(analysis: &DataAnalysis, engine: &Arc<Engine>, places: &Value) -> Vec<String> {
    let request = json!({ "places": places }).to_string();
    let answer = analysis.locate(engine, request.as_bytes()).expect("lines");
    serde_json::from_slice::<Lines>(&answer).expect("lines").lines
}

fn query() -> ComparisonQuery {
    ComparisonQuery {
        integration: "some".to_owned(),
        queries: vec![ComparedQuery {
            name: "Names".to_owned(),
            text: "query Names { namespaces_v1 { path name } }".to_owned(),
            if_known: false,
        }],
        ad_hoc_reads: AdHocReads::Never,
        independent_list: Some(ComparedList {
            list: "namespaces_v1".to_owned(),
            conflict_keys: vec!["name".to_owned()],
            joined_lists: Vec::new(),
        }),
        trigger: "unknown".to_owned(),
    }
}

fn compare<R: DeserializeOwned>(
    analysis: &DataAnalysis,
    sides: [&Arc<Engine>; 2],
    request: &CompareRequest,
) -> R {
    let request = serde_json::to_vec(request).expect("a request");
    let answer = analysis.compare(sides[0], sides[1], &request).expect("an answer");
    serde_json::from_slice(&answer).expect("the documented answer")
}

#[test]
fn a_place_has_the_line_of_the_content_that_was_bundled() {
    let scratch = Scratch::copy_of(&example());
    scratch.commit_all("all");
    let (analysis, engine) = (analysis(&scratch), build(&scratch));
    let path = NAMESPACE.strip_prefix("data").expect("a datafile");
    let place = json!([{ "path": path, "pointer": "/name" }, { "path": "/nope.yml", "pointer": "/name" },
        { "path": "/../../../etc/passwd", "pointer": "" }, { "resource": true, "path": "/x", "pointer": "" }]);
    let text = scratch.read(NAMESPACE);
    let line = text.lines().position(|line| line.starts_with("name:")).expect("a name") + 1;
    let expect = [
        format!("{NAMESPACE}:{line}"),
        "data/nope.yml".to_owned(),
        "data/../../../etc/passwd".to_owned(),
        "resources/x".to_owned(),
    ];
    assert_eq!(lines(&analysis, &engine, &place), expect);
    // The file changed, so the line comes from the commit.
    scratch.write(NAMESPACE, format!("# above\n{text}"));
    assert_eq!(lines(&analysis, &engine, &place), expect);
    // The edited file was bundled, but neither the directory nor the commit still contains its content.
    let edited = build(&scratch);
    scratch.write(NAMESPACE, &text);
    assert_eq!(lines(&analysis, &edited, &place)[0], NAMESPACE);
    assert_eq!(lines(&DataAnalysis::without_files(), &engine, &place)[0], NAMESPACE);
}

#[test]
fn a_comparison_tells_what_a_change_can_affect() {
    let scratch = Scratch::copy_of(&example());
    let (analysis, base) = (analysis(&scratch), build(&scratch));
    let text = scratch.read(NAMESPACE);
    let survey = |head: &Arc<Engine>| -> ComparisonSurvey {
        compare(&analysis, [&base, head], &CompareRequest::Survey(query()))
    };
    let same = survey(&base);
    assert_eq!((same.own, same.footprint, same.elements), (false, FootprintVerdict::Outside, None));
    scratch.write(NAMESPACE, text.replace("name: catalog-stage", "name: catalog-staging"));
    let head = build(&scratch);
    let changed = survey(&head);
    let path: Box<str> = NAMESPACE.strip_prefix("data").expect("a datafile").into();
    let selection = [("namespaces_v1".into(), [path.clone()].into())].into();
    let elements = AffectedElements { is_empty: false, selection: Some(selection) };
    assert_eq!((changed.footprint, changed.elements), (FootprintVerdict::Inside, Some(elements)));
    let causes = CausesQuery { query: query(), differences: None };
    let answer: CausesAnswer = compare(&analysis, [&base, &head], &CompareRequest::Causes(causes));
    let place = SourceLocation::datafile(&path, "/name");
    assert_eq!(
        answer.causes.iter().map(|cause| cause.place.clone()).collect::<Vec<_>>(),
        [Some(place.clone())]
    );
    let locate = DifferencePlaces {
        changes: vec![SourceLocation::datafile(&path, "")],
        others: vec![place.clone()],
        causes: vec![place],
    };
    let line = text.lines().position(|line| line.starts_with("name:")).expect("a name") + 1;
    let located: DifferenceLines = compare(&analysis, [&base, &head], &CompareRequest::Locate(locate));
    let expect = vec![format!("{NAMESPACE}:{line}")];
    assert_eq!(located, DifferenceLines { changes: expect.clone(), others: expect });
}

#[test]
fn hostile_requests_are_refused() {
    let scratch = Scratch::copy_of(&example());
    let (analysis, engine) = (analysis(&scratch), build(&scratch));
    let check = |request: &str, expect: &str| {
        let error = analysis.compare(&engine, &engine, request.as_bytes()).expect_err("an error");
        assert!(error.0.contains(expect), "{request:.80}: {error}");
    };
    check("", "it must be an object");
    check("[]", "it must be an object");
    check("{}", "the request is invalid");
    check("{\"nope\": 1}", "unknown variant `nope`");
    check("{\"survey\": {\"integration\": \"a\"}}", "missing field `queries`");
    check("{\"survey\": {\"integration\": \"a\", \"integration\": \"a\"}}", "duplicate field `integration`");
    let many = |count: usize| vec![SourceLocation::datafile("/a.yml", ""); count];
    let locate = DifferencePlaces { changes: many(5_001), ..DifferencePlaces::default() };
    let text = serde_json::to_string(&CompareRequest::Locate(locate)).expect("a request");
    check(&text, "at most 5000 are allowed");
    let queries = vec![query().queries[0].clone(); 101];
    let survey = CompareRequest::Survey(ComparisonQuery { queries, ..query() });
    check(&serde_json::to_string(&survey).expect("a request"), "at most 100 are allowed");
    // A query that is invalid or too deep has no footprint, so every element may be affected.
    let mut invalid = query();
    invalid.queries[0].text = "{".repeat(10_000);
    let survey: ComparisonSurvey = compare(&analysis, [&engine, &engine], &CompareRequest::Survey(invalid));
    assert_eq!((survey.footprint, survey.elements), (FootprintVerdict::Unknown, None));
}

//! Checks rules with promtool and with additional checks. Equal rules are checked only once.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use qontract_client_promtool::{Promtool, PromtoolError, RuleVerdict};
use qontract_runtime::{Fault, FunctionContext, SourceLocation};
use serde_json::{Map, Value};

use crate::rules::{NamespaceRule, RuleSet};

/// Default number of concurrent checks.
const DEFAULT_CONCURRENCY: usize = 4;
/// Maximum size of an object that prometheus-operator passes to Prometheus.
const MAX_OBJECT_BYTES: usize = 512 << 10;

/// A request to promtool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PromtoolRequest {
    /// The rules, as JSON.
    rules: String,
    /// A test of the rules, as JSON. Without a test, the rules themselves are checked.
    test: Option<String>,
}

impl PromtoolRequest {
    fn check(rules: &Value) -> Self {
        Self { rules: rules.to_string(), test: None }
    }

    fn test(rules: &Value, test: &Map<String, Value>) -> Self {
        Self { rules: rules.to_string(), test: Some(Value::Object(test.clone()).to_string()) }
    }
}

type PromtoolResults = BTreeMap<PromtoolRequest, Result<RuleVerdict, PromtoolError>>;

/// Converts a promtool error into a fault that names the party that has to act.
pub fn promtool_fault(error: &PromtoolError) -> Fault {
    if error.is_transient() {
        return Fault::remote(error.to_string());
    }
    let fault = Fault::operator(error.to_string());
    match error {
        PromtoolError::Missing { .. } => fault.hint("set `path` of `[promtool]` in the configuration"),
        _ => fault,
    }
}

/// All faults, in data order. A fault at several source locations is reported once, with all its locations.
pub async fn faults(promtool: &Promtool, cx: &FunctionContext<'_>, found: &RuleSet) -> Vec<Fault> {
    let checks = found.rules.iter().filter_map(|rule| Some(PromtoolRequest::check(spec(rule)?)));
    let mut answers = run_checks(promtool, cx, checks.collect()).await;
    let tests = found.rules.iter().filter(|rule| is_valid(rule, found, &answers)).flat_map(|rule| {
        let bodies = rule.tests.iter().filter_map(|test| test.body.as_ref().ok());
        bodies.filter_map(move |test| Some(PromtoolRequest::test(spec(rule)?, test)))
    });
    let tests: BTreeSet<PromtoolRequest> = tests.collect();
    answers.extend(run_checks(promtool, cx, tests).await);
    let mut reported: Vec<Fault> = Vec::new();
    for rule in &found.rules {
        for fault in rule_faults(rule, found, &answers) {
            match reported.iter_mut().find(|before| is_same_fault(before, &fault)) {
                Some(before) => {
                    let fresh: Vec<SourceLocation> =
                        fault.places.into_iter().filter(|place| !before.places.contains(place)).collect();
                    before.places.extend(fresh);
                }
                None => reported.push(fault),
            }
        }
    }
    reported
}

fn is_same_fault(one: &Fault, other: &Fault) -> bool {
    (&one.text, &one.details, one.whose) == (&other.text, &other.details, other.whose)
}

fn spec(rule: &NamespaceRule) -> Option<&Value> {
    rule.body.as_ref().ok().map(|body| &body["spec"])
}

/// Whether rules are valid, apart from their tests.
fn is_valid(rule: &NamespaceRule, found: &RuleSet, answers: &PromtoolResults) -> bool {
    let Some(spec) = spec(rule) else { return false };
    static_errors(rule, found).is_empty()
        && matches!(answers.get(&PromtoolRequest::check(spec)), Some(Ok(RuleVerdict::Passed)))
}

async fn run_checks(
    promtool: &Promtool,
    cx: &FunctionContext<'_>,
    requests: BTreeSet<PromtoolRequest>,
) -> PromtoolResults {
    let results = stream::iter(requests).map(async |request| {
        let rules: Value = serde_json::from_str(&request.rules).unwrap_or_default();
        let verdict = match &request.test {
            None => promtool.check_rules(cx.read(), &rules).await,
            Some(text) => {
                let test: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
                promtool.test_rules(cx.read(), &rules, &test).await
            }
        };
        (request, verdict)
    });
    let concurrency = cx.options.concurrency(&crate::meta().flags).unwrap_or(DEFAULT_CONCURRENCY);
    results.buffer_unordered(concurrency).collect().await
}

/// The faults of a rule and its tests.
fn rule_faults(rule: &NamespaceRule, found: &RuleSet, answers: &PromtoolResults) -> Vec<Fault> {
    let below = |pointer: &str| rule.place.as_ref().map(|place| place.below(pointer));
    let wrong = |text: String| Fault::author(format!("`{}`: {text}", rule.path)).at(below("/path"));
    let Some(spec) = spec(rule) else {
        let why = rule.body.as_ref().err().cloned().unwrap_or_default();
        return vec![wrong(format!("it cannot be checked: {why}"))];
    };
    let mut faults: Vec<Fault> = static_errors(rule, found).into_iter().map(wrong).collect();
    match answers.get(&PromtoolRequest::check(spec)) {
        Some(Ok(RuleVerdict::Passed)) => {}
        Some(Ok(RuleVerdict::Failed(words))) => {
            faults.push(wrong("the rules are invalid".to_owned()).details(words));
        }
        Some(Err(error)) => faults.push(unchecked_fault(error, &rule.path, below("/path"))),
        None => faults.push(Fault::internal(format!("`{}` was not checked", rule.path))),
    }
    for (index, test) in rule.tests.iter().enumerate() {
        let place = below(&format!("/tests/{index}"));
        let wrong = |text: String| Fault::author(format!("`{}` of `{}`: {text}", test.path, rule.path));
        match &test.body {
            Err(why) => faults.push(wrong(format!("the test cannot be run: {why}")).at(place)),
            Ok(body) => match answers.get(&PromtoolRequest::test(spec, body)) {
                // The tests are not run if the rules are invalid, which is reported separately.
                None | Some(Ok(RuleVerdict::Passed)) => {}
                Some(Ok(RuleVerdict::Failed(words))) => {
                    faults.push(wrong("the test fails".to_owned()).details(words).at(place));
                }
                Some(Err(error)) => faults.push(unchecked_fault(error, &test.path, place)),
            },
        }
    }
    faults
}

fn unchecked_fault(error: &PromtoolError, path: &str, place: Option<SourceLocation>) -> Fault {
    promtool_fault(error).while_doing(&format!("`{path}` is not checked")).at(place)
}

/// The faults that are found without promtool: unknown services, and objects that are too large.
fn static_errors(rule: &NamespaceRule, found: &RuleSet) -> Vec<String> {
    let mut wrong = Vec::new();
    let Ok(body) = &rule.body else { return wrong };
    if let Some(services) = &found.services {
        let groups = body["spec"]["groups"].as_array().into_iter().flatten();
        let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
        let named = rules.filter_map(|rule| rule["labels"]["service"].as_str());
        let unknown: BTreeSet<&str> = named.filter(|name| !services.contains(*name)).collect();
        wrong.extend(
            unknown.iter().map(|name| format!("`{name}` is not in `alertingServices` of the settings")),
        );
    }
    let length = qontract_yaml::json::print(body).len();
    if length > MAX_OBJECT_BYTES {
        wrong.push(format!(
            "it has {length} bytes, and prometheus-operator accepts at most {MAX_OBJECT_BYTES}"
        ));
    }
    wrong
}

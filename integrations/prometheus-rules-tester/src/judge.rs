//! What is wrong with rules: what can be seen, and what promtool says. Equal texts are asked about once.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use qontract_client_promtool::{Promtool, PromtoolError, Verdict};
use qontract_runtime::{Cx, Fault, Place};
use serde_json::{Map, Value};

use crate::rules::{Found, Rule};

/// How many checks run concurrently unless a flag says otherwise.
const DEFAULT_CONCURRENCY: usize = 4;
/// The longest object that prometheus-operator hands to Prometheus.
const LONGEST: usize = 512 << 10;

/// A question to promtool: rules, and perhaps a test of them, each as text.
type Question = (String, Option<String>);
type Answers = BTreeMap<Question, Result<Verdict, PromtoolError>>;

/// Whose move it is when promtool gives no verdict.
pub fn fault(error: &PromtoolError) -> Fault {
    if error.is_transient() {
        return Fault::remote(error.to_string());
    }
    let fault = Fault::operator(error.to_string());
    match error {
        PromtoolError::Missing { .. } => fault.hint("set `path` of `[promtool]` in the configuration"),
        _ => fault,
    }
}

/// All that is wrong, in the order of the data; what is wrong in several places is told once, with all of them.
pub async fn faults(promtool: &Promtool, cx: &Cx<'_>, found: &Found) -> Vec<Fault> {
    let checks = found.rules.iter().filter_map(|rule| Some((spec(rule)?.to_string(), None)));
    let mut answers = ask(promtool, cx, checks.collect()).await;
    let tests = found.rules.iter().filter(|rule| is_fine(rule, found, &answers)).flat_map(|rule| {
        let rules = spec(rule).map(ToString::to_string);
        let bodies = rule.tests.iter().filter_map(|test| test.body.as_ref().ok());
        bodies.filter_map(move |test| Some((rules.clone()?, Some(Value::Object(test.clone()).to_string()))))
    });
    let tests: BTreeSet<Question> = tests.collect();
    answers.extend(ask(promtool, cx, tests).await);
    let mut told: Vec<Fault> = Vec::new();
    for rule in &found.rules {
        for fault in of_rule(rule, found, &answers) {
            match told.iter_mut().find(|before| is_same(before, &fault)) {
                Some(before) => {
                    let fresh: Vec<Place> =
                        fault.places.into_iter().filter(|place| !before.places.contains(place)).collect();
                    before.places.extend(fresh);
                }
                None => told.push(fault),
            }
        }
    }
    told
}

fn is_same(one: &Fault, other: &Fault) -> bool {
    (&one.text, &one.details, one.whose) == (&other.text, &other.details, other.whose)
}

fn spec(rule: &Rule) -> Option<&Value> {
    rule.body.as_ref().ok().map(|body| &body["spec"])
}

/// Whether rules are fine but for their tests.
fn is_fine(rule: &Rule, found: &Found, answers: &Answers) -> bool {
    let Some(spec) = spec(rule) else { return false };
    seen(rule, found).is_empty()
        && matches!(answers.get(&(spec.to_string(), None)), Some(Ok(Verdict::Passed)))
}

async fn ask(promtool: &Promtool, cx: &Cx<'_>, questions: BTreeSet<Question>) -> Answers {
    let asked = stream::iter(questions).map(async |(rules, test)| {
        let parse = |text: &str| serde_json::from_str(text).unwrap_or_default();
        let verdict = match &test {
            None => promtool.check_rules(cx.read(), &parse(&rules)).await,
            Some(text) => {
                let test: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
                promtool.test_rules(cx.read(), &parse(&rules), &test).await
            }
        };
        ((rules, test), verdict)
    });
    let concurrency = cx.options.concurrency(&crate::about().flags).unwrap_or(DEFAULT_CONCURRENCY);
    asked.buffer_unordered(concurrency).collect().await
}

/// What is wrong with a rule and its tests.
fn of_rule(rule: &Rule, found: &Found, answers: &Answers) -> Vec<Fault> {
    let below = |pointer: &str| rule.place.as_ref().map(|place| place.below(pointer));
    let wrong = |text: String| Fault::author(format!("`{}`: {text}", rule.path)).at(below("/path"));
    let Some(spec) = spec(rule) else {
        let why = rule.body.as_ref().err().cloned().unwrap_or_default();
        return vec![wrong(format!("it cannot be checked: {why}"))];
    };
    let rules = spec.to_string();
    let mut faults: Vec<Fault> = seen(rule, found).into_iter().map(wrong).collect();
    match answers.get(&(rules.clone(), None)) {
        Some(Ok(Verdict::Passed)) => {}
        Some(Ok(Verdict::Failed(words))) => {
            faults.push(wrong("the rules are wrong".to_owned()).details(words));
        }
        Some(Err(error)) => faults.push(unknown(error, &rule.path, below("/path"))),
        None => faults.push(Fault::us(format!("`{}` was not checked", rule.path))),
    }
    for (index, test) in rule.tests.iter().enumerate() {
        let place = below(&format!("/tests/{index}"));
        let wrong = |text: String| Fault::author(format!("`{}` of `{}`: {text}", test.path, rule.path));
        match &test.body {
            Err(why) => faults.push(wrong(format!("the test cannot be run: {why}")).at(place)),
            Ok(body) => match answers.get(&(rules.clone(), Some(Value::Object(body.clone()).to_string()))) {
                // Not asked, since the rules are wrong, which is told.
                None | Some(Ok(Verdict::Passed)) => {}
                Some(Ok(Verdict::Failed(words))) => {
                    faults.push(wrong("the test fails".to_owned()).details(words).at(place));
                }
                Some(Err(error)) => faults.push(unknown(error, &test.path, place)),
            },
        }
    }
    faults
}

fn unknown(error: &PromtoolError, path: &str, place: Option<Place>) -> Fault {
    fault(error).while_doing(&format!("`{path}` is not checked")).at(place)
}

/// What is wrong without promtool: services that nobody knows, and more than fits.
fn seen(rule: &Rule, found: &Found) -> Vec<String> {
    let mut wrong = Vec::new();
    let Ok(body) = &rule.body else { return wrong };
    if let Some(services) = &found.services {
        let groups = body["spec"]["groups"].as_array().into_iter().flatten();
        let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
        let named = rules.filter_map(|rule| rule["labels"]["service"].as_str());
        let unknown: BTreeSet<&str> = named.filter(|name| !services.contains(*name)).collect();
        wrong.extend(
            unknown.iter().map(|name| format!("`alertingServices` of the settings do not have `{name}`")),
        );
    }
    let length = qontract_yaml::json::print(body).len();
    if length > LONGEST {
        wrong.push(format!("it has {length} bytes, and prometheus-operator takes {LONGEST} at most"));
    }
    wrong
}

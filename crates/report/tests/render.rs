//! Renders a plan in each output format.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;

use qontract_access::ChangeKind;
use qontract_access::Mode;
use qontract_report::text::{PlanDetail, render_integration};
use qontract_report::{
    DataSide, DeclaredField, FieldAction, FindingReport, IntegrationReport, InvalidData, Location,
    PlanReport, ReleasedEntry, ReportStatus, ReportedChange, ReportedFault, ReportedField, ReportedWait,
    RevisionInfo, StepResult, Totals, UnaffectedIntegration, UnplannedEntry, markdown, text,
};
use serde_json::{Value, json};

fn field(action: FieldAction, path: &str, before: Option<Value>, after: Option<Value>) -> ReportedField {
    ReportedField { action, path: path.to_owned(), before, after }
}

fn change(action: ChangeKind, kind: &str, name: &str, fields: Vec<ReportedField>) -> ReportedChange {
    let scope = [("cluster", "c1"), ("namespace", "n1")];
    ReportedChange {
        action,
        shard: "cluster=c1, namespace=n1".to_owned(),
        scope: scope.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: Some("n1".to_owned()),
        summary: format!("{} {kind} `{name}` (cluster=c1, namespace=n1)", action.as_str()),
        fields,
        notes: Vec::new(),
        trailing_notes: Vec::new(),
        location: Some(Location::parse("data/n1.yml:7")),
        held: None,
        approvable: false,
        result: None,
    }
}

fn integration(
    name: &str,
    status: ReportStatus,
    changes: Vec<ReportedChange>,
    errors: Vec<ReportedFault>,
) -> IntegrationReport {
    IntegrationReport {
        integration: name.to_owned(),
        run: Some("20260101T000000Z-x-1".to_owned()),
        plan_digest: Some("9f86d081".repeat(8)),
        status,
        totals: Totals::of(&changes, &errors),
        causes: vec![Location::parse("data/n1.yml:9")],
        changes,
        unplanned: Vec::new(),
        released: Vec::new(),
        waits: Vec::new(),
        rollouts: Vec::new(),
        degraded: Vec::new(),
        errors,
        notes: Vec::new(),
        disabled: Vec::new(),
        approval: None,
    }
}

/// A report that uses every feature of the model.
fn report() -> PlanReport {
    let base = RevisionInfo { sha256: "0".repeat(64), commit: Some("1".repeat(40)), modified: false };
    let head = RevisionInfo { sha256: "f".repeat(64), commit: None, modified: true };
    let mut report = PlanReport::new(Mode::DryRun, Some(base), head);
    let fields = vec![
        field(FieldAction::Removed, "spec.hard.limits.memory", Some(json!("8Gi")), None),
        field(FieldAction::Changed, "spec.hard.pods", Some(json!(1)), Some(json!(2))),
        field(FieldAction::Added, "data.password", None, None),
    ];
    let mut held = change(ChangeKind::Remove, "Secret", "db", Vec::new());
    held.held = Some("it would empty the scope".to_owned());
    held.approvable = true;
    let changes = vec![
        change(ChangeKind::Change, "ResourceQuota", "compute", fields),
        change(
            ChangeKind::Add,
            "ConfigMap",
            "new",
            vec![
                field(FieldAction::Added, "data.a", None, Some(json!("1"))),
                field(FieldAction::Added, "data.b", None, Some(json!("2"))),
            ],
        ),
        held,
    ];
    let mut first = integration("openshift-resources", ReportStatus::Held, changes, Vec::new());
    first.approval = Some("$schema: /x\nname: approve\n".to_owned());
    first.notes = vec!["`cluster=c3` is skipped: disabled".to_owned()];
    first.waits = vec![ReportedWait {
        shard: "cluster=c1, namespace=n1".to_owned(),
        message: "a rollout".to_owned(),
        locations: Vec::new(),
    }];
    report.add(first);
    let error = ReportedFault {
        shards: vec!["cluster=c2".to_owned()],
        message: "cluster `c2` cannot be reached".to_owned(),
        details: vec!["no connection".to_owned()],
        hint: Some("check `server`".to_owned()),
        locations: vec![Location::parse("data/c2.yml")],
    };
    report.add(integration("openshift-namespaces", ReportStatus::Failed, Vec::new(), vec![error]));
    report.add_unaffected(UnaffectedIntegration {
        integration: "query-validator".to_owned(),
        reason: "desired state".to_owned(),
    });
    report.notes.push("something to know".to_owned());
    report
}

#[test]
fn a_plan_as_text() {
    let expect = r#"openshift-namespaces
  because of data/n1.yml:9
  error: cluster `c2` cannot be reached
      no connection
      --> data/c2.yml
      hint: check `server`

openshift-resources
  because of data/n1.yml:9
  ~ change ResourceQuota `compute` (cluster=c1, namespace=n1)
      - spec.hard.limits.memory: "8Gi"
      ~ spec.hard.pods: 1 → 2
      + data.password
      --> data/n1.yml:7
  + add ConfigMap `new` (cluster=c1, namespace=n1)
      … 2 fields (--full shows them)
      --> data/n1.yml:7
  held: - remove Secret `db` (cluster=c1, namespace=n1)
      --> data/n1.yml:7
      it would empty the scope
  waits: a rollout
  note: `cluster=c3` is skipped: disabled

note: something to know
1 to add, 1 to change, 0 to remove, 1 field removed, 1 held; 1 error, in 2 integrations; 1 integration not affected

to approve the held changes, add this to the data:

    $schema: /x
    name: approve
"#;
    assert_eq!(text::render(&report(), PlanDetail::default()).plain(), expect);
}

#[test]
fn a_plan_without_changes_is_reported_as_such() {
    let mut report = PlanReport::new(Mode::DryRun, None, RevisionInfo::default());
    assert_eq!(text::render(&report, PlanDetail::default()).plain(), "no changes\n");
    report.add(integration("a", ReportStatus::Unchanged, Vec::new(), Vec::new()));
    report.add_unaffected(UnaffectedIntegration { integration: "b".to_owned(), reason: String::new() });
    assert_eq!(
        text::render(&report, PlanDetail::default()).plain(),
        "no changes; 1 integration not affected\n"
    );
    assert!(render_integration(&report.integrations[0], PlanDetail::default()).is_empty());
    let markdown = markdown::render(&report, PlanDetail::default(), markdown::MAX_BYTES);
    assert_eq!(markdown, "### Plan: no changes\n\n1 integration not affected\n");
}

#[test]
fn a_real_run_marks_the_result_of_each_change() {
    let results = [None, Some(StepResult::Done), Some(StepResult::Failed), Some(StepResult::NotTried)];
    let changes = results.map(|result| ReportedChange {
        result,
        location: None,
        ..change(ChangeKind::Add, "Thing", "x", Vec::new())
    });
    let mut one = integration("a", ReportStatus::Failed, changes.to_vec(), Vec::new());
    one.totals.applied = Some(1);
    let line = "+ add Thing `x` (cluster=c1, namespace=n1)\n";
    let expect = format!("{line}✓ {line}✗ {line}· {line}4 to add, 0 to change, 0 to remove; 1 step done\n");
    assert_eq!(render_integration(&one, PlanDetail::default()).plain(), expect);
}

#[test]
fn the_error_of_a_step_is_shown_below_its_change() {
    let failed = ReportedChange {
        result: Some(StepResult::Failed),
        ..change(ChangeKind::Change, "Thing", "x", Vec::new())
    };
    let line = format!("~ {}", failed.summary);
    let error = |message: &str, file: &str| ReportedFault {
        shards: vec![failed.shard.clone()],
        message: message.to_owned(),
        details: vec!["because".to_owned()],
        hint: Some("mend it".to_owned()),
        locations: vec![Location::parse(file)],
    };
    let at = failed.location.as_ref().unwrap().to_string();
    let errors = vec![
        error(&format!("{line}: the cluster refused it"), &at),
        error(&format!("{line}-two: no"), "data/b.yml:2"),
    ];
    let one = integration("a", ReportStatus::Failed, vec![failed.clone()], errors);
    let expect = format!(
        "✗ {line}\n    --> {at}\n    error: the cluster refused it\n        because\n        hint: mend it\nerror: {line}-two: no\n    \
         because\n    --> data/b.yml:2\n    hint: mend it\n0 to add, 1 to change, 0 to remove; 2 errors\n"
    );
    assert_eq!(render_integration(&one, PlanDetail::default()).plain(), expect);
}

#[test]
fn changes_waits_and_errors_are_grouped_by_shard() {
    let at = |shard: &str| ReportedChange {
        shard: shard.to_owned(),
        summary: format!("in {shard}"),
        location: None,
        ..change(ChangeKind::Add, "Thing", "x", Vec::new())
    };
    let error = |shards: &[&str]| ReportedFault {
        shards: shards.iter().map(|shard| (*shard).to_owned()).collect(),
        message: format!("wrong in {shards:?}"),
        details: Vec::new(),
        hint: None,
        locations: Vec::new(),
    };
    let errors = vec![error(&[]), error(&["a", "b"])];
    let mut one = integration("x", ReportStatus::Failed, vec![at("b"), at("a")], errors);
    let wait = |shard: &str| (shard.to_owned(), format!("for {shard}"));
    one.waits = ["b", "c"]
        .map(wait)
        .map(|(shard, message)| ReportedWait { shard, message, locations: Vec::new() })
        .into();
    let text = render_integration(&one, PlanDetail::default()).plain();
    let lines: Vec<&str> = text.lines().collect();
    let expect = [
        "+ in a",
        "error: wrong in [\"a\", \"b\"]",
        "+ in b",
        "waits: for b",
        "waits: for c",
        "error: wrong in []",
        "2 to add, 0 to change, 0 to remove; 2 errors",
    ];
    assert_eq!(lines, expect);
}

#[test]
fn long_diffs_are_folded_with_counts() {
    let fields = |count: usize| -> Vec<ReportedField> {
        (0..count)
            .map(|n| field(FieldAction::Changed, &format!("f{n}"), Some(json!(1)), Some(json!(2))))
            .collect()
    };
    let render = |action, count, detail| {
        let change = change(action, "Thing", "x", fields(count));
        render_integration(&integration("a", ReportStatus::Changes, vec![change], Vec::new()), detail).plain()
    };
    let detail = PlanDetail { max_fields: 3, ..PlanDetail::default() };
    assert!(!render(ChangeKind::Change, 3, detail).contains('…'));
    let text = render(ChangeKind::Change, 4, detail);
    assert!(text.contains("    ~ f2: 1 → 2\n    … 1 more field (--full shows them)\n"), "{text}");
    assert!(render(ChangeKind::Remove, 5, detail).contains("… 2 more fields"));
    assert!(render(ChangeKind::Add, 2, detail).contains("    … 2 fields (--full shows them)\n"));
    let full = render(ChangeKind::Add, 100, PlanDetail::FULL);
    assert!(full.contains("~ f99: 1 → 2") && !full.contains('…'));
    assert_eq!(text::shortened("äbc", 3), "äbc");
    assert_eq!(text::shortened("äbcd", 3), "äbc… (1 more character)");
}

#[test]
fn a_plan_as_markdown() {
    let expect = r#"### Plan: 1 to add, 1 to change, 1 field removed, 1 held, 1 error

| integration | add | change | replace | remove | fields removed | held | not done | not planned | no longer managed | errors |
|---|---|---|---|---|---|---|---|---|---|---|
| `openshift-namespaces` | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |
| `openshift-resources` | 1 | 1 | 0 | 0 | 1 | 1 | 0 | 0 | 0 | 0 |

**error** in `openshift-namespaces`: ``cluster `c2` cannot be reached``, `data/c2.yml`
- `no connection`
- hint: `` check `server` ``

**held** in `openshift-resources`:

- **remove** `Secret` `db` in `cluster=c1, namespace=n1`, `data/n1.yml:7`
  - held: `it would empty the scope`

To approve the held changes, add this to the data:

```yaml
$schema: /x
name: approve
```

<details open><summary>openshift-resources: 1 to add, 1 to change, 1 field removed</summary>

because of `data/n1.yml:9`  

- **change** `ResourceQuota` `compute` in `cluster=c1, namespace=n1`, `data/n1.yml:7`
  - removed `spec.hard.limits.memory`: `"8Gi"`
  - changed `spec.hard.pods`: `1` → `2`
  - added `data.password`
- **add** `ConfigMap` `new` in `cluster=c1, namespace=n1`, `data/n1.yml:7`
  - … 2 fields
- waits: `a rollout`
- note: `` `cluster=c3` is skipped: disabled ``

</details>

_`something to know`_

1 integration not affected
"#;
    assert_eq!(markdown::render(&report(), PlanDetail::default(), markdown::MAX_BYTES), expect);
}

#[test]
fn a_comment_stays_within_its_size_and_counts_omitted_entries() {
    let fields = vec![field(FieldAction::Changed, "a", Some(json!("x".repeat(100))), Some(json!(2)))];
    let changes: Vec<ReportedChange> =
        (0..500).map(|n| change(ChangeKind::Change, "Thing", &format!("t{n}"), fields.clone())).collect();
    let mut report = PlanReport::new(Mode::DryRun, None, RevisionInfo::default());
    for name in ["a", "b"] {
        report.add(integration(name, ReportStatus::Changes, changes.clone(), Vec::new()));
    }
    for max in [4_000, 20_000, 60_000, 150_000] {
        let text = markdown::render(&report, PlanDetail::default(), max);
        assert!(text.len() <= max, "{} > {max}", text.len());
        let shown = text.matches("- **change**").count();
        assert!(text.contains(&format!("**and {} more**", 1_000 - shown)), "{shown} shown of {max} bytes");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }
    let text = markdown::render(&report, PlanDetail::default(), 1_000_000);
    assert_eq!(text.matches("- **change**").count(), 1_000);
    assert!(!text.contains("omitted"));
}

#[test]
fn many_integrations_leave_space_for_their_changes() {
    let mut report = PlanReport::new(Mode::DryRun, None, RevisionInfo::default());
    for number in 0..1_000 {
        let one = vec![change(ChangeKind::Add, "Thing", "x", Vec::new())];
        report.add(integration(&format!("i{number:04}"), ReportStatus::Changes, one, Vec::new()));
    }
    let text = markdown::render(&report, PlanDetail::default(), 10_000);
    assert!(text.len() <= 10_000);
    let rows = text.lines().filter(|line| line.starts_with("| `i")).count();
    assert!(rows > 10 && text.contains(&format!("\nand {} more integrations\n", 1_000 - rows)), "{text}");
    assert!(text.contains("- **add** `Thing`"), "{text}");
}

/// A string with markup, a mention, a link, a line break, a table cell and terminal control characters.
const HOSTILE: &str = "a|b`c``d\n/close\n- **x** <script>alert(1)</script> @all #1 [x](http://e) \u{1b}[31m\u{202e}</details>&amp;";

fn hostile_report() -> PlanReport {
    let text = || HOSTILE.to_owned();
    let head = RevisionInfo { sha256: text(), commit: Some(text()), modified: true };
    let mut report = PlanReport::new(Mode::DryRun, None, head);
    let mut one = change(
        ChangeKind::Change,
        HOSTILE,
        HOSTILE,
        vec![field(FieldAction::Changed, HOSTILE, Some(json!(HOSTILE)), Some(json!({HOSTILE: HOSTILE})))],
    );
    one.scope = BTreeMap::from([(text(), text())]);
    one.notes = vec![text()];
    one.trailing_notes = vec![text()];
    one.location = Some(Location::parse(HOSTILE));
    let held = ReportedChange {
        held: Some(text()),
        approvable: true,
        kind: String::new(),
        summary: text(),
        ..one.clone()
    };
    let error = ReportedFault {
        shards: vec![text()],
        message: text(),
        details: vec![text()],
        hint: Some(text()),
        locations: vec![Location::parse(HOSTILE)],
    };
    let mut integration = integration(HOSTILE, ReportStatus::Failed, vec![one, held], vec![error]);
    integration.causes = vec![Location::parse(HOSTILE)];
    integration.notes = vec![text()];
    integration.waits =
        vec![ReportedWait { shard: text(), message: text(), locations: vec![Location::parse(HOSTILE)] }];
    let at = || Location::parse(HOSTILE);
    let declared = DeclaredField {
        field: field(FieldAction::Changed, HOSTILE, Some(json!(HOSTILE)), Some(json!(HOSTILE))),
        location: Some(at()),
    };
    integration.unplanned = vec![UnplannedEntry {
        shard: text(),
        message: text(),
        locations: vec![at()],
        declared: vec![declared],
    }];
    integration.released = vec![ReleasedEntry {
        shard: Some(text()),
        message: text(),
        objects: Some(2),
        removed_with_target: false,
        locations: vec![at()],
    }];
    integration.approval = Some(format!("```\n{HOSTILE}"));
    report.add(integration);
    report.notes.push(text());
    report
}

/// A report of invalid data whose findings contain `text` in every field that comes from the data.
fn invalid_report(text: &str, count: usize) -> PlanReport {
    let finding = FindingReport {
        code: "Q2001".to_owned(),
        severity: "error".to_owned(),
        message: text.to_owned(),
        file: Some(text.to_owned()),
        line: Some(3),
        column: Some(7),
        hint: Some(text.to_owned()),
    };
    let (side, errors, warnings, omitted) = (DataSide::Head, count + 5, 1, 6);
    let findings = vec![finding; count];
    PlanReport::new(Mode::DryRun, None, RevisionInfo::default()).with_invalid(InvalidData {
        side,
        errors,
        warnings,
        findings,
        omitted,
    })
}

#[test]
fn a_report_of_invalid_data_lists_the_findings_and_counts_the_rest() {
    let report = invalid_report("x", 1);
    assert_eq!(report.status, ReportStatus::Invalid);
    let json: Value = serde_json::from_slice(&report.to_json()).unwrap();
    assert_eq!((&json["status"], &json["totals"]["errors"]), (&json!("invalid"), &json!(6)));
    let expect = "### Plan: the data of head is invalid: 6 errors, 1 warning; nothing was planned\n\n\
        - **error** `Q2001`: `x:3:7`: `x`\n  - hint: `x`\n\n\
        **and 6 more**, omitted to keep this comment short\n";
    assert_eq!(markdown::render(&report, PlanDetail::default(), markdown::MAX_BYTES), expect);
    let plain = text::render(&report, PlanDetail::default()).plain();
    assert_eq!(plain, "the data of head is invalid: 6 errors, 1 warning; nothing was planned\n");
    // Long strings do not exceed the size limit of the comment.
    let long = markdown::render(&invalid_report(&"`x".repeat(5_000), 50), PlanDetail::default(), 10_000);
    assert!(long.len() <= 10_000 && long.contains(" more**, omitted"), "{long}");
}

#[test]
fn findings_are_never_markup() {
    let markdown = markdown::render(&invalid_report(HOSTILE, 2), PlanDetail::FULL, markdown::MAX_BYTES);
    assert!(!markdown.contains(['\u{1b}', '\u{202e}']), "{markdown}");
    let outside = outside_code(&markdown);
    for markup in ["script", "@all", "[x]", "http:", "/close", "**x**", "#1", "<", "|"] {
        assert!(!outside.contains(markup), "{markup}: {outside}");
    }
}

/// Markdown without its code blocks and code spans.
fn outside_code(markdown: &str) -> String {
    let (mut out, mut rest, mut fence) = (String::new(), markdown, None::<String>);
    // Blocks first, line by line.
    let mut kept = String::new();
    for line in rest.split_inclusive('\n') {
        let ticks: String = line.chars().take_while(|one| *one == '`').collect();
        match &fence {
            Some(open) if line.trim_end() == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 && !line.trim_end()[ticks.len()..].contains('`') => fence = Some(ticks),
            None => kept.push_str(line),
        }
    }
    assert_eq!(fence, None, "every block is closed");
    rest = &kept;
    while let Some(start) = rest.find('`') {
        out.push_str(&rest[..start]);
        let after = rest[start..].trim_start_matches('`');
        let ticks = rest[start..].len() - after.len();
        let mut end = None;
        let mut from = 0;
        while let Some(at) = after[from..].find('`') {
            let run = after[from + at..].chars().take_while(|one| *one == '`').count();
            if run == ticks {
                end = Some(from + at + run);
                break;
            }
            from += at + run;
        }
        let end = end.unwrap_or_else(|| panic!("a code span is not closed: {after}"));
        assert!(!after[..end].contains('\n'), "a code span is on one line: {}", &after[..end]);
        rest = &after[end..];
    }
    out + rest
}

#[test]
fn strings_from_the_data_are_never_markup() {
    let markdown = markdown::render(&hostile_report(), PlanDetail::FULL, markdown::MAX_BYTES);
    assert!(!markdown.contains('\u{1b}') && !markdown.contains('\u{202e}'), "{markdown}");
    let outside = outside_code(&markdown);
    for markup in ["script", "@all", "[x]", "http:", "/close", "**x**", "#1"] {
        let of_html = outside.replace("&#", "").replace("script&gt;", "").replace("&lt;/script", "");
        assert!(!of_html.replace("&lt;script", "").contains(markup), "{markup}: {outside}");
    }
    assert_eq!(outside.matches("<details>").count(), 1, "{outside}");
    assert_eq!(outside.matches("</details>").count(), 1, "{outside}");
    assert_eq!(outside.matches('<').count(), 4, "details and summary, opened and closed: {outside}");
    let row = markdown.lines().find(|line| line.starts_with("| `")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 12, "{row}");
}

#[test]
fn strings_from_the_data_contain_no_terminal_control_characters() {
    let styled = text::render(&hostile_report(), PlanDetail::FULL);
    assert!(!styled.as_str().contains("\u{1b}[31m\u{202e}") && !styled.plain().contains('\u{1b}'));
    assert!(!styled.plain().contains('\u{202e}'));
    assert!(styled.plain().lines().all(|line| !line.starts_with("/close")), "{}", styled.plain());
}

#[test]
fn json_follows_its_published_schema() {
    let schema = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/plan.schema.json"));
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut real = report();
    real.mode = Mode::Real;
    real.totals.applied = Some(3);
    real.integrations[1].changes[0].result = Some(StepResult::NotTried);
    let empty = PlanReport::new(Mode::DryRun, None, RevisionInfo::default());
    for report in [report(), real, empty, hostile_report(), invalid_report(HOSTILE, 2)] {
        let json: Value = serde_json::from_slice(&report.to_json()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(serde_json::from_value::<PlanReport>(json).unwrap(), report);
    }
    // The schema rejects invalid reports.
    let mut wrong: Value = serde_json::from_slice(&report().to_json()).unwrap();
    wrong["schema_version"] = json!(2);
    assert!(!validator.is_valid(&wrong));
    wrong["schema_version"] = json!(1);
    wrong["integrations"][1]["changes"][0]["action"] = json!("destroy");
    assert!(!validator.is_valid(&wrong));
}

//! Counts, order and status of reports.

use super::*;

fn change(action: ChangeAction, held: bool) -> ReportedChange {
    ReportedChange {
        action,
        shard: "all".to_owned(),
        scope: BTreeMap::new(),
        kind: "Thing".to_owned(),
        name: "x".to_owned(),
        namespace: None,
        summary: "x".to_owned(),
        fields: Vec::new(),
        notes: Vec::new(),
        location: None,
        approvable: false,
        held: held.then(|| "why".to_owned()),
        result: None,
    }
}

fn fault() -> ReportedFault {
    let (shards, details, locations) = (Vec::new(), Vec::new(), Vec::new());
    ReportedFault { shards, message: "x".to_owned(), details, hint: None, locations }
}

fn integration(name: &str, status: ReportStatus, totals: Totals) -> IntegrationReport {
    IntegrationReport {
        integration: name.to_owned(),
        run: None,
        status,
        totals,
        causes: Vec::new(),
        changes: Vec::new(),
        waits: Vec::new(),
        errors: Vec::new(),
        notes: Vec::new(),
        disabled: Vec::new(),
        approval: None,
    }
}

#[test]
fn changes_are_counted_by_kind_and_held_ones_apart() {
    let mut changes = Vec::new();
    for (index, action) in ChangeAction::ALL.into_iter().enumerate() {
        changes.extend((0..=index).map(|_| change(action, false)));
        changes.push(change(action, true));
    }
    let totals = Totals::of(&changes, &[fault(), fault()]);
    let expect = Totals {
        add: 1,
        change: 2,
        replace: 3,
        remove: 4,
        fields_removed: 0,
        held: 4,
        errors: 2,
        applied: None,
    };
    assert_eq!((totals, totals.changes()), (expect, 10));
}

#[test]
fn a_report_sums_its_integrations_in_order_and_has_the_worst_status() {
    let mut report = PlanReport::new("dry run", None, RevisionInfo::default());
    assert_eq!(report.status(), ReportStatus::Unchanged);
    let one = Totals {
        add: 1,
        change: 2,
        replace: 3,
        remove: 4,
        fields_removed: 1,
        held: 5,
        errors: 6,
        applied: None,
    };
    report.add(integration("b", ReportStatus::Changes, one));
    assert_eq!((report.totals, report.status()), (one, ReportStatus::Changes));
    report.add(integration("c", ReportStatus::Failed, Totals { applied: Some(7), ..one }));
    report.add(integration("a", ReportStatus::Held, one));
    let sum = Totals {
        add: 3,
        change: 6,
        replace: 9,
        remove: 12,
        fields_removed: 3,
        held: 15,
        errors: 18,
        applied: Some(7),
    };
    assert_eq!((report.totals, report.status()), (sum, ReportStatus::Failed));
    let names: Vec<&str> = report.integrations.iter().map(|one| &*one.integration).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for name in ["y", "z", "x"] {
        report.add_unaffected(UnaffectedIntegration { integration: name.to_owned(), reason: String::new() });
    }
    let names: Vec<&str> = report.unaffected.iter().map(|one| &*one.integration).collect();
    assert_eq!(names, ["x", "y", "z"]);
}

#[test]
fn a_location_is_a_file_and_perhaps_a_line() {
    for text in ["data/a.yml:7", "data/a.yml", "data/a:b.yml", "data/a:b.yml:12"] {
        assert_eq!(Location::parse(text).to_string(), text);
    }
    assert_eq!(Location::parse("a:b.yml").line, None);
    assert_eq!(Location::parse("a:b.yml:12").line, Some(12));
}

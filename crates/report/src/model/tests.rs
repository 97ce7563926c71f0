//! Tests the counts, the order and the status of reports.

use super::*;

fn change(action: ChangeKind, held: bool) -> ReportedChange {
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
        trailing_notes: Vec::new(),
        location: None,
        approvable: held,
        held: held.then(|| "why".to_owned()),
        result: None,
    }
}

fn fault() -> ReportedFault {
    let (shards, details, locations) = (Vec::new(), Vec::new(), Vec::new());
    ReportedFault { shards, message: "x".to_owned(), details, hint: None, locations }
}

#[test]
fn disabled_shards_are_counted_once_for_each_reason() {
    let mut report = PlanReport::new(Mode::DryRun, None, RevisionInfo::default());
    let disabled = |reason: &str, shards: &[&str]| DisabledShards {
        reason: reason.to_owned(),
        shards: shards.iter().map(|&shard| shard.to_owned()).collect(),
    };
    for (name, all) in [
        ("a", vec![disabled("off", &["s1", "s2"]), disabled("late", &["s3"])]),
        ("b", vec![disabled("off", &["s1"])]),
        ("c", Vec::new()),
    ] {
        let one = integration(name, ReportStatus::Unchanged, Totals::default());
        report.add(IntegrationReport { disabled: all, ..one });
    }
    assert_eq!(
        report.disabled(),
        ["1 shard of `a` skipped: late", "3 shards of 2 integrations skipped: off"]
    );
}

#[test]
fn unchecked_integrations_are_in_the_order_of_their_names() {
    let mut report = PlanReport::new(Mode::DryRun, None, RevisionInfo::default());
    for name in ["b", "a"] {
        let (integration, reason) = (name.to_owned(), "x".to_owned());
        report.add_unchecked(UncheckedIntegration { integration, reason });
    }
    let names: Vec<&str> = report.unchecked.iter().map(|one| one.integration.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(report.status, ReportStatus::Unchanged);
}

#[test]
fn all_files_of_an_integration_are_renamed() {
    let at = |text: &str| Location::parse(text);
    let mut one = integration("a", ReportStatus::Unchanged, Totals::default());
    one.causes = vec![Location { renamed_from: Some("old".to_owned()), ..at("new:3") }];
    one.waits =
        vec![ReportedWait { shard: "s".to_owned(), message: "m".to_owned(), locations: vec![at("w")] }];
    one.errors = vec![fault()];
    one.errors[0].locations = vec![at("e:1")];
    one.rename_files(&|file| format!("repo/{file}"));
    assert_eq!(one.causes[0].to_string(), "repo/new:3 (renamed from repo/old)");
    assert_eq!(one.waits[0].locations[0].to_string(), "repo/w");
    assert_eq!(one.errors[0].locations[0].to_string(), "repo/e:1");
}

fn integration(name: &str, status: ReportStatus, totals: Totals) -> IntegrationReport {
    IntegrationReport {
        integration: name.to_owned(),
        run: None,
        plan_digest: None,
        status,
        totals,
        causes: Vec::new(),
        changes: Vec::new(),
        unplanned: Vec::new(),
        released: Vec::new(),
        waits: Vec::new(),
        rollouts: Vec::new(),
        degraded: Vec::new(),
        errors: Vec::new(),
        notes: Vec::new(),
        disabled: Vec::new(),
        approval: None,
    }
}

#[test]
fn changes_are_counted_by_kind_and_held_ones_apart() {
    let mut changes = Vec::new();
    for (index, action) in ChangeKind::ALL.into_iter().enumerate() {
        changes.extend((0..=index).map(|_| change(action, false)));
        changes.push(change(action, true));
    }
    changes.push(ReportedChange { approvable: false, ..change(ChangeKind::Remove, true) });
    let totals = Totals::of(&changes, &[fault(), fault()]);
    let expect = Totals {
        add: 1,
        change: 2,
        replace: 3,
        remove: 4,
        fields_removed: 0,
        held: 4,
        not_done: 1,
        not_planned: 0,
        released: 0,
        errors: 2,
        applied: None,
    };
    assert_eq!((totals, totals.changes()), (expect, 10));
}

#[test]
fn a_report_sums_its_integrations_in_order_and_has_the_worst_status() {
    let mut report = PlanReport::new(Mode::DryRun, None, RevisionInfo::default());
    assert_eq!(report.status, ReportStatus::Unchanged);
    let one = Totals {
        add: 1,
        change: 2,
        replace: 3,
        remove: 4,
        fields_removed: 1,
        held: 5,
        not_done: 2,
        not_planned: 3,
        released: 4,
        errors: 6,
        applied: None,
    };
    report.add(integration("b", ReportStatus::Changes, one));
    assert_eq!((report.totals, report.status), (one, ReportStatus::Changes));
    report.add(integration("c", ReportStatus::Failed, Totals { applied: Some(7), ..one }));
    report.add(integration("a", ReportStatus::Held, one));
    let sum = Totals {
        add: 3,
        change: 6,
        replace: 9,
        remove: 12,
        fields_removed: 3,
        held: 15,
        not_done: 6,
        not_planned: 9,
        released: 12,
        errors: 18,
        applied: Some(7),
    };
    assert_eq!((report.totals, report.status), (sum, ReportStatus::Failed));
    let names: Vec<&str> = report.integrations.iter().map(|one| &*one.integration).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for name in ["y", "z", "x"] {
        report.add_unaffected(UnaffectedIntegration { integration: name.to_owned(), reason: String::new() });
    }
    let names: Vec<&str> = report.unaffected.iter().map(|one| &*one.integration).collect();
    assert_eq!(names, ["x", "y", "z"]);
}

#[test]
fn a_location_is_a_file_with_an_optional_line() {
    for text in ["data/a.yml:7", "data/a.yml", "data/a:b.yml", "data/a:b.yml:12"] {
        assert_eq!(Location::parse(text).to_string(), text);
    }
    assert_eq!(Location::parse("a:b.yml").line, None);
    assert_eq!(Location::parse("a:b.yml:12").line, Some(12));
}

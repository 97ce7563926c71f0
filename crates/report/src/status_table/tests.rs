//! Tests the table at several terminal sizes.

use super::*;

fn one(name: &str, state: LoopState) -> LoopView {
    LoopView {
        name: name.to_owned(),
        state,
        shards: Some(13),
        changes: 0,
        held: 0,
        took: Some(Duration::from_millis(38)),
        now: LoopActivity::Sleeping(Duration::from_secs(590)),
        attention_shards: Vec::new(),
    }
}

fn shard(namespace: &str, failed: bool, held: usize) -> ShardView {
    ShardView { key: format!("cluster=cliffs-stage, namespace={namespace}"), failed, held }
}

/// A view of 13 integrations, of which one failed, one is held and one has not run yet.
fn view() -> StatusView {
    let names = [
        "openshift-clusterrolebindings",
        "openshift-namespace-labels",
        "openshift-namespaces",
        "openshift-network-policies",
        "openshift-prometheus-rules",
        "openshift-resourcequotas",
        "openshift-rolebindings",
        "openshift-routes",
        "openshift-vault-secrets",
        "query-validator",
    ];
    let mut loops: Vec<LoopView> = names.iter().map(|name| one(name, LoopState::Ok)).collect();
    loops[2].changes = 137;
    loops.push(LoopView {
        held: 1,
        attention_shards: vec![shard("catalog-stage", false, 1)],
        ..one("openshift-limitranges", LoopState::Held)
    });
    let troubled = ["billing-stage", "catalog-stage"].map(|name| shard(name, true, 0)).to_vec();
    loops.push(LoopView {
        took: Some(Duration::from_secs(648)),
        now: LoopActivity::Running(Some("GET https://api.cliffs-stage/".to_owned())),
        attention_shards: troubled,
        ..one("openshift-resources", LoopState::Failed)
    });
    loops.push(LoopView {
        shards: None,
        took: None,
        now: LoopActivity::Running(None),
        ..one("resource-template-tester", LoopState::Starting)
    });
    let title = StatusTitle {
        data: "examples/app-interface".to_owned(),
        commit: Some("d8dfa52aaaaaaaaa".to_owned()),
        mode: Mode::Real,
        bundle: "ecc2860aaa1c".to_owned(),
        targets: "sandbox ./sandbox".to_owned(),
        invalid: None,
        unchecked: 0,
    };
    StatusView { title, loops }
}

fn check(width: usize, height: usize, expect: &str) {
    let text: Vec<String> = lines(&view(), width, height).iter().map(StatusLine::text).collect();
    assert_eq!(text.join("\n"), expect.trim_matches('\n'), "{width}×{height}");
}

#[test]
fn at_80_by_24_there_is_a_row_for_each_integration_and_failures_are_first() {
    check(
        80,
        24,
        "
qontract up · examples/app-interface @ d8dfa52 · real run · sandbox ./sandbox
STATE     INTEGRATION                    SHARDS    CHANGES    TOOK  NEXT
failed    openshift-resources                13          0  10m48s  running: GE…
    cluster=cliffs-stage, namespace=billing-stage: failed
    cluster=cliffs-stage, namespace=catalog-stage: failed
held      openshift-limitranges              13  0, 1 held    38ms  in 9m
    cluster=cliffs-stage, namespace=catalog-stage: 1 held
starting  resource-template-tester                                  running
ok        openshift-clusterrolebindings      13          0    38ms  in 9m
ok        openshift-namespace-labels         13          0    38ms  in 9m
ok        openshift-namespaces               13        137    38ms  in 9m
ok        openshift-network-policies         13          0    38ms  in 9m
ok        openshift-prometheus-rules         13          0    38ms  in 9m
ok        openshift-resourcequotas           13          0    38ms  in 9m
ok        openshift-rolebindings             13          0    38ms  in 9m
ok        openshift-routes                   13          0    38ms  in 9m
ok        openshift-vault-secrets            13          0    38ms  in 9m
ok        query-validator                    13          0    38ms  in 9m
13 integrations · 10 ok · 1 starting · 1 held · 1 failed · 137 changes
",
    );
}

#[test]
fn at_120_by_40_the_same_rows_have_more_columns() {
    check(
        120,
        40,
        "
qontract up · examples/app-interface @ d8dfa52 · real run · sandbox ./sandbox
STATE     INTEGRATION                    SHARDS    CHANGES    TOOK  NEXT
failed    openshift-resources                13          0  10m48s  running: GET https://api.cliffs-stage/
    cluster=cliffs-stage, namespace=billing-stage: failed
    cluster=cliffs-stage, namespace=catalog-stage: failed
held      openshift-limitranges              13  0, 1 held    38ms  in 9m
    cluster=cliffs-stage, namespace=catalog-stage: 1 held
starting  resource-template-tester                                  running
ok        openshift-clusterrolebindings      13          0    38ms  in 9m
ok        openshift-namespace-labels         13          0    38ms  in 9m
ok        openshift-namespaces               13        137    38ms  in 9m
ok        openshift-network-policies         13          0    38ms  in 9m
ok        openshift-prometheus-rules         13          0    38ms  in 9m
ok        openshift-resourcequotas           13          0    38ms  in 9m
ok        openshift-rolebindings             13          0    38ms  in 9m
ok        openshift-routes                   13          0    38ms  in 9m
ok        openshift-vault-secrets            13          0    38ms  in 9m
ok        query-validator                    13          0    38ms  in 9m
13 integrations · 10 ok · 1 starting · 1 held · 1 failed · 137 changes · bundle ecc2860 · Ctrl-C to stop
",
    );
}

#[test]
fn at_40_by_10_only_rows_that_need_attention_are_left() {
    check(
        40,
        10,
        "
examples/app-interface @ d8dfa52
STATE     INTEGRATION
failed    openshift-resources
held      openshift-limitranges
starting  resource-template-tester
ok        openshift-clusterrolebindings
… and 9 more (9 ok)
10 ok · 1 starting · 1 held · 1 failed
",
    );
}

#[test]
fn invalid_data_has_a_line_below_the_title() {
    let mut view = view();
    view.title.invalid = Some("data invalid since 14:02 UTC (3 errors)".to_owned());
    let text = |width: usize, height: usize| -> Vec<String> {
        lines(&view, width, height).iter().map(StatusLine::text).collect()
    };
    let at_80 = text(80, 24);
    assert_eq!(at_80[1], "data invalid since 14:02 UTC (3 errors) · reconciling bundle ecc2860");
    assert!(at_80[0].starts_with("qontract up") && at_80[2].starts_with("STATE"), "{at_80:?}");
    assert_eq!(text(40, 10)[1], "data invalid since 14:02 UTC (3 errors)");
    // In a low terminal, the line is above the totals or replaces them.
    assert_eq!(text(80, MARGIN + 4).len(), 2);
    assert_eq!(text(80, MARGIN + 5).len(), 5);
    assert!(text(80, MARGIN + 1)[0].starts_with("data invalid") && text(80, MARGIN + 1).len() == 1);
    let line = lines(&view, 80, 24)[1].styled();
    assert!(line.starts_with("\x1b[1;31mdata invalid"), "{line}");
}

#[test]
fn integrations_that_cannot_run_on_this_machine_are_counted() {
    let mut view = view();
    view.title.unchecked = 2;
    let text = lines(&view, 120, 24).last().expect("totals").text();
    assert!(text.contains("1 failed · 2 not checked · 137 changes"), "{text}");
}

#[test]
fn a_table_fits_its_terminal() {
    for invalid in [None, Some("data invalid since ".repeat(9))] {
        let mut view = view();
        view.title.invalid = invalid;
        fits(view);
    }
}

fn fits(mut view: StatusView) {
    view.loops[0].name = "日本語の統合".repeat(9);
    view.title.data = "a/very/long/path/".repeat(20);
    view.loops[11].attention_shards =
        (0..40).map(|number| shard(&number.to_string().repeat(90), true, number)).collect();
    for width in 0..130 {
        for height in 0..50 {
            let lines = lines(&view, width, height);
            assert!(lines.len() <= height.saturating_sub(MARGIN), "{width}×{height}: {}", lines.len());
            for line in &lines {
                assert!(line.width() <= width, "{width}×{height}: {}", line.text());
            }
        }
    }
}

#[test]
fn failed_and_held_loops_are_shown_in_a_terminal_of_any_height() {
    for height in MARGIN + 5..50 {
        let text: Vec<String> = lines(&view(), 80, height).iter().map(StatusLine::text).collect();
        assert!(text.iter().any(|line| line.starts_with("failed    openshift-resources")), "{height}");
    }
    let text: Vec<String> = lines(&view(), 80, 4).iter().map(StatusLine::text).collect();
    assert_eq!(text.len(), 1, "only the totals");
    assert!(text[0].contains("1 failed"), "{text:?}");
    assert!(lines(&view(), 80, MARGIN).is_empty());
}

#[test]
fn shards_that_do_not_fit_are_counted() {
    let mut view = StatusView {
        loops: vec![one("a", LoopState::Failed), one("b", LoopState::Ok)],
        ..StatusView::default()
    };
    let shards = |troubled: usize, height: usize, view: &mut StatusView| {
        view.loops[0].attention_shards =
            (0..troubled).map(|number| shard(&number.to_string(), true, 0)).collect();
        let text: Vec<String> = lines(view, 80, height).iter().map(StatusLine::text).collect();
        let shown = text.iter().filter(|line| line.contains("namespace=")).count();
        (shown, text.iter().find(|line| line.contains("more shard")).cloned())
    };
    let more = |count: &str| Some(format!("    … and {count}"));
    assert_eq!(shards(5, 24, &mut view), (5, None));
    assert_eq!(shards(6, 24, &mut view), (5, more("1 more shard")));
    assert_eq!(shards(9, 24, &mut view), (5, more("4 more shards")));
    // After the margin, the title, the header, the totals and two rows, 0, 1 or 2 lines are left.
    assert_eq!(shards(2, 7, &mut view), (0, None));
    assert_eq!(shards(2, 8, &mut view), (0, more("2 more shards")));
    assert_eq!(shards(2, 9, &mut view), (2, None));
    assert_eq!(shards(1, 8, &mut view), (1, None));
}

#[test]
fn times_until_the_next_run_rarely_change() {
    let check =
        |seconds: u64, expect: &str| assert_eq!(coarse_duration(Duration::from_secs(seconds)), expect);
    check(0, "0s");
    check(119, "119s");
    check(120, "2m");
    check(7_199, "119m");
    check(7_200, "2h");
}

#[test]
fn states_that_need_attention_are_styled() {
    let lines = lines(&view(), 120, 40);
    assert!(lines[2].styled().starts_with("\x1b[1;31mfailed "), "{}", lines[2].styled());
    let totals = lines.last().expect("totals").styled();
    assert!(
        totals.contains("\x1b[1;31m1 failed\x1b[0m") && totals.contains("\x1b[33m1 held\x1b[0m"),
        "{totals}"
    );
}

#[test]
fn data_cannot_send_control_characters_to_the_terminal() {
    let mut view = view();
    view.loops[0].name = "a\x1b[2J\u{202e}".to_owned();
    view.loops[11].attention_shards = vec![shard("\n\x1b[31m", true, 0)];
    view.title.data = "x\x1b]0;y\x07".to_owned();
    view.title.targets = "sandbox \u{9b}".to_owned();
    view.title.invalid = Some("invalid \u{9b}".to_owned());
    for line in lines(&view, 120, 40) {
        let text = line.text();
        assert_eq!(sanitize(&text), text);
    }
}

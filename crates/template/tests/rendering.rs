//! The behaviour that callers rely on: lookups in rounds, lookups in declared state, secrets that are not
//! printed, faults with their line, limits.

use std::collections::BTreeMap;

use qontract_template::{
    Data, DeclaredLookups, Kind, LookupState, RenderLimits, RenderOutcome, RenderRequest, Source, Strictness,
    TemplateFault, TemplateLookup, render,
};

fn secret(path: &str) -> TemplateLookup {
    TemplateLookup::Secret {
        path: path.to_owned(),
        key: "k".to_owned(),
        version: None,
        allow_not_found: false,
    }
}

fn fault(text: &str) -> TemplateFault {
    let limits = RenderLimits { steps: 300_000, ..RenderLimits::default() };
    let request = RenderRequest { limits, ..RenderRequest::new(Source::new("resources/x.j2", text), &[]) };
    render(&request, &BTreeMap::new()).expect_err(text)
}

fn check_fault(text: &str, kind: Kind, expect: &str) {
    let fault = fault(text);
    assert_eq!((fault.kind, fault.to_string().as_str()), (kind, expect), "{text:?}");
}

#[test]
fn look_ups_are_requested_in_rounds() {
    let text =
        "{{ vault('a', 'k') }}{% set b = vault('b', 'k') %}{{ b ~ 1 }}{{ vault(vault('c', 'k'), 'k') }}";
    let request = RenderRequest::new(Source::new("t", text), &[]);
    let mut known: BTreeMap<TemplateLookup, LookupState> = BTreeMap::new();
    let Ok(RenderOutcome::Needs(needs)) = render(&request, &known) else { panic!("a lookup is needed") };
    assert_eq!(
        needs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["vault(a#k)", "vault(b#k)", "vault(c#k)"]
    );
    known.extend(needs.into_iter().map(|address| (address, LookupState::Ready(Data::text("d")))));
    let Ok(RenderOutcome::Needs(needs)) = render(&request, &known) else {
        panic!("another lookup is needed")
    };
    assert_eq!(needs.into_iter().collect::<Vec<_>>(), [secret("d")]);
    known.insert(secret("d"), LookupState::Ready(Data::text("e")));
    let Ok(RenderOutcome::Rendered(rendered)) = render(&request, &known) else {
        panic!("all lookups have results")
    };
    assert_eq!(rendered.expose(), "dd1e");
    assert_eq!(rendered.lookups.len(), 4);
}

#[test]
fn look_ups_that_depend_on_a_pending_one_are_not_requested() {
    let text = "{% if vault('a', 'k') == 'x' %}{{ vault('b', 'k') }}{% endif %}{{ vault('c', 'k') }}";
    let Ok(RenderOutcome::Needs(needs)) =
        render(&RenderRequest::new(Source::new("t", text), &[]), &BTreeMap::new())
    else {
        panic!("a lookup is needed")
    };
    assert_eq!(needs.into_iter().collect::<Vec<_>>(), [secret("a")]);
}

#[test]
fn in_declared_state_a_look_up_is_its_own_text() {
    let text = "{{ vault('a/b', 'k', 3) }} {{ github('o/r', 'p', 'main') }} {{ s3('a', 'b', 'p') }} {{ yesterday() }}";
    let nothing: BTreeMap<TemplateLookup, LookupState> = BTreeMap::new();
    let Ok(RenderOutcome::Rendered(rendered)) =
        render(&RenderRequest::new(Source::new("t", text), &[]), &DeclaredLookups(nothing))
    else {
        panic!("nothing is read")
    };
    assert_eq!(rendered.expose(), "vault(a/b#k@3) github(o/r/p@main) s3(a/b/p) yesterday()");
}

#[test]
fn text_from_a_secret_is_neither_printed_nor_in_a_fault() {
    let known = BTreeMap::from([(secret("a"), LookupState::Ready(Data::text("hunter2")))]);
    let render = |text: &str| render(&RenderRequest::new(Source::new("t", text), &[]), &known);
    let outcome = render("{{ vault('a', 'k') }}").unwrap();
    assert!(!format!("{outcome:?}{known:?}").contains("hunter2"), "{outcome:?}");
    let RenderOutcome::Rendered(rendered) = outcome else { panic!("all lookups have results") };
    assert!(rendered.is_sensitive);
    for text in [
        "{{ {}[vault('a', 'k')] }}",
        "{% raise_error vault('a', 'k') %}",
        "{{ [1]|map(vault('a', 'k'))|list }}",
    ] {
        let fault = render(text).unwrap_err();
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
    }
}

#[test]
fn after_a_secret_was_read_every_fault_reads_the_same() {
    let known = BTreeMap::from([(secret("a"), LookupState::Ready(Data::text("hunter2")))]);
    let fault = |text: &str| {
        let text = format!("{{% set s = vault('a', 'k') %}}\n{text}");
        let limits = RenderLimits { steps: 300_000, ..RenderLimits::default() };
        render(&RenderRequest { limits, ..RenderRequest::new(Source::new("t.j2", &text), &[]) }, &known)
            .unwrap_err()
    };
    let first = fault("{{ nope }}");
    assert_eq!(first.line, None);
    assert_eq!(
        first.to_string(),
        "t.j2: cannot be rendered; a secret was looked up before, so neither the reason nor the line is shown"
    );
    for text in [
        "\n\n{% if s[0] == 'h' %}{{ nope }}{% endif %}",
        "{{ s + 1 }}",
        "{% raise_error s %}",
        "{{ s|pprint }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ ('{{ 1 / 0 }}' ~ s)|eval }}",
    ] {
        assert_eq!(fault(text), first, "{text}");
    }
    // In declared state nothing is secret, and a fault is reported in full.
    let text = "{% set s = vault('a', 'k') %}\n{{ nope }}";
    let nothing: BTreeMap<TemplateLookup, LookupState> = BTreeMap::new();
    let fault =
        render(&RenderRequest::new(Source::new("t.j2", text), &[]), &DeclaredLookups(nothing)).unwrap_err();
    assert_eq!(fault.to_string(), "t.j2:2: `nope` is undefined");
}

#[test]
fn a_fault_names_template_line_and_what_is_missing() {
    check_fault("a\n{{ nope }}", Kind::Undefined, "resources/x.j2:2: `nope` is undefined");
    check_fault("a\n\n{{ nope('x') }}", Kind::Undefined, "resources/x.j2:3: `nope` is undefined");
    check_fault("\n{{ {'a': x}.b.c }}", Kind::Undefined, "resources/x.j2:2: a dict has no attribute `b`");
    check_fault("\n{{ 1|nope }}", Kind::Undefined, "resources/x.j2:2: filter `nope` not found");
    check_fault(
        "{% if 1 %}\n{% for %}",
        Kind::Syntax,
        "resources/x.j2:2: expected a name, found the end of the tag",
    );
    check_fault(
        "{% for x in [1] %}\n{% raise_error 'no' %}{% endfor %}",
        Kind::Raised,
        "resources/x.j2:2: `raise_error`: `no`",
    );
    check_fault(
        "\n\n{{ [1]|random }}",
        Kind::Refused,
        "resources/x.j2:3: not supported: the filter `random`: a template must always render the same text",
    );
    check_fault(
        "\n{% include 'x' %}",
        Kind::Refused,
        "resources/x.j2:2: not supported: the tag `include`: there are no other templates to include",
    );
}

#[test]
fn a_failed_look_up_is_reported_with_its_text() {
    let known = BTreeMap::from([(secret("a"), LookupState::Failed("permission denied".to_owned()))]);
    let fault =
        render(&RenderRequest::new(Source::new("t", "\n{{ vault('a', 'k') }}"), &[]), &known).unwrap_err();
    assert_eq!(fault.to_string(), "t:2: `vault(a#k)` could not be looked up: permission denied");
}

#[test]
fn every_limit_ends_a_rendering() {
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(500), ")".repeat(500));
    let sums = format!("{{{{ 1{} }}}}", " + 1".repeat(5000));
    for text in [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 'x' * 99999999999 }}",
        "{% set n = namespace(x='x') %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=[]) %}{% for a in range(999) %}{% set n.x = [n.x] %}{% endfor %}",
        "{% set n = namespace(x=[]) %}{% for a in range(999) %}{% set n.x = n.x|map('upper') %}{% endfor %}",
        "{% set n = namespace(x=[]) %}{% for a in range(99) %}{% set y = [] %}{% set _ = n.x.append(y) %}{% set n.x = y %}{% endfor %}",
        "{% set l = [1] %}{% for x in l %}{% set _ = l.append(1) %}{% endfor %}",
        "{% set d = {} %}{% set _ = d.update(d=d) %}",
        "{% set n = namespace() %}{% set n.n = n %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ 'a'.center(999999999) }}",
        &deep,
        &sums,
    ] {
        let fault = fault(text);
        assert_eq!(fault.kind, Kind::Limit, "{fault}");
    }
    let small = RenderLimits { source: 3, ..RenderLimits::default() };
    let request = RenderRequest { limits: small, ..RenderRequest::new(Source::new("t", "four"), &[]) };
    assert_eq!(render(&request, &BTreeMap::new()).unwrap_err().kind, Kind::Limit);
}

#[test]
fn a_lenient_template_prints_what_is_missing_as_nothing() {
    let request = RenderRequest {
        strictness: Strictness::Lenient,
        ..RenderRequest::new(Source::new("t", "{ x(name: \"{{ name }}\") }{% if nope %}no{% endif %}"), &[])
    };
    let Ok(RenderOutcome::Rendered(rendered)) = render(&request, &BTreeMap::new()) else {
        panic!("it is rendered")
    };
    assert_eq!(rendered.expose(), "{ x(name: \"\") }");
}

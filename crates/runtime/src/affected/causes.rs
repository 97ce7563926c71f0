//! The changed files that can affect an integration.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_bundle::diff::{
    Change, DatafileChange, Diff, OldFile, Renames, ResourceChange, changed_backrefs, fields,
};
use qontract_bundle::{Document, Value};
use qontract_graphql::{Engine, Footprint};

use super::partial_comparison::EnginePair;
use crate::comparison_query::{Cause, CauseKind, ComparedQuery, ComparisonQuery, DifferencePlaces};
use crate::data::BundleReader;
use crate::definition;
use crate::fault::Fault;
use crate::guard::Approval;
use crate::source_location::SourceLocation;

/// The differences in the footprint of the declared queries; `None` if a query does not match the types of a
/// bundle.
pub fn footprint(sides: &EnginePair<'_>, query: &ComparisonQuery) -> Option<Vec<Cause>> {
    let EnginePair { base, head, diff } = sides;
    let mut footprints = Vec::new();
    for query in sides.known_queries(query)? {
        footprints.push(query_footprint(base, query)?);
        footprints.push(query_footprint(head, query)?);
    }
    let mut causes = BTreeSet::new();
    if diff.graphql.is_some() && !footprints.is_empty() {
        causes.insert(Cause::new(CauseKind::Types, None));
    }
    for change in &diff.datafiles {
        let stray =
            base.mistyped_targets().contains(&change.path) || head.mistyped_targets().contains(&change.path);
        let (old, new) = (change.change.before(), change.change.after());
        let sees = |footprint: &Footprint| footprint.sees(old.map(AsRef::as_ref), new.map(AsRef::as_ref));
        if footprints.iter().any(sees) {
            causes.extend(datafile(change, |schema, pointer| {
                footprints.iter().any(|footprint| footprint.reads(schema, pointer))
            }));
        } else if stray {
            let mistyped = datafile(change, |_, _| true).into_iter();
            causes.extend(mistyped.map(|cause| Cause { is_mistyped: true, ..cause }));
        }
    }
    if footprints.iter().any(Footprint::resources) {
        causes.extend(diff.resources.iter().map(resource));
    }
    if footprints.iter().any(Footprint::reads_backrefs) {
        let places = changed_backrefs(base.bundle(), head.bundle()).map(SourceLocation::resource);
        causes.extend(places.map(|place| Cause::new(CauseKind::Resource, Some(place))));
    }
    Some(causes.into_iter().collect())
}

/// All files that differ: an ad-hoc read may depend on any of them.
pub fn all_changes(diff: &Diff) -> Vec<Cause> {
    let datafiles = diff.datafiles.iter().flat_map(|change| datafile(change, |_, _| true));
    datafiles.chain(diff.resources.iter().map(resource)).collect()
}

/// The causes in a datafile: each field that differs and is read. If no differing field is known to be read, the
/// cause is the first differing field.
fn datafile(
    DatafileChange { path, change }: &DatafileChange,
    is_read: impl Fn(&str, &str) -> bool,
) -> Vec<Cause> {
    let (Some(old), Some(new)) = (change.before(), change.after()) else {
        let place = Some(SourceLocation::datafile(path, ""));
        return vec![Cause { gone: change.after().is_none(), ..Cause::new(CauseKind::Datafile, place) }];
    };
    let schema = change.either().schema().unwrap_or_default();
    let pointers = fields(&old.value, &new.value).into_iter().map(|field| {
        // If head has a different item at the index of a removed list item, the list is reported as the cause.
        let is_taken = field.change.after().is_none() && new.value.pointer(&field.pointer).is_some();
        let list = field.pointer.rfind('/').filter(|_| is_taken);
        field.pointer[..list.unwrap_or(field.pointer.len())].to_owned()
    });
    let (read, other): (Vec<String>, Vec<String>) = pointers.partition(|pointer| is_read(schema, pointer));
    let pointers = if read.is_empty() { other.into_iter().take(1).collect() } else { read };
    let pointers = if pointers.is_empty() { vec![String::new()] } else { pointers };
    let cause =
        |pointer: &String| Cause::new(CauseKind::Datafile, Some(SourceLocation::datafile(path, pointer)));
    pointers.iter().map(cause).collect()
}

/// Replaces the removed file and the added file of a rename by one cause: the field that differs under the new path,
/// or the rename itself if no field differs.
pub fn follow_renames(causes: Vec<Cause>, renames: &Renames) -> Vec<Cause> {
    let mut followed = BTreeSet::new();
    for cause in causes {
        let Some(place) = cause.place.clone() else {
            followed.insert(cause);
            continue;
        };
        let Renames { datafiles, resources } = renames;
        let is_moved = match cause.what {
            CauseKind::Datafile => datafiles.is_moved(&place.path),
            CauseKind::Resource => resources.is_moved(&place.path),
            CauseKind::Types | CauseKind::Integration | CauseKind::Approval => false,
        };
        if cause.gone && is_moved {
            continue;
        }
        match cause.what {
            CauseKind::Datafile => {
                let Some(OldFile { path, thing, renamed }) = datafiles.before(&place.path) else {
                    followed.insert(cause);
                    continue;
                };
                let change = Change::Changed(Arc::clone(thing), Arc::clone(renamed));
                let change = DatafileChange { path: (&*place.path).into(), change };
                let causes = datafile(&change, |_, _| true).into_iter();
                followed.extend(causes.map(|cause| Cause { renamed_from: Some((&**path).into()), ..cause }));
            }
            CauseKind::Resource => {
                let renamed_from = resources.before(&place.path).map(|old| (&*old.path).into());
                followed.insert(Cause { renamed_from, ..cause });
            }
            CauseKind::Types | CauseKind::Integration | CauseKind::Approval => {
                followed.insert(cause);
            }
        }
    }
    followed.into_iter().collect()
}

/// Omits references that changed only because the file that they name was renamed. If no other causes exist, these
/// references are kept.
pub fn without_moved_references(causes: Vec<Cause>, diff: &Diff, renames: &Renames) -> Vec<Cause> {
    let follows = |cause: &Cause| {
        let Some(place) = cause.place.as_ref().filter(|place| !place.resource) else { return false };
        let change = diff.datafiles.iter().find(|change| *change.path == *place.path).map(|one| &one.change);
        let Some(Change::Changed(old, new)) = change else { return false };
        let text = |document: &Document| {
            document.value.pointer(&place.pointer).and_then(|value| Some(value.as_str()?.to_owned()))
        };
        let before = text(new).and_then(|new| renames.datafiles.before(&new).map(|old| old.path.clone()));
        before.is_some() && before == text(old)
    };
    let (moved, others): (Vec<Cause>, Vec<Cause>) = causes.into_iter().partition(follows);
    if others.is_empty() { moved } else { others }
}

/// Omits datafiles that were only renamed, because the state that a file declares does not depend on its path. If no
/// other causes exist, these datafiles are kept.
pub fn without_mere_renames(causes: Vec<Cause>) -> Vec<Cause> {
    let is_rename = |cause: &Cause| {
        let is_whole = cause.place.as_ref().is_some_and(|place| place.pointer.is_empty());
        cause.what == CauseKind::Datafile && cause.renamed_from.is_some() && is_whole
    };
    let (renamed, others): (Vec<Cause>, Vec<Cause>) = causes.into_iter().partition(is_rename);
    if others.is_empty() { renamed } else { others }
}

/// Omits changed fields that do not explain a difference in the declared state.
///
/// This is possible only if every difference has a known location and a field changed there: then changes elsewhere
/// are not the cause. A shard that exists only in base is explained by the removal of its file. Otherwise all causes
/// are kept, except for fields that might not be read. `names` returns whether the value at the first location
/// contains the path of the file of the second location, as an entry contains the path of its template; then a change
/// to that file explains the difference.
pub fn relevant(
    causes: Vec<Cause>,
    differences: &DifferencePlaces,
    names: &dyn Fn(&SourceLocation, &SourceLocation) -> bool,
) -> Vec<Cause> {
    let DifferencePlaces { places: Some(places), removed } = differences else { return causes };
    let removes = |cause: &Cause, place: &SourceLocation| {
        cause.gone && cause.place.as_ref().is_some_and(|file| file.path == place.path)
    };
    if !removed.iter().all(|place| causes.iter().any(|cause| removes(cause, place))) {
        return causes;
    }
    let explains = |cause: &Cause, place: &SourceLocation| {
        cause.place.as_ref().is_some_and(|one| overlap(one, place) || names(place, one))
    };
    let is_explained = |place: Option<&SourceLocation>| {
        place.is_some_and(|place| {
            let is_part = place.resource || !place.pointer.is_empty();
            is_part && causes.iter().any(|cause| explains(cause, place))
        })
    };
    if !places.iter().all(|place| is_explained(place.as_ref())) {
        let places = places.iter().map(Option::as_ref).chain(removed.iter().map(Some));
        let files: Option<BTreeSet<&str>> = places.map(|place| place.map(|place| &*place.path)).collect();
        return match files {
            Some(files) => without_unread_files(causes, &files),
            None => causes,
        };
    }
    let is_relevant = |cause: &Cause| {
        places.iter().flatten().any(|place| explains(cause, place))
            || removed.iter().any(|place| removes(cause, place))
    };
    causes.into_iter().filter(is_relevant).collect()
}

/// Omits fields that might not be read, in files without differences. If no other causes exist, these fields are
/// kept.
fn without_unread_files(causes: Vec<Cause>, files: &BTreeSet<&str>) -> Vec<Cause> {
    let is_unread = |cause: &Cause| {
        cause.is_mistyped && !cause.place.as_ref().is_some_and(|place| files.contains(&*place.path))
    };
    let (unread, others): (Vec<Cause>, Vec<Cause>) = causes.into_iter().partition(is_unread);
    if others.is_empty() { unread } else { others }
}

/// Whether the value at `place`, in base or head, contains the path of the file of `cause`.
pub fn names_file(sides: &EnginePair<'_>, place: &SourceLocation, cause: &SourceLocation) -> bool {
    let is_named = |engine: &Engine| {
        let document = engine.bundle().datafile(&place.path)?;
        Some(contains_text(document.value.pointer(&place.pointer)?, &cause.path))
    };
    // A location without a pointer does not identify the relevant part of the file.
    let is_part = !place.resource && !place.pointer.is_empty();
    is_part && [sides.base, sides.head].into_iter().any(|engine| is_named(engine).unwrap_or_default())
}

/// Whether a value is this string or contains it at any depth.
fn contains_text(value: &Value, text: &str) -> bool {
    if let Some(own) = value.as_str() {
        return own == text;
    }
    let in_list = value.as_list().is_some_and(|items| items.iter().any(|item| contains_text(item, text)));
    let in_map = || value.as_map().is_some_and(|map| map.iter().any(|(_, item)| contains_text(item, text)));
    in_list || in_map()
}

/// Whether one of the two locations contains the other.
fn overlap(one: &SourceLocation, other: &SourceLocation) -> bool {
    let is_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    one.resource == other.resource
        && one.path == other.path
        && (is_within(&one.pointer, &other.pointer) || is_within(&other.pointer, &one.pointer))
}

fn resource(ResourceChange { path, change }: &ResourceChange) -> Cause {
    let gone = change.after().is_none();
    Cause { gone, ..Cause::new(CauseKind::Resource, Some(SourceLocation::resource(path))) }
}

fn query_footprint(engine: &Engine, query: &ComparedQuery) -> Option<Footprint> {
    engine.footprint(query.operation().into()).ok()
}

/// The differences in the integration's own datafile and in its approvals.
pub fn own_definition(
    base: &dyn BundleReader,
    head: &dyn BundleReader,
    name: &str,
) -> Result<Vec<Cause>, Fault> {
    let (old, new) = (definition::of(base, name)?, definition::of(head, name)?);
    let mut causes = Vec::new();
    if old.as_ref().map(|old| &old.schemas) != new.as_ref().map(|new| &new.schemas) {
        let gone = new.is_none();
        let place = new.or(old).map(|listing| listing.place.below("/schemas"));
        causes.push(Cause { gone, ..Cause::new(CauseKind::Integration, place) });
    }
    let approvals = |side: &dyn BundleReader| -> Result<Vec<_>, Fault> {
        let all = definition::approvals(side)?;
        Ok(all.into_iter().filter(|approval| approval.integration == name).collect())
    };
    let (old, new) = (approvals(base)?, approvals(head)?);
    let changed = |one: &[Approval], other: &[Approval]| -> Vec<Cause> {
        let changed = one.iter().filter(|approval| !other.contains(approval));
        let place = |path: &str| (!path.is_empty()).then(|| SourceLocation::datafile(path, ""));
        changed.map(|approval| Cause::new(CauseKind::Approval, place(&approval.path))).collect()
    };
    causes.extend(changed(&new, &old));
    for gone in changed(&old, &new) {
        if !causes.iter().any(|cause| cause.place == gone.place) {
            causes.push(Cause { gone: gone.place.is_some(), ..gone });
        }
    }
    Ok(causes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use qontract_bundle::diff::{Diff, renames};
    use qontract_bundle::{Bundle, Pool, load};

    use super::{
        Cause, CauseKind, DifferencePlaces, all_changes, follow_renames, overlap, relevant,
        without_mere_renames, without_moved_references,
    };
    use crate::key::ShardKey;
    use crate::source_location::SourceLocation;
    use crate::state::{Comparison, Difference, MAX_DIFFERENCES};

    /// Parses a location that is written as `path` or `path#pointer`; the path of a resource begins with `r:`.
    fn place(text: &str) -> SourceLocation {
        let (path, pointer) = text.split_once('#').unwrap_or((text, ""));
        match path.strip_prefix("r:") {
            Some(path) => SourceLocation::resource(path),
            None => SourceLocation::datafile(path, pointer),
        }
    }

    fn comparison(places: &[Option<&str>]) -> Comparison {
        let differences = places.iter().map(|at| Difference { path: "/x".to_owned(), place: at.map(place) });
        let shards = BTreeMap::from([(ShardKey::default(), differences.collect())]);
        Comparison { shards, ..Comparison::default() }
    }

    fn relevant_causes(causes: &[&str], comparison: &Comparison) -> Vec<String> {
        let cause = |text: &&str| Cause::new(CauseKind::Datafile, Some(place(text)));
        // The entry names its template.
        let names = |place: &SourceLocation, cause: &SourceLocation| {
            (&*place.pointer, &*cause.path) == ("/resources/2", "/named.j2")
        };
        let relevant_causes = relevant(causes.iter().map(cause).collect(), &comparison.into(), &names);
        relevant_causes
            .iter()
            .filter_map(|cause| cause.place.as_ref())
            .map(|at| format!("{}#{}", at.path, at.pointer))
            .collect()
    }

    fn check(causes: &[&str], places: &[Option<&str>], expect: &[&str]) {
        assert_eq!(relevant_causes(causes, &comparison(places)), expect, "{causes:?} {places:?}");
    }

    const LABEL: &str = "/ns.yml#/labels/tier";
    const REPLICAS: &str = "/ns.yml#/resources/2/variables/replicas";

    #[test]
    fn a_change_that_does_not_explain_a_difference_is_not_a_cause() {
        check(&[LABEL, REPLICAS], &[Some("/ns.yml#/resources/2")], &[REPLICAS]);
        check(&["/ns.yml#/resources", LABEL], &[Some("/ns.yml#/resources/2")], &["/ns.yml#/resources"]);
        check(&[REPLICAS, "r:/t.j2"], &[Some("/ns.yml#/resources/2")], &[REPLICAS]);
        check(&[LABEL, "r:/t.j2"], &[Some("r:/t.j2")], &["/t.j2#"]);
        check(&[LABEL, "r:/t.j2", "r:/named.j2"], &[Some("/ns.yml#/resources/2")], &["/named.j2#"]);
        check(
            &[LABEL, REPLICAS, "/other.yml#/a"],
            &[Some("/ns.yml#/resources/2"), Some("/other.yml#/a")],
            &[REPLICAS, "/other.yml#/a"],
        );
    }

    #[test]
    fn all_changes_stay_if_a_difference_is_not_explained() {
        let both: &[&str] = &[LABEL, REPLICAS];
        // A difference without a location, one from the whole file, and one from an unchanged part.
        check(both, &[Some("/ns.yml#/resources/2"), None], both);
        check(both, &[Some("/ns.yml")], both);
        check(both, &[Some("/ns.yml#/resources/2"), Some("/ns.yml#/resources/3")], both);
        check(both, &[], both);
        let one = || comparison(&[Some("/ns.yml#/resources/2")]);
        assert_eq!(relevant_causes(both, &one()), [REPLICAS]);
        assert_eq!(relevant_causes(both, &Comparison { common: true, ..one() }), both);
        assert_eq!(relevant_causes(both, &Comparison { gone: [ShardKey::default()].into(), ..one() }), both);
        assert_eq!(relevant_causes(both, &Comparison::default()), both);
        let many = |count: usize| comparison(&vec![Some("/ns.yml#/resources/2"); count]);
        assert_eq!(relevant_causes(both, &many(MAX_DIFFERENCES - 1)), [REPLICAS]);
        assert_eq!(relevant_causes(both, &many(MAX_DIFFERENCES)), both);
    }

    #[test]
    fn a_removed_file_is_the_cause_of_a_shard_that_only_base_has() {
        let key = || ShardKey::new([("namespace", "old")]);
        let gone = |path: &str| Comparison {
            gone: [key()].into(),
            gone_places: [(key(), place(path))].into(),
            ..Comparison::default()
        };
        let check = |comparison: &Comparison, expect: &[&str]| {
            let removed = Cause { gone: true, ..Cause::new(CauseKind::Datafile, Some(place("/old.yml"))) };
            let changed = [LABEL, REPLICAS].map(|at| Cause::new(CauseKind::Datafile, Some(place(at))));
            let differences = DifferencePlaces::from(comparison);
            let causes = relevant([vec![removed], changed.to_vec()].concat(), &differences, &|_, _| false);
            let places = causes.iter().filter_map(|cause| cause.place.as_ref());
            let places: Vec<String> = places.map(|at| format!("{}#{}", at.path, at.pointer)).collect();
            assert_eq!(places, expect);
        };
        check(&gone("/old.yml"), &["/old.yml#"]);
        // The shard no longer exists because of another file.
        let all = ["/old.yml#", LABEL, REPLICAS];
        check(&gone("/other.yml"), &all);
        check(&Comparison { gone_places: BTreeMap::new(), ..gone("/old.yml") }, &all);
        let both = Comparison { shards: comparison(&[Some(REPLICAS)]).shards, ..gone("/old.yml") };
        check(&both, &["/old.yml#", REPLICAS]);
    }

    /// A bundle with these datafiles: a namespace, and a role that refers to it.
    fn bundle(namespace: &str, tier: &str, role: serde_json::Value) -> Bundle {
        let mut role = role;
        role["$schema"] = "/role-1.yml".into();
        role["namespace"] = serde_json::json!({ "$ref": namespace });
        let mut data = serde_json::json!({ "/role.yml": role });
        data[namespace] = serde_json::json!({
            "$schema": "/namespace-1.yml", "name": "stage", "a": 1, "b": 2, "labels": { "tier": tier },
        });
        let whole = serde_json::json!({
            "data": data, "graphql": [], "resources": {}, "schemas": {}, "git_commit": "c", "git_commit_timestamp": "1",
        });
        load(whole.to_string().as_bytes(), &Pool::default()).unwrap()
    }

    #[test]
    fn a_renamed_file_is_followed_and_references_that_follow_it_are_not_causes() {
        let check = |tier: &str, role: serde_json::Value, expect: &[&str]| {
            let (base, head) =
                (bundle("/old.yml", "edge", serde_json::json!({})), bundle("/new.yml", tier, role));
            let diff = Diff::between(&base, &head);
            let renames = renames(&diff, |_, _| 0.0);
            let followed = follow_renames(all_changes(&diff), &renames);
            let causes = without_moved_references(followed, &diff, &renames);
            let text = |cause: &Cause| {
                let place = cause.place.as_ref().unwrap();
                format!("{}#{} {:?}", place.path, place.pointer, cause.renamed_from)
            };
            assert_eq!(causes.iter().map(text).collect::<Vec<_>>(), expect);
            assert!(causes.iter().all(|cause| !cause.gone));
        };
        check("edge", serde_json::json!({}), &["/new.yml# Some(\"/old.yml\")"]);
        check("core", serde_json::json!({}), &["/new.yml#/labels/tier Some(\"/old.yml\")"]);
        check(
            "edge",
            serde_json::json!({ "more": 1 }),
            &["/new.yml# Some(\"/old.yml\")", "/role.yml#/more None"],
        );
    }

    #[test]
    fn a_mere_rename_is_a_cause_only_if_nothing_else_is() {
        let cause = |path: &str, pointer: &str, from: Option<&str>| Cause {
            renamed_from: from.map(Into::into),
            ..Cause::new(CauseKind::Datafile, Some(SourceLocation::datafile(path, pointer)))
        };
        let renamed = cause("/tiny.yml", "", Some("/small.yml"));
        let changed = cause("/team.yml", "/tier", None);
        let both = cause("/new.yml", "/tier", Some("/old.yml"));
        assert_eq!(without_mere_renames(vec![renamed.clone()]), std::slice::from_ref(&renamed));
        let causes = vec![renamed, changed.clone(), both.clone()];
        assert_eq!(without_mere_renames(causes), [changed, both]);
    }

    #[test]
    fn locations_overlap_if_one_is_part_of_the_other() {
        let check = |one: &str, other: &str, expect: bool| {
            assert_eq!(overlap(&place(one), &place(other)), expect, "{one} {other}");
            assert_eq!(overlap(&place(other), &place(one)), expect, "{other} {one}");
        };
        check("/a#/x", "/a#/x", true);
        check("/a#/x", "/a#/x/y", true);
        check("/a", "/a#/x", true);
        check("/a#/x", "/a#/xy", false);
        check("/a#/x", "/b#/x", false);
        check("r:/a", "/a", false);
    }
}

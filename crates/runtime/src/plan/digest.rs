//! The digest of a plan: the identity of the changes that the plan would make.
//!
//! The digest covers the steps of the plan in their order, with all of their changes, and the changes that the
//! integration itself holds. It does not cover provenance or results. It also does not cover waits, rollouts,
//! degradations and faults, because these describe the state of the target, which differs from one observation to the
//! next.
//!
//! **Invariant:** no digest depends on a secret, not even on the number of keys that a secret contributes.
//! Otherwise a guessed secret could be confirmed by its digest (`a_digest_does_not_depend_on_secrets`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use qontract_bundle::Sha256;
use serde::{Deserialize, Serialize};

use super::{Change, ChangeKind, FieldLoss, Hold, ObjectKey, Plan, PlanStage};
use crate::field_diff::DiffEntry;
use crate::key::ShardKey;
use crate::state::digest;

/// The digest of a plan: the SHA-256 of its steps, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanDigest(String);

impl PlanDigest {
    /// The digest of the plans of several shards.
    pub(crate) fn of_shards(shards: &BTreeMap<&ShardKey, &PlanDigest>) -> Self {
        let shards: BTreeMap<String, &PlanDigest> =
            shards.iter().map(|(key, digest)| (key.to_string(), *digest)).collect();
        Self::of(&digest(&(FORMAT, shards)))
    }

    /// The digest as it is written in the data.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(digest: &Sha256) -> Self {
        Self(digest.to_string())
    }
}

impl From<&str> for PlanDigest {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for PlanDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The format of digests. It is part of each digest, so that digests of different formats never match.
const FORMAT: &str = "qontract plan 1";

/// The form of names in the text from which a digest is computed.
pub trait DigestedNames {
    /// The shown form of a text.
    fn text(&self, text: &str) -> String;
    /// The shown form of an object.
    fn object(&self, object: &ObjectKey) -> ObjectKey;
}

/// Names that are used unchanged.
struct PlainNames;

impl DigestedNames for PlainNames {
    fn text(&self, text: &str) -> String {
        text.to_owned()
    }

    fn object(&self, object: &ObjectKey) -> ObjectKey {
        object.clone()
    }
}

/// The digests of the steps of a plan, from which the digests of the plan and of its parts are computed. The size of
/// the outline does not depend on the size of the diffs.
#[derive(Debug, Default)]
pub struct PlanOutline {
    groups: Vec<OutlinedGroup>,
    held: Vec<Sha256>,
    /// The digests of the changes that remove an object or some of its keys, by object.
    removals: BTreeMap<ObjectKey, Vec<Sha256>>,
}

#[derive(Debug)]
struct OutlinedGroup {
    name: String,
    stage: String,
    steps: Vec<Sha256>,
}

impl PlanOutline {
    /// The digest of the whole plan.
    pub fn digest(&self) -> PlanDigest {
        self.digest_of(|_, _| true)
    }

    /// The objects that this plan removes, or from which it removes keys, in the same way as the other plan does.
    pub fn equal_removals(&self, other: &Self) -> BTreeSet<ObjectKey> {
        let is_equal =
            |(object, changes): &(&ObjectKey, &Vec<Sha256>)| other.removals.get(object) == Some(changes);
        self.removals.iter().filter(is_equal).map(|(object, _)| object.clone()).collect()
    }

    /// The digest of a plan with only those steps for which `includes` returns `true`. A step is given by the index
    /// of its group and its index in the group. Groups without steps are omitted.
    pub fn digest_of(&self, includes: impl Fn(usize, usize) -> bool) -> PlanDigest {
        let groups =
            self.groups.iter().enumerate().filter_map(|(at, OutlinedGroup { name, stage, steps })| {
                let steps = steps.iter().enumerate().filter(|(index, _)| includes(at, *index));
                let steps: Vec<String> = steps.map(|(_, step)| step.to_string()).collect();
                (!steps.is_empty()).then_some((name, stage, steps))
            });
        let groups: Vec<_> = groups.collect();
        let held: Vec<String> = self.held.iter().map(ToString::to_string).collect();
        PlanDigest::of(&digest(&(FORMAT, groups, held)))
    }
}

#[derive(Serialize)]
struct DigestedHold<'p> {
    change: DigestedChange<'p>,
    why: String,
    hold: Hold,
}

#[derive(Serialize)]
struct DigestedChange<'p> {
    kind: ChangeKind,
    object: ObjectKey,
    what: String,
    diff: &'p [DiffEntry],
    body: &'p [DiffEntry],
    loss: Option<FieldLoss>,
    incarnation: Option<&'p str>,
}

impl<'p> DigestedChange<'p> {
    fn new(change: &'p Change, names: &impl DigestedNames) -> Self {
        // Destructured, so that a new field causes a compile error until a developer decides whether it is part of
        // the digest. `diff_by_name` names fields that come from a secret, which a dry run does not show.
        let Change {
            kind,
            object,
            what,
            diff,
            diff_by_name: _,
            body,
            loss,
            incarnation,
            place: _,
            result: _,
        } = change;
        Self {
            kind: *kind,
            object: names.object(object),
            what: names.text(what),
            diff,
            body,
            loss: loss.filter(|loss| !loss.depends_on_secret),
            // The incarnation is included only for a removed object, because the incarnation of a written object
            // changes with each version, even if the plan does not change.
            incarnation: incarnation.as_deref().filter(|_| *kind == ChangeKind::Remove),
        }
    }
}

fn stage_name(stage: PlanStage) -> String {
    match stage {
        PlanStage::Write(number) => format!("write {number}"),
        PlanStage::AfterWrites => "after writes".to_owned(),
        PlanStage::Remove(number) => format!("remove {}", number.0),
    }
}

impl<A> Plan<A> {
    /// The digest of the plan. Two plans with the same changes in the same order have the same digest,
    /// regardless of where the data declares them.
    ///
    /// ```
    /// use qontract_runtime::{Change, ChangeKind, ObjectKey, Plan, Scope};
    ///
    /// let plan = |names: &[&str]| {
    ///     let mut plan = Plan::default();
    ///     for name in names {
    ///         let (scope, name) = (Scope::default(), (*name).to_owned());
    ///         let object = ObjectKey { scope, kind: "Group".to_owned(), name };
    ///         plan.add_step(Change::new(ChangeKind::Add, object, "create group"), ());
    ///     }
    ///     plan
    /// };
    /// assert_eq!(plan(&["dev", "ops"]).digest(), plan(&["dev", "ops"]).digest());
    /// assert_ne!(plan(&["dev", "ops"]).digest(), plan(&["ops", "dev"]).digest());
    /// ```
    pub fn digest(&self) -> PlanDigest {
        self.outline(&PlainNames).digest()
    }

    /// The digests of the steps, with names in the form that `names` defines.
    pub(crate) fn outline(&self, names: &impl DigestedNames) -> PlanOutline {
        let groups = self.groups.iter().map(|group| {
            let steps = group.steps.iter().map(|step| {
                let changes = step.changes.iter().map(|change| DigestedChange::new(change, names));
                digest(&changes.collect::<Vec<_>>())
            });
            let (name, stage) = (names.text(&group.name), stage_name(group.stage));
            OutlinedGroup { name, stage, steps: steps.collect() }
        });
        let held = self.held.iter().map(|held| {
            let change = DigestedChange::new(&held.change, names);
            digest(&DigestedHold { change, why: names.text(&held.why), hold: held.hold })
        });
        let mut removals: BTreeMap<ObjectKey, Vec<Sha256>> = BTreeMap::new();
        for change in self.changes().filter(|change| change.kind.removes() || change.loss.is_some()) {
            let digest = digest(&DigestedChange::new(change, names));
            removals.entry(change.object.clone()).or_default().push(digest);
        }
        PlanOutline { groups: groups.collect(), held: held.collect(), removals }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;
    use crate::fault::Fault;
    use crate::field_diff::{FieldChange, FieldDiff};
    use crate::key::Scope;
    use crate::plan::{
        Degradation, HeldPlanChange, Rollout, RolloutProgress, Step, StepGroup, StepResult, Wait,
    };
    use crate::source_location::SourceLocation;

    fn object(name: &str) -> ObjectKey {
        ObjectKey { scope: Scope::new([("app", "a")]), kind: "card".to_owned(), name: name.to_owned() }
    }

    fn change(name: &str) -> Change {
        let field = FieldDiff {
            change: FieldChange::Changed,
            path: "limit".to_owned(),
            before: Some(5.into()),
            after: Some(8.into()),
        };
        let mut change = Change::new(ChangeKind::Remove, object(name), "remove card").with_diff([field]);
        change.body = vec!["+ x: 1".into()];
        change.loss = Some(FieldLoss { lost: 1, of: 2, lists: 0, depends_on_secret: false });
        change.incarnation = Some("uid-1".to_owned());
        change
    }

    fn held() -> HeldPlanChange {
        HeldPlanChange {
            change: change("held"),
            why: "not now".to_owned(),
            hold: Hold::Approval,
            plan: None,
            remedy: None,
        }
    }

    /// Two groups of two steps, and a held change.
    fn plan() -> Plan<()> {
        let group = |name: &str, stage| StepGroup {
            name: name.to_owned(),
            stage,
            steps: ["a", "b"].map(|step| Step::new(change(&format!("{name}-{step}")), ())).into(),
        };
        Plan {
            groups: vec![group("one", PlanStage::Write(0)), group("two", PlanStage::Remove(Reverse(0)))],
            held: vec![held()],
            ..Plan::default()
        }
    }

    fn edited(edit: impl FnOnce(&mut Plan<()>)) -> PlanDigest {
        let mut plan = plan();
        edit(&mut plan);
        plan.digest()
    }

    fn first(plan: &mut Plan<()>) -> &mut Change {
        &mut plan.groups[0].steps[0].changes[0]
    }

    #[test]
    fn a_plan_that_differs_in_one_field_has_another_digest() {
        let differs = |edit: fn(&mut Plan<()>)| assert_ne!(edited(edit), plan().digest());
        differs(|plan| first(plan).kind = ChangeKind::Change);
        differs(|plan| first(plan).object.name.push('x'));
        differs(|plan| first(plan).object.kind.push('x'));
        differs(|plan| first(plan).object.scope = Scope::new([("app", "b")]));
        differs(|plan| first(plan).what.push('x'));
        differs(|plan| first(plan).diff.clear());
        differs(|plan| {
            let DiffEntry::Field(field) = &mut first(plan).diff[0] else { panic!("a field") };
            field.before = Some(6.into());
        });
        differs(|plan| first(plan).body.clear());
        differs(|plan| first(plan).loss = None);
        differs(|plan| first(plan).incarnation = Some("uid-2".to_owned()));
        differs(|plan| first(plan).incarnation = None);
        differs(|plan| plan.groups[0].name.push('x'));
        differs(|plan| plan.groups[0].stage = PlanStage::AfterWrites);
        differs(|plan| plan.groups[0].stage = PlanStage::Write(1));
        differs(|plan| plan.groups[0].steps.swap(0, 1));
        differs(|plan| plan.groups.swap(0, 1));
        differs(|plan| drop(plan.groups[0].steps.pop()));
        // Two steps, compared to one step with two changes.
        differs(|plan| {
            let second = plan.groups[0].steps.remove(1);
            plan.groups[0].steps[0].changes.extend(second.changes);
        });
        differs(|plan| plan.held.clear());
        differs(|plan| plan.held[0].why.push('x'));
        differs(|plan| plan.held[0].hold = Hold::Unresolved);
        differs(|plan| plan.held[0].change.what.push('x'));
    }

    #[test]
    fn provenance_results_and_operations_in_progress_are_in_no_digest() {
        let same = |edit: fn(&mut Plan<()>)| assert_eq!(edited(edit), plan().digest());
        same(|plan| {
            plan.groups[0].steps[0].changes[0].place = Some(SourceLocation::datafile("/other.yml", "/x"));
        });
        same(|plan| plan.groups[0].steps[0].changes[0].result = StepResult::Failed);
        same(|plan| plan.waits.push(Wait { text: "a rollout".to_owned(), place: None }));
        same(|plan| plan.degraded.push(Degradation { text: "an old image".to_owned(), place: None }));
        same(|plan| plan.faults.push(Fault::remote("no answer")));
        same(|plan| {
            let (progress, text) = (RolloutProgress::InProgress, "1 of 2".to_owned());
            plan.rollouts.push(Rollout { object: object("web"), progress, text, place: None });
        });
        // A group without steps has no effect on the digest.
        same(|plan| {
            let (name, stage) = ("empty".to_owned(), PlanStage::default());
            plan.groups.push(StepGroup { name, stage, steps: Vec::new() });
        });
    }

    #[test]
    fn the_version_of_a_written_object_is_in_no_digest() {
        for kind in ChangeKind::ALL {
            let of = |version: &str| {
                edited(|plan| {
                    let change = &mut plan.groups[0].steps[0].changes[0];
                    (change.kind, change.incarnation) = (kind, Some(version.to_owned()));
                })
            };
            assert_eq!(of("1") == of("2"), kind != ChangeKind::Remove, "{kind:?}");
        }
    }

    #[test]
    fn a_digest_does_not_depend_on_secrets() {
        let with_loss = |lost| {
            edited(|plan| {
                let loss = FieldLoss { lost, of: 9, lists: 0, depends_on_secret: true };
                plan.groups[0].steps[0].changes[0].loss = Some(loss);
            })
        };
        assert_eq!(with_loss(1), with_loss(7));
        let named = edited(|plan| {
            plan.groups[0].steps[0].changes[0].diff_by_name = vec!["~ data.password".into()];
        });
        assert_eq!(named, plan().digest());
    }

    #[test]
    fn a_part_of_a_plan_has_the_digest_of_a_plan_with_only_that_part() {
        let part = plan().outline(&PlainNames).digest_of(|group, step| (group, step) == (1, 1));
        let only = edited(|plan| {
            plan.groups.remove(0);
            plan.groups[0].steps.remove(0);
        });
        assert_eq!(part, only);
    }

    #[test]
    fn removals_are_compared_one_by_one() {
        let objects =
            |plan: &Plan<()>| plan.outline(&PlainNames).equal_removals(&self::plan().outline(&PlainNames));
        let all = objects(&plan());
        assert_eq!(all.len(), 4);
        let mut other = plan();
        other.groups[0].steps[1].changes[0].incarnation = Some("uid-2".to_owned());
        other.groups.swap(0, 1);
        assert_eq!(all.difference(&objects(&other)).collect::<Vec<_>>(), [&object("one-b")]);
    }

    #[test]
    fn the_digest_of_several_shards_names_each_with_its_plan() {
        let (one, two) = (plan().digest(), Plan::<()>::default().digest());
        let key = |name: &str| ShardKey::new([("app", name)]);
        let of = |first: &PlanDigest, second: &PlanDigest| {
            PlanDigest::of_shards(&BTreeMap::from([(&key("a"), first), (&key("b"), second)]))
        };
        assert_eq!(of(&one, &two), of(&one, &two));
        assert_ne!(of(&one, &two), of(&two, &one));
        assert_eq!(one.as_str().len(), 64);
    }
}

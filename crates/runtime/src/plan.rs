//! A plan is data: ordered, printable. A *step* is what is executed; its *changes* are what is shown and
//! guarded.

use std::cmp::Reverse;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::field_diff::DiffEntry;
use crate::guard::FieldLoss;
use crate::key::Scope;
use crate::place::Place;

/// One thing in the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Thing {
    /// Where it is.
    pub scope: Scope,
    /// What kind of thing it is.
    pub kind: String,
    /// Its name there.
    pub name: String,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)?;
        self.scope.write_in_parentheses(f)
    }
}

/// How a thing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It comes.
    Add,
    /// It stays and becomes different.
    Change,
    /// It goes, and another comes in its place.
    Replace,
    /// It goes.
    Remove,
}

impl ChangeKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Add, Self::Change, Self::Replace, Self::Remove];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Change => "change",
            Self::Replace => "replace",
            Self::Remove => "remove",
        }
    }

    /// The sign in front of it.
    pub fn sign(self) -> &'static str {
        match self {
            ChangeKind::Add => "+",
            ChangeKind::Change => "~",
            ChangeKind::Replace => "±",
            ChangeKind::Remove => "-",
        }
    }

    /// Whether something goes.
    pub fn removes(self) -> bool {
        match self {
            ChangeKind::Replace | ChangeKind::Remove => true,
            ChangeKind::Add | ChangeKind::Change => false,
        }
    }
}

/// What came of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepResult {
    /// It is only planned: in a dry run, or by a guard.
    #[default]
    Planned,
    /// It was made.
    Done,
    /// It failed, and may be made in part.
    Failed,
    /// It was abandoned because of a shutdown, and may be made in part.
    Interrupted,
    /// It was not tried: a step before it failed, or a shutdown was asked for.
    NotTried,
}

impl StepResult {
    /// Whether nothing came of it yet.
    pub fn is_planned(&self) -> bool {
        *self == Self::Planned
    }
}

/// One change of one thing, as it is shown and guarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// How it changes.
    pub kind: ChangeKind,
    /// What changes.
    pub thing: Thing,
    /// What is done, in words: `create namespace`.
    pub what: String,
    /// What differs inside the thing. **Invariant:** no secret is in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<DiffEntry>,
    /// The same entries with the names of fields that come from a secret, if `diff` only counts them. The record of a real run
    /// has them in place of `diff`; a check never shows them.
    #[serde(skip)]
    pub diff_by_name: Vec<DiffEntry>,
    /// The fields of a thing that is created. A run that is asked for bodies shows them in place of `diff`.
    #[serde(skip)]
    pub body: Vec<DiffEntry>,
    /// What the thing loses although it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<FieldLoss>,
    /// Where in the data it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What came of it in a real run.
    #[serde(skip_serializing_if = "StepResult::is_planned")]
    pub result: StepResult,
}

impl Change {
    /// A change of `thing`, in words.
    pub fn new(kind: ChangeKind, thing: Thing, what: impl Into<String>) -> Self {
        Self {
            kind,
            thing,
            what: what.into(),
            diff: Vec::new(),
            diff_by_name: Vec::new(),
            body: Vec::new(),
            loss: None,
            place: None,
            result: StepResult::Planned,
        }
    }

    /// Whether both are the same change, whatever came of them.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self { kind, thing, what, diff, diff_by_name, body, loss, place, result: _ } = self;
        other.does_same(*kind, thing, what)
            && (diff, diff_by_name, place) == (&other.diff, &other.diff_by_name, &other.place)
            && (body, loss) == (&other.body, &other.loss)
    }

    /// Whether both do the same to the same thing, however it is shown.
    fn does_same(&self, kind: ChangeKind, thing: &Thing, what: &str) -> bool {
        self.kind == kind && self.thing == *thing && self.what == what
    }

    /// The change with a place in the data.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// The change with a diff.
    #[must_use]
    pub fn with_diff<D: Into<DiffEntry>>(mut self, entries: impl IntoIterator<Item = D>) -> Self {
        self.diff = entries.into_iter().map(Into::into).collect();
        self
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} `{}`", self.kind.sign(), self.what, self.thing.name)?;
        self.thing.scope.write_in_parentheses(f)
    }
}

/// Notes what came of a change, in the list of those that are reported.
pub(crate) fn set_result(changes: &mut [Change], made: &Change, result: StepResult) {
    let is_it = |change: &Change| change.does_same(made.kind, &made.thing, &made.what);
    let open = changes.iter().position(|change| change.result.is_planned() && is_it(change));
    if let Some(place) = open.or_else(|| changes.iter().position(is_it)) {
        changes[place].result = result;
    }
}

/// What is executed as one.
#[derive(Debug)]
pub struct Step<A> {
    /// What it changes; never nothing.
    pub changes: Vec<Change>,
    /// What the room does.
    pub action: A,
}

impl<A> Step<A> {
    /// A step with one change.
    pub fn new(change: Change, action: A) -> Self {
        Self { changes: vec![change], action }
    }
}

/// The stages of a plan, in the order in which they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanStage {
    /// Writes, by number.
    Write(u32),
    /// What depends on everything that was written, such as restarts.
    AfterWrites,
    /// Removals, in the opposite order of writes.
    Remove(Reverse<u32>),
}

impl Default for PlanStage {
    fn default() -> Self {
        Self::Write(0)
    }
}

/// Steps in order. A failed step stops its own group only.
#[derive(Debug)]
pub struct Group<A> {
    /// What the group is about.
    pub name: String,
    /// When it is done: groups of earlier stages are finished before, groups of the same stage run concurrently.
    pub stage: PlanStage,
    /// The steps.
    pub steps: Vec<Step<A>>,
}

/// Something that is under way and needs time: what depends on it is planned when it is observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// What is waited for.
    pub text: String,
    /// Where in the data it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A change that is not made, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The change.
    pub change: Change,
    /// Why it is not made.
    pub why: String,
    /// What it waits for.
    pub hold: Hold,
}

/// What a change that is not made waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// A guard holds it until it is approved.
    Approval,
    /// It comes after a change that a guard holds.
    Predecessor,
    /// It is not held, but cannot be decided: its scope was not read, or something in it is unresolved. No approval releases it.
    Unresolved,
}

impl Hold {
    /// Whether a guard holds the change until something is approved.
    pub const fn is_held(self) -> bool {
        match self {
            Hold::Approval | Hold::Predecessor => true,
            Hold::Unresolved => false,
        }
    }
}

/// What would change.
#[derive(Debug)]
pub struct Plan<A> {
    /// Steps in groups.
    pub groups: Vec<Group<A>>,
    /// What is under way.
    pub waits: Vec<Wait>,
    /// What the room itself holds back.
    pub held: Vec<Held>,
    /// What is wrong with things of which the rest does not depend.
    pub faults: Vec<crate::fault::Fault>,
}

impl<A> Default for Plan<A> {
    fn default() -> Self {
        Self { groups: Vec::new(), waits: Vec::new(), held: Vec::new(), faults: Vec::new() }
    }
}

impl<A> Plan<A> {
    /// A group of its own for one step, in the first stage.
    pub fn step(&mut self, change: Change, action: A) {
        self.step_in(PlanStage::default(), change, action);
    }

    /// A group of its own for one step, in this stage.
    pub fn step_in(&mut self, stage: PlanStage, change: Change, action: A) {
        let name = change.thing.to_string();
        self.groups.push(Group { name, stage, steps: vec![Step::new(change, action)] });
    }

    /// Drops what things lose where the numbers depend on a secret.
    pub(crate) fn drop_secret_losses(&mut self) {
        let steps = self.groups.iter_mut().flat_map(|group| &mut group.steps);
        for change in steps.flat_map(|step| &mut step.changes) {
            change.loss = change.loss.filter(|loss| !loss.depends_on_secret);
        }
    }

    /// All changes, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.groups.iter().flat_map(|group| &group.steps).flat_map(|step| &step.changes)
    }

    /// Whether nothing would be done.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.steps.is_empty())
    }

    /// The same plan with other actions.
    pub fn map<B>(self, with: impl Fn(A) -> B) -> Plan<B> {
        let Self { groups, waits, held, faults } = self;
        let step = |step: Step<A>| Step { changes: step.changes, action: with(step.action) };
        let group = |Group { name, stage, steps }: Group<A>| Group {
            name,
            stage,
            steps: steps.into_iter().map(&step).collect(),
        };
        Plan { groups: groups.into_iter().map(group).collect(), waits, held, faults }
    }
}

#[cfg(test)]
mod tests {
    use super::StepResult::{self, Done, Failed, Planned};
    use super::{Change, ChangeKind, Thing, set_result};
    use crate::key::Scope;

    fn change(name: &str) -> Change {
        let thing =
            Thing { scope: Scope::new([("app", "a")]), kind: "card".to_owned(), name: name.to_owned() };
        Change::new(ChangeKind::Add, thing, "write card")
    }

    #[test]
    fn a_result_is_noted_at_the_change_it_is_about() {
        let check = |made: &[(&str, StepResult)], expect: [StepResult; 3]| {
            let mut changes = [change("a"), change("b").with_diff(vec!["+ x".to_owned()]), change("b")];
            for (name, result) in made {
                set_result(&mut changes, &change(name), *result);
            }
            assert_eq!(changes.map(|change| change.result), expect, "{made:?}");
        };
        check(&[], [Planned, Planned, Planned]);
        check(&[("a", Done)], [Done, Planned, Planned]);
        check(&[("b", Failed)], [Planned, Failed, Planned]);
        check(&[("b", Failed), ("b", Done)], [Planned, Failed, Done]);
        check(&[("a", Failed), ("a", Done)], [Done, Planned, Planned]);
        check(&[("c", Done)], [Planned, Planned, Planned]);
    }

    #[test]
    fn changes_are_the_same_whatever_came_of_them() {
        let done = Change { result: Done, ..change("a") };
        assert!(done.is_same(&change("a")));
        assert!(!done.is_same(&change("b")));
        assert!(!done.is_same(&change("a").with_diff(vec!["+ x".to_owned()])));
        assert!(!done.is_same(&Change { kind: ChangeKind::Remove, ..change("a") }));
        assert!(!done.is_same(&Change { what: "burn card".to_owned(), ..change("a") }));
    }
}

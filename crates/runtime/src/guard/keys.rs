//! Decides whether a change counts as a removal because the object loses fields.

use crate::field_diff::{DiffEntry, FieldChange, FieldDiff};
use crate::plan::{Change, FieldLoss};

/// Maximum number of lost fields that are named in a refusal.
const MAX_NAMED: usize = 5;

/// The limits at which a loss of keys counts as a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// The number of lost keys at which a change counts as a removal.
    pub count: usize,
    /// The percentage of lost keys at which a change counts as a removal.
    pub percent: usize,
    /// Whether a list that loses all of its items counts as a removal.
    pub lists: bool,
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self { count: 5, percent: 50, lists: true }
    }
}

impl KeyLimits {
    /// Whether a change with this loss counts as a removal.
    pub fn are_reached(self, loss: FieldLoss) -> bool {
        let FieldLoss { lost, of, lists, .. } = loss;
        let by_share = || lost.saturating_mul(100) >= of.saturating_mul(self.percent);
        self.lists && lists > 0 || lost > 0 && (lost >= self.count || by_share())
    }

    /// Whether a change counts as a removal.
    pub fn removes(self, change: &Change) -> bool {
        change.kind.removes() || change.loss.is_some_and(|loss| self.are_reached(loss))
    }
}

/// Describes the loss of the first change that counts as a removal only because of lost keys, if any.
pub fn describe_loss<'c>(changes: impl IntoIterator<Item = &'c Change>, limits: KeyLimits) -> Option<String> {
    let change = changes.into_iter().find(|change| !change.kind.removes() && limits.removes(change))?;
    let FieldLoss { lost, of, .. } = change.loss?;
    let removed = |entry: &DiffEntry| match entry {
        DiffEntry::Field(FieldDiff { change: FieldChange::Removed, path, .. }) => Some(format!("`{path}`")),
        DiffEntry::Field(_) | DiffEntry::Note(_) => None,
    };
    let mut fields: Vec<String> = change.diff.iter().filter_map(removed).collect();
    let more = fields.len().saturating_sub(MAX_NAMED);
    fields.truncate(MAX_NAMED);
    let mut names = fields.join(", ");
    if more > 0 {
        names.push_str(&format!(" and {more} more"));
    }
    let names = if names.is_empty() { names } else { format!(" ({names})") };
    Some(format!("it loses {lost} of {} keys{names}, which counts as a removal", of.max(lost)))
}

#[cfg(test)]
mod tests {
    use super::{KeyLimits, describe_loss};
    use crate::field_diff::{DiffEntry, FieldChange, FieldDiff};
    use crate::key::Scope;
    use crate::plan::{Change, ChangeKind, FieldLoss, ObjectKey};

    fn check(limits: KeyLimits, [lost, of, lists]: [usize; 3], expect: bool) {
        let loss = FieldLoss { lost, of, lists, depends_on_secret: false };
        assert_eq!(limits.are_reached(loss), expect, "{lost} of {of}, {lists} lists");
    }

    #[test]
    fn five_keys_half_of_them_or_a_list_count_as_a_removal() {
        let usual = KeyLimits::default();
        check(usual, [4, 100, 0], false);
        check(usual, [5, 100, 0], true);
        check(usual, [1, 2, 0], true);
        check(usual, [1, 3, 0], false);
        check(usual, [2, 5, 0], false);
        check(usual, [3, 6, 0], true);
        check(usual, [1, 1, 0], true);
        check(usual, [1, 100, 1], true);
        check(usual, [0, 0, 0], false);
        check(usual, [0, 10, 0], false);
    }

    #[test]
    fn the_limits_can_be_set() {
        let limits = KeyLimits { count: 3, percent: 101, lists: false };
        check(limits, [2, 2, 1], false);
        check(limits, [3, 100, 0], true);
        check(KeyLimits { count: 0, ..limits }, [0, 5, 0], false);
        check(KeyLimits { count: 0, ..limits }, [1, 500, 0], true);
        check(KeyLimits { percent: 0, ..limits }, [1, 500, 0], true);
    }

    fn change(kind: ChangeKind, paths: usize, loss: Option<FieldLoss>) -> Change {
        let object =
            ObjectKey { scope: Scope::new([("cluster", "c")]), kind: "A".to_owned(), name: "a".to_owned() };
        let field = |change: FieldChange, path: String| {
            DiffEntry::from(FieldDiff { change, path, before: None, after: None })
        };
        let fields = (0..paths).map(|number| field(FieldChange::Removed, format!("data.{number}")));
        let others = [field(FieldChange::Added, "data.new".to_owned()), DiffEntry::from("a note")];
        let mut change = Change::new(kind, object, "change").with_diff(fields.chain(others));
        change.loss = loss;
        change
    }

    #[test]
    fn a_refusal_names_the_lost_keys() {
        let lost = |lost: usize| Some(FieldLoss { lost, of: 8, lists: 0, depends_on_secret: false });
        let check = |change: Change, expect: Option<&str>| {
            assert_eq!(describe_loss(&[change], KeyLimits::default()).as_deref(), expect);
        };
        let names = "`data.0`, `data.1`, `data.2`, `data.3`, `data.4`";
        let few = format!("it loses 5 of 8 keys ({names}), which counts as a removal");
        check(change(ChangeKind::Change, 5, lost(5)), Some(&few));
        let many = format!("it loses 7 of 8 keys ({names} and 2 more), which counts as a removal");
        check(change(ChangeKind::Change, 7, lost(7)), Some(&many));
        let nameless = "it loses 9 of 9 keys, which counts as a removal";
        check(change(ChangeKind::Change, 0, lost(9)), Some(nameless));
        check(change(ChangeKind::Change, 3, lost(3)), None);
        check(change(ChangeKind::Replace, 5, lost(5)), None);
        check(change(ChangeKind::Remove, 0, None), None);
    }
}

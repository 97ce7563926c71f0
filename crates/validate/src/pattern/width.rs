//! The width of parts of a pattern in characters. Look-behinds need a fixed width.

use super::syntax::{PatternItem, Sequence};

/// The minimum and maximum number of characters that a part of a pattern matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternWidth {
    min: u64,
    max: u64,
}

impl PatternWidth {
    const ZERO: Self = Self { min: 0, max: 0 };
    const ONE: Self = Self { min: 1, max: 1 };
    /// Any number of characters.
    pub const ANY: Self = Self { min: 0, max: u64::MAX };

    /// Whether the part matches only the empty text.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Whether all matches have the same number of characters.
    pub fn is_fixed(self) -> bool {
        self.min == self.max
    }

    /// The width of an alternative of the two parts.
    fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The width of one part followed by the other.
    fn then(self, next: Self) -> Self {
        Self { min: self.min.saturating_add(next.min), max: self.max.saturating_add(next.max) }
    }
}

/// The width of alternatives; `groups` are the widths of closed groups.
pub fn of(branches: &[Sequence], groups: &[Option<PatternWidth>]) -> PatternWidth {
    branches.iter().map(|items| sequence(items, groups)).reduce(PatternWidth::or).unwrap_or_default()
}

fn sequence(items: &[PatternItem], groups: &[Option<PatternWidth>]) -> PatternWidth {
    items.iter().fold(PatternWidth::ZERO, |width, item| width.then(item_width(item, groups)))
}

fn item_width(item: &PatternItem, groups: &[Option<PatternWidth>]) -> PatternWidth {
    match item {
        PatternItem::Literal(_) | PatternItem::Any | PatternItem::Set(_) => PatternWidth::ONE,
        PatternItem::Anchor(_) | PatternItem::LookAround(_) => PatternWidth::ZERO,
        PatternItem::Repeat(repeat) => {
            let item = sequence(&repeat.items, groups);
            let max = match repeat.max {
                None if item.max > 0 => u64::MAX,
                None => 0,
                Some(most) => item.max.saturating_mul(most.into()),
            };
            PatternWidth { min: item.min.saturating_mul(repeat.min.into()), max }
        }
        PatternItem::Group(group) => of(&group.branches, groups),
        PatternItem::Atomic(branches) => of(branches, groups),
        PatternItem::Backreference(number) => groups.get(*number).copied().flatten().unwrap_or_default(),
        PatternItem::Conditional { yes, no, .. } => {
            let no = no.as_ref().map_or(PatternWidth::ZERO, |no| sequence(no, groups));
            sequence(yes, groups).or(no)
        }
    }
}

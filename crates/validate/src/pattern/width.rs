//! The width of parts of a pattern in characters: look-behinds need a fixed one.

use super::syntax::{PatternItem, Sequence};

/// The minimum and maximum width of alternatives; `groups` are the widths of closed groups.
pub fn of(branches: &[Sequence], groups: &[Option<(u64, u64)>]) -> (u64, u64) {
    let widths = branches.iter().map(|items| sequence(items, groups));
    widths.reduce(|(least, most), (low, high)| (least.min(low), most.max(high))).unwrap_or_default()
}

fn sequence(items: &[PatternItem], groups: &[Option<(u64, u64)>]) -> (u64, u64) {
    items.iter().fold((0, 0), |(least, most), item| {
        let (low, high) = item_width(item, groups);
        (least.saturating_add(low), most.saturating_add(high))
    })
}

fn item_width(item: &PatternItem, groups: &[Option<(u64, u64)>]) -> (u64, u64) {
    match item {
        PatternItem::Literal(_) | PatternItem::Any | PatternItem::Set(_) => (1, 1),
        PatternItem::Anchor(_) | PatternItem::LookAround(_) => (0, 0),
        PatternItem::Repeat(repeat) => {
            let (low, high) = sequence(&repeat.items, groups);
            let most = match repeat.max {
                None if high > 0 => u64::MAX,
                None => 0,
                Some(most) => high.saturating_mul(most.into()),
            };
            (low.saturating_mul(repeat.min.into()), most)
        }
        PatternItem::Group(group) => of(&group.branches, groups),
        PatternItem::Atomic(branches) => of(branches, groups),
        PatternItem::Backreference(number) => groups.get(*number).copied().flatten().unwrap_or_default(),
        PatternItem::Conditional { yes, no, .. } => {
            let (low, high) = sequence(yes, groups);
            match no {
                None => (0, high),
                Some(no) => {
                    let (other_low, other_high) = sequence(no, groups);
                    (low.min(other_low), high.max(other_high))
                }
            }
        }
    }
}

//! A conflict between fields, and its message.

use crate::document::syntax::tree::{Literal, Name, Value};
use crate::document::syntax::{block_text, string_text};

/// Maximum length of a reason; longer reasons are truncated.
const MAX_REASON_LEN: usize = 1_000;
/// Maximum number of locations per side.
const MAX_LOCATIONS: usize = 20;

/// Two fields that cannot share a response name.
pub struct Conflict<'t> {
    name: &'t str,
    reason: String,
    /// Per field, its offset and the offsets of the fields in it.
    sides: [Vec<usize>; 2],
}

impl<'t> Conflict<'t> {
    pub fn new(name: &'t str, reason: String, one: usize, other: usize) -> Self {
        Self { name, reason, sides: [vec![one], vec![other]] }
    }

    /// The conflict that results from conflicts of the subfields.
    pub fn of_inner(name: &'t str, one: usize, other: usize, inner: &[Conflict<'_>]) -> Option<Self> {
        if inner.is_empty() {
            return None;
        }
        let mut reason = String::new();
        for Conflict { name, reason: why, .. } in inner {
            let and = if reason.is_empty() { "" } else { " and " };
            reason += &format!("{and}subfields \"{}\" conflict because {why}", abbreviated(name));
            if reason.len() > MAX_REASON_LEN {
                break;
            }
        }
        let mut sides = [vec![one], vec![other]];
        for (side, places) in sides.iter_mut().enumerate() {
            for conflict in inner {
                let offsets = &conflict.sides[side];
                let left = MAX_LOCATIONS - places.len();
                // The innermost offsets come last.
                places.extend(&offsets[offsets.len().saturating_sub(left)..]);
                if places.len() == MAX_LOCATIONS {
                    break;
                }
            }
        }
        Some(Self { name, reason: abbreviated(&reason), sides })
    }

    /// The message and the offsets.
    pub fn into_message(self) -> (String, Vec<usize>) {
        let Self { name, reason, sides: [one, other] } = self;
        let name = abbreviated(name);
        let advice = "Use different aliases on the fields to fetch both if this was intentional.";
        let message = format!("Fields \"{name}\" conflict because {reason}. {advice}");
        (message, [one, other].concat())
    }
}

/// Truncates a string to the maximum length. The string consists of names, so it is ASCII.
pub fn abbreviated(text: &str) -> String {
    match text.get(..MAX_REASON_LEN) {
        Some(start) if text.len() > MAX_REASON_LEN => format!("{start}..."),
        _ => text.to_owned(),
    }
}

/// Whether two values are equal, except for the order of keys.
pub fn same_value(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (&one.literal, &other.literal) {
        (Literal::Variable(one), Literal::Variable(other))
        | (Literal::Int(one), Literal::Int(other))
        | (Literal::Float(one), Literal::Float(other))
        | (Literal::Enum(one), Literal::Enum(other)) => one == other,
        (Literal::String(one), Literal::String(other)) => {
            one == other || string_text(one) == string_text(other)
        }
        (Literal::Block(one), Literal::Block(other)) => one == other || block_text(one) == block_text(other),
        (Literal::Boolean(one), Literal::Boolean(other)) => one == other,
        (Literal::Null, Literal::Null) => true,
        (Literal::List(one), Literal::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        (Literal::Object(one), Literal::Object(other)) => {
            let (one, other) = (sorted(one), sorted(other));
            one.len() == other.len()
                && one.iter().zip(&other).all(|((one_name, one), (other_name, other))| {
                    one_name == other_name && same_value(one, other)
                })
        }
        _ => false,
    }
}

fn sorted<'v, 't>(fields: &'v [(Name<'t>, Value<'t>)]) -> Vec<(&'t str, &'v Value<'t>)> {
    let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.text, value)).collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

//! What went wrong, and whose move it is.

use serde::{Deserialize, Serialize};

use crate::place::Place;

/// Whose move it is. Exit code and metric label follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// The author of the data.
    Author,
    /// The operator of the platform.
    Operator,
    /// The target system: it may work the next time.
    Remote,
    /// A guard wants an approval.
    Guard,
    /// Ours: a defect.
    Us,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{text}")]
pub struct Fault {
    /// Whose move it is.
    pub whose: Whose,
    /// What went wrong, in words.
    pub text: String,
    /// More of it, line by line: what a tool said, lines that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where in the data, if that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Whether it is known that nothing was done, where something was to be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_undone: bool,
    /// Whether it was abandoned because of a shutdown: what was to be done may be done in part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
}

impl Fault {
    fn new(whose: Whose, text: impl Into<String>) -> Self {
        Self {
            whose,
            text: text.into(),
            details: Vec::new(),
            hint: None,
            places: Vec::new(),
            is_undone: false,
            is_interrupted: false,
        }
    }

    /// Something was abandoned because of a shutdown.
    pub fn interrupted(text: impl Into<String>) -> Self {
        Self { is_interrupted: true, ..Self::remote(text) }
    }

    /// The author of the data has to mend it.
    pub fn author(text: impl Into<String>) -> Self {
        Self::new(Whose::Author, text)
    }

    /// The operator has to mend it.
    pub fn operator(text: impl Into<String>) -> Self {
        Self::new(Whose::Operator, text)
    }

    /// The target failed; it may work the next time.
    pub fn remote(text: impl Into<String>) -> Self {
        Self::new(Whose::Remote, text)
    }

    /// A guard wants an approval.
    pub fn guard(text: impl Into<String>) -> Self {
        Self::new(Whose::Guard, text)
    }

    /// A defect of ours.
    pub fn us(text: impl Into<String>) -> Self {
        Self::new(Whose::Us, text)
    }

    /// The fault with a place, if there is one.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<Place>>) -> Self {
        self.places.extend(place.into());
        self
    }

    /// The fault with the lines of a text below it.
    #[must_use]
    pub fn details(mut self, text: &str) -> Self {
        self.details.extend(text.lines().map(str::to_owned));
        self
    }

    /// The fault with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The fault with words in front that say what was being done.
    #[must_use]
    pub fn while_doing(mut self, what: &str) -> Self {
        self.text = format!("{what}: {}", self.text);
        self
    }

    /// The fault of something that is known not to be done, in no part.
    #[must_use]
    pub fn undone(mut self) -> Self {
        self.is_undone = true;
        self
    }

    /// Whether it may work the next time.
    pub fn is_transient(&self) -> bool {
        self.whose == Whose::Remote
    }
}

/// The fault of something of a room's own that panicked.
pub(crate) fn panicked(what: &str, panic: &(dyn std::any::Any + Send)) -> Fault {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Fault::us(format!("`{what}` panicked: {text}"))
}

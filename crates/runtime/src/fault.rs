//! Faults: error messages with the party that has to act.

use serde::{Deserialize, Serialize};

use crate::key::Scope;
use crate::source_location::SourceLocation;

/// The party that has to act on a fault, which determines the exit code and the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Responsible {
    /// The author of the data.
    Author,
    /// The operator of the platform.
    Operator,
    /// The target system; a retry may succeed.
    Remote,
    /// A guard that requires an approval.
    Guard,
    /// The developers, because the fault is a defect of this program.
    Us,
}

impl Responsible {
    /// All parties.
    pub const ALL: [Self; 5] = [Self::Author, Self::Operator, Self::Remote, Self::Guard, Self::Us];

    /// The party in one word, as in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Operator => "operator",
            Self::Remote => "remote",
            Self::Guard => "guard",
            Self::Us => "us",
        }
    }
}

/// A failure, with the party that has to act.
///
/// ```
/// use qontract_runtime::{Fault, Responsible, SourceLocation};
///
/// let fault = Fault::author("the name `Shop` is not lowercase")
///     .hint("write `shop`")
///     .at(SourceLocation::datafile("/apps/shop.yml", "/name"));
/// assert_eq!((fault.whose, fault.is_transient()), (Responsible::Author, false));
///
/// let fault = Fault::remote("timed out").while_doing("list groups");
/// assert_eq!(fault.to_string(), "list groups: timed out");
/// assert!(fault.is_transient(), "a retry may succeed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{text}")]
pub struct Fault {
    /// The party that has to act.
    pub whose: Responsible,
    /// The message about the failure.
    pub text: String,
    /// Details, one line each: the output of a tool, or lines that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// A hint on how to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The cause, without the scope that could not be read or the change that failed. Faults of several scopes or
    /// changes can have equal causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<str>>,
    /// The known source locations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<SourceLocation>,
    /// Whether the failed operation certainly had no effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_undone: bool,
    /// Whether the operation was abandoned because of a shutdown; it may be partially applied.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
}

impl Fault {
    fn new(whose: Responsible, text: impl Into<String>) -> Self {
        Self {
            whose,
            text: text.into(),
            details: Vec::new(),
            hint: None,
            cause: None,
            places: Vec::new(),
            is_undone: false,
            is_interrupted: false,
        }
    }

    /// Creates the fault of an operation that was abandoned because of a shutdown.
    pub fn interrupted(text: impl Into<String>) -> Self {
        Self { is_interrupted: true, ..Self::remote(text) }
    }

    /// Creates a fault that the author of the data has to fix.
    pub fn author(text: impl Into<String>) -> Self {
        Self::new(Responsible::Author, text)
    }

    /// Creates a fault that the operator has to fix.
    pub fn operator(text: impl Into<String>) -> Self {
        Self::new(Responsible::Operator, text)
    }

    /// Creates the fault of a transient failure of a target.
    pub fn remote(text: impl Into<String>) -> Self {
        Self::new(Responsible::Remote, text)
    }

    /// Creates the fault of a guard that requires an approval.
    pub fn guard(text: impl Into<String>) -> Self {
        Self::new(Responsible::Guard, text)
    }

    /// Creates the fault of a defect in this program.
    pub fn internal(text: impl Into<String>) -> Self {
        Self::new(Responsible::Us, text)
    }

    /// Adds a source location, if it is known.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<SourceLocation>>) -> Self {
        self.places.extend(place.into());
        self
    }

    /// Adds the lines of a string as details.
    #[must_use]
    pub fn details(mut self, text: &str) -> Self {
        self.details.extend(text.lines().map(str::to_owned));
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prefixes the message with the operation that failed.
    #[must_use]
    pub fn while_doing(mut self, what: &str) -> Self {
        self.text = format!("{what}: {}", self.text);
        self
    }

    /// Sets the cause. Faults of several changes can have equal causes, although their messages differ.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into().into());
        self
    }

    /// Prefixes the message with the scope that could not be read.
    #[must_use]
    pub fn while_reading(mut self, scope: &Scope) -> Self {
        self.cause = Some(self.text.as_str().into());
        self.while_doing(&format!("cannot read `{scope}`"))
    }

    /// Records that the failed operation had no effect.
    #[must_use]
    pub fn undone(mut self) -> Self {
        self.is_undone = true;
        self
    }

    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        self.whose == Responsible::Remote
    }
}

/// The fault of a phase that panicked.
pub(crate) fn panic_fault(what: &str, panic: &(dyn std::any::Any + Send)) -> Fault {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Fault::internal(format!("`{what}` panicked: {text}"))
}

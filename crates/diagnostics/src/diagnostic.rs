//! One finding.

use crate::code::Code;
use crate::place::{Place, Span};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The data cannot be used as it is.
    Error,
    /// The data can be used, but is probably not what was meant.
    Warning,
}

impl Severity {
    /// The word that stands before the code.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// Something else worth knowing about a finding, optionally at another place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// What to know, one sentence.
    pub text: String,
    /// Where, if it is somewhere else than the finding itself.
    pub place: Option<Place>,
}

/// A finding about data: what, where, why, and what to do.
///
/// ```
/// use qontract_diagnostics::{Diagnostic, Span, code};
/// let finding = Diagnostic::new(code::YAML_SYNTAX, "expected `:`")
///     .at(Span::new(3, 4))
///     .in_file("data/apps/billing.yml")
///     .hint("add the missing colon");
/// assert_eq!(finding.code.to_string(), "Q1001");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which kind of mistake; `qontract explain CODE` tells more.
    pub code: Code,
    /// How bad it is: the code's own severity, unless the finding is worse or less bad than others of its code.
    pub severity: Severity,
    /// One line: what is wrong. Lower case, no full stop, values in backticks.
    pub message: String,
    /// A few words under the marked text.
    pub label: String,
    /// Where it is.
    pub place: Place,
    /// More to know.
    pub notes: Vec<Note>,
    /// What to do.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A finding without a place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.entry().severity,
            message: message.into(),
            label: String::new(),
            place: Place::default(),
            notes: Vec::new(),
            hint: None,
        }
    }

    /// The same finding at these bytes.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.place.span = Some(span);
        self
    }

    /// The same finding in this file; a note at another span of the same file gets the name too.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.place.file = file.into();
        for note in &mut self.notes {
            if let Some(place) = &mut note.place
                && place.file.is_empty()
            {
                place.file.clone_from(&self.place.file);
            }
        }
        self
    }

    /// The same finding about the value at this JSON pointer.
    #[must_use]
    pub fn about(mut self, pointer: impl Into<String>) -> Self {
        self.place.pointer = Some(pointer.into());
        self
    }

    /// The same finding with words under the marked text.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same finding with a note.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(Note { text: text.into(), place: None });
        self
    }

    /// The same finding with a note at another place of the same file.
    #[must_use]
    pub fn note_at(mut self, text: impl Into<String>, span: Span) -> Self {
        let place = Place { span: Some(span), ..Place::default() };
        self.notes.push(Note { text: text.into(), place: Some(place) });
        self
    }

    /// The same finding with a note at any place.
    #[must_use]
    pub fn note_in(mut self, text: impl Into<String>, place: Place) -> Self {
        self.notes.push(Note { text: text.into(), place: Some(place) });
        self
    }

    /// The same finding with a way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the data cannot be used as it is.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

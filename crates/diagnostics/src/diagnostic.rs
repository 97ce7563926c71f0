//! A finding: one mistake in the data.

use crate::code::Code;
use crate::location::{DiagnosticLocation, Span};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The data cannot be used.
    Error,
    /// The data can be used, but is probably a mistake.
    Warning,
}

impl Severity {
    /// The word before the code in messages: `error` or `warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// Additional information about a finding, optionally at another location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The information, one sentence.
    pub text: String,
    /// The location, if it is not that of the finding.
    pub location: Option<DiagnosticLocation>,
}

/// A finding about data: what is wrong, where, why, and how to fix it.
///
/// ```
/// use qontract_diagnostics::{Diagnostic, Span, code};
/// let finding = Diagnostic::new(code::YAML_SYNTAX, "expected `:`")
/// .at(Span::new(3, 4))
/// .in_file("data/apps/billing.yml")
/// .hint("add the missing colon");
/// assert_eq!(finding.code.to_string(), "Q1001");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of mistake; `qontract explain CODE` explains it.
    pub code: Code,
    /// The severity, by default that of the code.
    pub severity: Severity,
    /// A description of the mistake, on one line: lower case, no full stop, values in backticks.
    pub message: String,
    /// A short label below the marked text.
    pub label: String,
    /// The location.
    pub location: DiagnosticLocation,
    /// Additional information.
    pub notes: Vec<Note>,
    /// How to fix the mistake.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Creates a finding without a location.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.entry().severity,
            message: message.into(),
            label: String::new(),
            location: DiagnosticLocation::default(),
            notes: Vec::new(),
            hint: None,
        }
    }

    /// Sets the span.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.location.span = Some(span);
        self
    }

    /// Sets the file of the finding, and of notes at another span of the same file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.location.file = file.into();
        for note in &mut self.notes {
            if let Some(place) = &mut note.location
                && place.file.is_empty()
            {
                place.file.clone_from(&self.location.file);
            }
        }
        self
    }

    /// Sets the JSON pointer of the value.
    #[must_use]
    pub fn at_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.location.pointer = Some(pointer.into());
        self
    }

    /// Sets the label below the marked text.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(Note { text: text.into(), location: None });
        self
    }

    /// Adds a note at another span of the same file.
    #[must_use]
    pub fn note_at(mut self, text: impl Into<String>, span: Span) -> Self {
        let place = DiagnosticLocation { span: Some(span), ..DiagnosticLocation::default() };
        self.notes.push(Note { text: text.into(), location: Some(place) });
        self
    }

    /// Adds a note at any location.
    #[must_use]
    pub fn note_in(mut self, text: impl Into<String>, place: DiagnosticLocation) -> Self {
        self.notes.push(Note { text: text.into(), location: Some(place) });
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the severity is [`Severity::Error`].
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

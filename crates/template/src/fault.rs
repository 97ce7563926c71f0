//! Faults: the reasons why a template was not rendered.

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The template has a syntax error, which Jinja2 also reports.
    Syntax,
    /// A variable, attribute or function is undefined.
    Undefined,
    /// An operation fails, as it does in Jinja2.
    Failed,
    /// The template raised the fault: `{% raise_error "…" %}`.
    Raised,
    /// Jinja2 may render the template, but the same output cannot be guaranteed here, so it is refused.
    Refused,
    /// A limit was exceeded.
    Limit,
    /// An external lookup failed.
    Lookup,
}

/// The reason why a template was not rendered. **Invariant:** after a secret was looked up, neither the
/// message nor the line depends on the rest of the rendering
/// (`after_a_secret_was_read_every_fault_reads_the_same`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}: {message}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct TemplateFault {
    /// The path of the template, as given by the caller.
    pub path: String,
    /// The line in the template, counted from 1; `None` after a secret was looked up.
    pub line: Option<usize>,
    /// The kind of the fault.
    pub kind: Kind,
    /// The message, in lower case, with values in backticks.
    pub message: String,
}

/// An evaluation error, before the path of the template is added.
#[derive(Debug, Clone)]
pub(crate) struct EvalError {
    pub kind: Kind,
    pub message: String,
    pub line: Option<usize>,
}

pub(crate) type EvalResult<T> = Result<T, Box<EvalError>>;

#[expect(clippy::unnecessary_box_returns, reason = "every result boxes it")]
impl EvalError {
    pub fn new(kind: Kind, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, message: message.into(), line: None })
    }

    pub fn at(kind: Kind, line: usize, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, message: message.into(), line: Some(line) })
    }

    pub fn into_fault(self, path: &str, line: usize) -> TemplateFault {
        TemplateFault {
            path: path.to_owned(),
            line: Some(self.line.unwrap_or(line)),
            kind: self.kind,
            message: self.message,
        }
    }
}

/// The error for an operation that also fails in Jinja2.
pub(crate) fn failed<T>(message: impl Into<String>) -> EvalResult<T> {
    Err(EvalError::new(Kind::Failed, message))
}

/// The error for an operation whose output may differ from that of Jinja2.
pub(crate) fn refused<T>(message: impl Into<String>) -> EvalResult<T> {
    let message: String = message.into();
    Err(EvalError::new(Kind::Refused, format!("not supported: {message}")))
}

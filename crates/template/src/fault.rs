//! Why a template was not rendered: what, where, and whose move it is.

/// What kind of trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The text is no template: Jinja2 does not read it either.
    Syntax,
    /// A variable, attribute or function that is not there was used.
    Undefined,
    /// An operation fails, as it does in Jinja2.
    Failed,
    /// The template itself asked for it: `{% raise_error "…" %}`.
    Raised,
    /// Jinja2 may render it; here it cannot be made equal, so it is not rendered at all.
    Refused,
    /// It asked for more than the limits allow.
    Limit,
    /// Something outside could not be looked up.
    LookUp,
}

/// A template that was not rendered. **Invariant:** once a secret was looked up, neither the message nor the line depends on
/// what the template does next (`after_a_secret_was_read_every_fault_reads_the_same`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}: {message}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct Fault {
    /// The template's path, as the caller named it.
    pub path: String,
    /// The line in it, counted from 1; none after a secret was looked up.
    pub line: Option<usize>,
    /// What kind of trouble it is.
    pub kind: Kind,
    /// What it is, in lower case, values in backticks.
    pub message: String,
}

/// A fault that does not know its place yet.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub kind: Kind,
    pub message: String,
    pub line: Option<usize>,
}

pub(crate) type Outcome<T> = Result<T, Box<Trouble>>;

#[expect(clippy::unnecessary_box_returns, reason = "it travels boxed in every outcome")]
impl Trouble {
    pub fn new(kind: Kind, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, message: message.into(), line: None })
    }

    pub fn at(kind: Kind, line: usize, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, message: message.into(), line: Some(line) })
    }

    pub fn placed(self, path: &str, line: usize) -> Fault {
        Fault {
            path: path.to_owned(),
            line: Some(self.line.unwrap_or(line)),
            kind: self.kind,
            message: self.message,
        }
    }
}

/// Fails as Jinja2 does.
pub(crate) fn failed<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Trouble::new(Kind::Failed, message))
}

/// Refuses what cannot be made equal.
pub(crate) fn refused<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Trouble::new(Kind::Refused, message))
}

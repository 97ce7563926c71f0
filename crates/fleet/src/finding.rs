//! Findings about the deployment of an integration, located relative to its entry in `managed`.

use std::fmt;

/// Whether a finding prevents a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// The setting has no effect.
    Warning,
    /// The deployment, or the shard, is left as it is.
    Error,
}

/// A finding about the deployment of an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the finding prevents the deployment.
    pub level: FindingLevel,
    /// The message.
    pub text: String,
    /// The JSON pointer to the value below the entry of `managed`.
    pub pointer: String,
    /// A hint on how to fix it.
    pub hint: Option<String>,
}

impl Finding {
    /// A finding that prevents a deployment.
    pub fn error(pointer: impl Into<String>, text: impl Into<String>) -> Self {
        Self { level: FindingLevel::Error, text: text.into(), pointer: pointer.into(), hint: None }
    }

    /// A finding about a setting without effect.
    pub fn warning(pointer: impl Into<String>, text: impl Into<String>) -> Self {
        Self { level: FindingLevel::Warning, ..Self::error(pointer, text) }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the finding prevents the deployment.
    pub fn is_error(&self) -> bool {
        self.level == FindingLevel::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

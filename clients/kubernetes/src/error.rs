//! Errors of cluster operations.

use std::fmt;

use qontract_diagnostics::error_chain;

use crate::fields::without_keys;

/// Another manager that owns fields that the write would set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConflictingManager {
    /// The manager.
    pub manager: String,
    /// The fields, in backticks.
    pub fields: Vec<String>,
    /// The declared fields that these fields exclude, if the conflict is an exclusion.
    pub excludes: Option<ExcludedFields>,
}

/// Declared fields that fields of another manager exclude: the API server rejects an object with both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExcludedFields {
    /// The names of the declared fields, in backticks.
    pub declared: Vec<String>,
    /// The command that removes the fields of the other manager; `None` if it must not be shown.
    pub removal: Option<String>,
}

impl ConflictingManager {
    /// Omits the keys of maps with free-form keys, which may be secret.
    #[must_use]
    pub fn without_keys(mut self) -> Self {
        let fields = self.fields.iter();
        self.fields = fields.map(|field| format!("`{}`", without_keys(field.trim_matches('`')))).collect();
        self.fields.dedup();
        if let Some(excludes) = &mut self.excludes {
            excludes.removal = None;
        }
        self
    }
}

impl fmt::Display for ConflictingManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` owns {}", self.manager, self.fields.join(", "))?;
        let Some(ExcludedFields { declared, .. }) = &self.excludes else { return Ok(()) };
        let verb = if self.fields.len() == 1 { "excludes" } else { "exclude" };
        write!(f, ", which {verb} the declared {}", declared.join(", "))
    }
}

/// An error of a cluster operation.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// The cluster cannot be reached, or does not respond in time.
    #[error("cannot reach cluster `{cluster}`: {error}")]
    Unreachable {
        /// The cluster.
        cluster: String,
        /// The cause.
        error: qontract_client_http::HttpError,
    },
    /// There are no usable credentials for the cluster.
    #[error("cannot log in to the cluster `{cluster}`: {why}")]
    Credentials {
        /// The cluster.
        cluster: String,
        /// The reason.
        why: String,
        /// Whether a retry may help, because the secret store cannot be reached.
        transient: bool,
    },
    /// The settings of the cluster cannot be used.
    #[error("cluster `{cluster}` is not configured correctly: {why}")]
    Settings {
        /// The cluster.
        cluster: String,
        /// The reason, with the key of the configuration.
        why: String,
    },
    /// The cluster denies access.
    #[error("the cluster `{cluster}` denies access: {why}")]
    Denied {
        /// The cluster.
        cluster: String,
        /// The message of the server.
        why: String,
    },
    /// The cluster does not serve this kind, or does not serve it in this version.
    #[error("the cluster `{cluster}` does not serve {kind}{instead}")]
    Unserved {
        /// The cluster.
        cluster: String,
        /// The kind; with its version, if only the version is not served.
        kind: String,
        /// The served alternatives, as a continuation of the message; empty if there are none.
        instead: String,
    },
    /// Several groups have a kind of this name.
    #[error("{kind} is in several groups of the cluster `{cluster}`: {}; name one, as in `{kind}.{}`", groups.join(", "), groups.first().map_or("", String::as_str))]
    Ambiguous {
        /// The cluster.
        cluster: String,
        /// The kind.
        kind: String,
        /// The groups.
        groups: Vec<String>,
    },
    /// The object changed since the step was planned.
    #[error("{object} changed since it was read")]
    Stale {
        /// The object.
        object: String,
    },
    /// Other managers own fields that the write would set.
    #[error("{object} conflicts with other managers: {}", conflicts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Conflict {
        /// The object.
        object: String,
        /// The managers.
        conflicts: Vec<ConflictingManager>,
    },
    /// The namespace of the object does not exist, or is being deleted.
    #[error("{object} cannot be written: {what} is not available")]
    NamespaceMissing {
        /// The object.
        object: String,
        /// The missing namespace, for the message.
        what: String,
    },
    /// An object to replace was not removed in time.
    #[error("{object} still exists{by}")]
    RemovalPending {
        /// The object.
        object: String,
        /// The finalizers that block the removal, as a continuation of the message; may be empty.
        by: String,
    },
    /// The cluster rejects the object.
    #[error("the cluster `{cluster}` rejects {object}: {why}")]
    Invalid {
        /// The cluster.
        cluster: String,
        /// The object.
        object: String,
        /// The message of the server; without values if the object is secret.
        why: String,
    },
    /// The cluster failed.
    #[error("cluster `{cluster}` responded with HTTP {status}: {why}")]
    Failed {
        /// The cluster.
        cluster: String,
        /// The status.
        status: u16,
        /// The message of the server.
        why: String,
    },
    /// The operation is not supported.
    #[error("{what} is not supported by {by}")]
    Unsupported {
        /// The operation.
        what: String,
        /// The component that does not support the operation.
        by: &'static str,
    },
    /// A name is not valid.
    #[error("`{name}` is not a valid name")]
    Name {
        /// The name.
        name: String,
    },
    /// A response or file is not a valid object.
    #[error("{object} cannot be read: {why}")]
    Malformed {
        /// The object.
        object: String,
        /// The reason.
        why: String,
    },
    /// An I/O error of the sandbox.
    #[error("cannot {what}")]
    File {
        /// The operation.
        what: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl KubernetesError {
    /// Whether a retry may succeed without intervention.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Credentials { transient, .. } => *transient,
            Self::Unreachable { error, .. } => error.is_transient(),
            Self::Stale { .. }
            | Self::NamespaceMissing { .. }
            | Self::RemovalPending { .. }
            | Self::File { .. } => true,
            Self::Failed { status, .. } => *status >= 500 || *status == 429,
            Self::Settings { .. }
            | Self::Denied { .. }
            | Self::Unserved { .. }
            | Self::Ambiguous { .. }
            | Self::Conflict { .. }
            | Self::Invalid { .. }
            | Self::Unsupported { .. }
            | Self::Name { .. }
            | Self::Malformed { .. } => false,
        }
    }

    /// The message with its causes.
    pub fn full_message(&self) -> String {
        error_chain(self)
    }
}

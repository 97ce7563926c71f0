//! Why a cluster did not do what was asked.

use std::fmt;

/// Somebody else who owns fields that we want to set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contender {
    /// The manager.
    pub manager: String,
    /// The fields.
    pub fields: Vec<String>,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` owns {}", self.manager, self.fields.join(", "))
    }
}

/// Why a cluster did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// The cluster cannot be reached, or does not answer in time.
    #[error("cannot reach cluster `{cluster}`: {error}")]
    Unreachable {
        /// The cluster.
        cluster: String,
        /// Why.
        error: qontract_client_http::HttpError,
    },
    /// There is nothing to log in with.
    #[error("cannot log in to the cluster `{cluster}`: {why}")]
    Credentials {
        /// The cluster.
        cluster: String,
        /// Why.
        why: String,
        /// Whether another try may help: the store of the token cannot be reached.
        transient: bool,
    },
    /// The cluster knows us, and does not let us.
    #[error("the cluster `{cluster}` does not allow it: {why}")]
    Denied {
        /// The cluster.
        cluster: String,
        /// What it says.
        why: String,
    },
    /// The cluster does not serve this kind, or not in this version.
    #[error("the cluster `{cluster}` does not serve {kind}{instead}")]
    Unserved {
        /// The cluster.
        cluster: String,
        /// The kind, with its version if that is what is missing.
        kind: String,
        /// What it serves instead, in words that go on; empty if nothing.
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
    /// The object is not as it was when this was planned.
    #[error("{object} changed since it was read")]
    Stale {
        /// The object.
        object: String,
    },
    /// Others own fields that we want to set.
    #[error("{object} is managed by others, too: {}", contenders.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Conflict {
        /// The object.
        object: String,
        /// Who.
        contenders: Vec<Contender>,
    },
    /// What it is to be in is not there.
    #[error("{object} has no place: {what} is not there")]
    Homeless {
        /// The object.
        object: String,
        /// What is missing.
        what: String,
    },
    /// The object that is to be replaced is not gone in time.
    #[error("{object} is not gone yet{by}")]
    Held {
        /// The object.
        object: String,
        /// What holds it, in words that go on; empty if nobody knows.
        by: String,
    },
    /// The cluster does not take the object.
    #[error("the cluster `{cluster}` does not take {object}: {why}")]
    Invalid {
        /// The cluster.
        cluster: String,
        /// The object.
        object: String,
        /// What it says; without values, if the object is secret.
        why: String,
    },
    /// The cluster failed.
    #[error("cluster `{cluster}` answered HTTP {status}: {why}")]
    Failed {
        /// The cluster.
        cluster: String,
        /// The status.
        status: u16,
        /// What it says.
        why: String,
    },
    /// The cluster does not know this, or we do not.
    #[error("{what} is not supported by {by}")]
    Unsupported {
        /// What was asked.
        what: String,
        /// Who cannot do it.
        by: &'static str,
    },
    /// A name that cannot be one.
    #[error("`{name}` cannot be a name")]
    Name {
        /// The name.
        name: String,
    },
    /// What the cluster has is not what an object looks like.
    #[error("{object} cannot be read: {why}")]
    Malformed {
        /// The object.
        object: String,
        /// Why.
        why: String,
    },
    /// A file of the sandbox.
    #[error("cannot {what}")]
    File {
        /// What was being done.
        what: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

impl KubernetesError {
    /// Whether it may work the next time without anybody's doing.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Credentials { transient, .. } => *transient,
            Self::Unreachable { error, .. } => error.is_transient(),
            Self::Stale { .. } | Self::Homeless { .. } | Self::Held { .. } | Self::File { .. } => true,
            Self::Failed { status, .. } => *status >= 500 || *status == 429,
            Self::Denied { .. }
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
    pub fn told(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

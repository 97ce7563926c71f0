//! Why a cluster did not do what was asked.

/// Why a cluster did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// The cluster does not know this, or we do not.
    #[error("{what} is not supported by {by}")]
    Unsupported {
        /// What was asked.
        what: String,
        /// Who cannot do it.
        by: &'static str,
    },
    /// The object is not as it was when this was planned.
    #[error("{object} changed since it was read")]
    Stale {
        /// The object.
        object: String,
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
            Self::Stale { .. } | Self::File { .. } => true,
            Self::Unsupported { .. } | Self::Name { .. } | Self::Malformed { .. } => false,
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

//! Shard keys and scopes as they are stored and sent.

use serde::{Deserialize, Serialize};

use crate::key::{Scope, ShardKey};

/// Dimensions with their values, in order, such as `[["cluster", "c"]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WireDimensions(Vec<(String, String)>);

impl WireDimensions {
    /// The names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Converts the dimensions to a shard key.
    pub fn key(&self) -> ShardKey {
        ShardKey::new(self.pairs())
    }

    /// Converts the dimensions to a scope.
    pub fn scope(&self) -> Scope {
        Scope::new(self.pairs())
    }
}

impl From<&ShardKey> for WireDimensions {
    fn from(key: &ShardKey) -> Self {
        Self(key.parts().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl From<&Scope> for WireDimensions {
    fn from(scope: &Scope) -> Self {
        Self(scope.parts().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

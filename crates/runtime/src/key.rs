//! Keys with named dimensions: shard keys (`cluster=c, namespace=n`) and scopes (`cluster=c,
//! kind=ConfigMap`).

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The dimension that names the caller: the instance of the integration that owns the objects of a shard or a
/// scope, such as a saas file.
pub const CALLER_DIMENSION: &str = "caller";

/// Dimensions with their values, in the order in which the integration names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Dimensions(Vec<(Box<str>, Box<str>)>);

impl Dimensions {
    fn new<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(parts.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(dimension, _)| &**dimension == name).map(|(_, value)| &**value)
    }
}

impl fmt::Display for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

/// The key of a shard: its values of the dimensions by which an integration's work is split. The key without
/// dimensions stands for the whole integration.
///
/// ```
/// use qontract_runtime::ShardKey;
///
/// let keys = [ShardKey::new([("cluster", "c2")]), ShardKey::new([("cluster", "c1")]), ShardKey::default()];
/// let sorted = std::collections::BTreeSet::from(keys);
/// let texts: Vec<String> = sorted.iter().map(ToString::to_string).collect();
/// assert_eq!(texts, ["all", "cluster=c1", "cluster=c2"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardKey(Dimensions);

impl ShardKey {
    /// Creates a key with these dimensions.
    ///
    /// ```
    /// use qontract_runtime::ShardKey;
    /// let key = ShardKey::new([("cluster", "c1"), ("namespace", "n1")]);
    /// assert_eq!(key.to_string(), "cluster=c1, namespace=n1");
    /// assert_eq!((key.get("cluster"), key.slot_value().as_str()), (Some("c1"), "c1/n1"));
    /// ```
    pub fn new<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(Dimensions::new(parts))
    }

    /// The value of a dimension.
    pub fn get(&self, dimension: &str) -> Option<&str> {
        self.0.get(dimension)
    }

    /// Dimensions and values, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether this key stands for the whole integration.
    pub fn is_whole(&self) -> bool {
        self.0.0.is_empty()
    }

    /// Whether the other key has the same dimensions with the same values, in any order.
    pub fn has_same_parts(&self, other: &Self) -> bool {
        let parts = |key: &Self| {
            let mut parts = key.0.0.clone();
            parts.sort();
            parts
        };
        parts(self) == parts(other)
    }

    /// The string that is hashed to choose a shard slot, unless the integration [names a
    /// dimension](crate::IntegrationMeta::slots_by): the values, joined by slashes.
    pub fn slot_value(&self) -> String {
        let values: Vec<&str> = self.0.0.iter().map(|(_, value)| &**value).collect();
        values.join("/")
    }
}

/// The text of a shard key that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the key of a shard: expected `DIMENSION=VALUE`, separated by commas, or `all`")]
pub struct InvalidShardKey(String);

impl FromStr for ShardKey {
    type Err = InvalidShardKey;

    /// Parses the text of a key. A part without `=` continues the value before it, because that value contains a
    /// comma.
    ///
    /// ```
    /// use qontract_runtime::ShardKey;
    ///
    /// let key = ShardKey::new([("cluster", "c1"), ("namespace", "n1")]);
    /// assert_eq!("cluster=c1,namespace=n1".parse(), Ok(key.clone()));
    /// assert_eq!(key.to_string().parse(), Ok(key));
    /// assert_eq!("all".parse(), Ok(ShardKey::default()));
    /// assert!("c1/n1".parse::<ShardKey>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidShardKey(text.to_owned());
        if text == "all" {
            return Ok(Self::default());
        }
        let mut parts: Vec<(&str, String)> = Vec::new();
        for part in text.split(',') {
            match (part.split_once('='), parts.last_mut()) {
                (Some((name, value)), _) if !name.trim().is_empty() => {
                    parts.push((name.trim_start(), value.to_owned()));
                }
                (None, Some((_, value))) => {
                    value.push(',');
                    value.push_str(part);
                }
                (Some(_) | None, _) => return Err(invalid()),
            }
        }
        Ok(Self::new(parts.iter().map(|(name, value)| (*name, value.as_str()))))
    }
}

impl fmt::Display for ShardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() { f.write_str("all") } else { self.0.fmt(f) }
    }
}

impl Serialize for ShardKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A set of objects that one read returns. A failed read affects only its scope.
///
/// ```
/// use qontract_runtime::{ObjectKey, Scope};
///
/// let scope = Scope::new([("cluster", "c1"), ("kind", "ConfigMap")]);
/// assert_eq!((scope.get("cluster"), scope.get("namespace")), (Some("c1"), None));
///
/// let object = ObjectKey { scope, kind: "ConfigMap".to_owned(), name: "settings".to_owned() };
/// assert_eq!(object.to_string(), "ConfigMap `settings` (cluster=c1, kind=ConfigMap)");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Dimensions);

impl Scope {
    /// Creates a scope with these dimensions.
    pub fn new<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(Dimensions::new(parts))
    }

    /// Dimensions and values, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The value of a dimension.
    pub fn get(&self, dimension: &str) -> Option<&str> {
        self.0.get(dimension)
    }

    /// The caller, if the integration has callers.
    pub fn caller(&self) -> Option<&str> {
        self.get(CALLER_DIMENSION)
    }

    /// Writes ` (cluster=a)`; writes nothing if the scope has no dimensions.
    pub(crate) fn write_in_parentheses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parts().next().is_none() { Ok(()) } else { write!(f, " ({self})") }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

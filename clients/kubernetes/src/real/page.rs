//! A page of a list. Who manages which fields is kept as text, item by item: it is as large as the rest.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::fields::{Ownership, to_be_moved};
use crate::object::Fields;

/// A page.
#[derive(Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    pub metadata: Metadata,
    pub items: Option<Vec<Item>>,
}

/// What is said of a page.
#[derive(Default, Deserialize)]
pub(super) struct Metadata {
    /// Where the next page begins; empty on the last.
    #[serde(default, rename = "continue")]
    pub next: String,
}

/// An object, and beside it who manages which of its fields.
pub(super) struct Item {
    pub body: Value,
    pub fields: Fields,
    pub ownership: Ownership,
}

impl From<Value> for Item {
    fn from(mut body: Value) -> Self {
        let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
        let managed = metadata.and_then(|metadata| metadata.remove("managedFields")).unwrap_or_default();
        Self { body, fields: to_be_moved(&managed), ownership: Ownership::new(&managed) }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

//! A page of a list. The managed fields of each item, which are as large as the rest of the item, are stored
//! unparsed.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::fields::{ManagedFields, field_ownership};
use crate::object::FieldOwnership;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 10_000;

/// Maximum size of all pages of a list, in bytes.
const MAX_LIST_BYTES: usize = 512 << 20;

/// Limits the size of one list, because a server could return pages forever.
#[derive(Default)]
pub(super) struct ListLimit {
    pages: usize,
    bytes: usize,
}

impl ListLimit {
    /// Counts a page of this many bytes.
    pub fn add(&mut self, bytes: usize) -> Result<(), String> {
        self.pages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.pages > MAX_PAGES || self.bytes > MAX_LIST_BYTES {
            return Err(format!("the list has more than {MAX_PAGES} pages or {MAX_LIST_BYTES} bytes"));
        }
        Ok(())
    }
}

/// A page.
#[derive(Deserialize)]
pub(super) struct ListPage {
    #[serde(default)]
    pub metadata: PageMetadata,
    pub items: Option<Vec<PageItem>>,
}

/// Metadata of a page.
#[derive(Default, Deserialize)]
pub(super) struct PageMetadata {
    /// The continue token of the next page; empty on the last page.
    #[serde(default, rename = "continue")]
    pub next: String,
}

/// An object and its managed fields.
pub(super) struct PageItem {
    pub body: Value,
    pub field_ownership: FieldOwnership,
    pub managed_fields: ManagedFields,
}

impl From<Value> for PageItem {
    fn from(mut body: Value) -> Self {
        let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
        let managed = metadata.and_then(|metadata| metadata.remove("managedFields")).unwrap_or_default();
        Self {
            body,
            field_ownership: field_ownership(&managed),
            managed_fields: ManagedFields::new(&managed),
        }
    }
}

impl<'de> Deserialize<'de> for PageItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::{ListLimit, MAX_LIST_BYTES, MAX_PAGES};

    #[test]
    fn a_list_has_a_maximum_of_pages_and_bytes() {
        let check = |pages: usize, bytes: usize, fits: bool| {
            let mut limit = ListLimit::default();
            let counted = (0..pages).try_for_each(|_| limit.add(bytes));
            assert_eq!(counted.is_ok(), fits, "{pages} pages of {bytes} bytes");
        };
        check(MAX_PAGES, 1, true);
        check(MAX_PAGES + 1, 0, false);
        check(2, MAX_LIST_BYTES / 2, true);
        check(2, MAX_LIST_BYTES / 2 + 1, false);
        check(2, usize::MAX, false);
    }
}

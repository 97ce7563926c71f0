//! Columns: the values of one field for all datafiles of a schema, stored contiguously.
//!
//! A long list reads the same few fields of each of its datafiles. The datafiles are scattered in memory, so
//! most of the time is spent on CPU cache misses. When long lists read a field for the second time, its
//! values are copied into a column: strings as contiguous JSON, and references as the ids of the datafiles to
//! which they point.
//!
//! **Invariant:** a cell contains the same value as the datafile, or no value; in that case the caller reads
//! the datafile. A bundle never changes, so a column never becomes invalid; the index of every new bundle
//! starts without columns.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_bundle::{Value, json::JavaScriptWriter};

use crate::source::{FileId, ResolvedValue, Source};

/// Maximum total size of all columns of a bundle, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The columns of a bundle, built on demand. The lock is never held while a column is built.
#[derive(Debug, Default)]
pub struct Columns(Mutex<ColumnStore>);

#[derive(Debug, Default)]
struct ColumnStore {
    /// By schema number and key.
    slots: HashMap<(u32, Box<str>), ColumnSlot>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum ColumnSlot {
    /// The column was requested once and is not built yet: many fields are requested only once, and building
    /// a column costs more than it saves for one list.
    RequestedOnce,
    Built(Arc<Column>),
    /// The column does not fit into the budget.
    TooLarge,
}

/// A field of all datafiles of a schema, in their order.
#[derive(Debug, Default)]
pub struct Column {
    cells: Vec<Cell>,
    texts: Vec<u8>,
}

/// The value of a datafile in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// A string: the start and end offsets of its JSON.
    Text(u32, u32),
    /// A reference to this datafile.
    File(FileId),
    /// Another value, or no value.
    Other,
}

/// The value that a column has for a datafile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnValue<'c> {
    /// A string, as JSON.
    Text(&'c [u8]),
    /// A reference to this datafile.
    File(FileId),
}

impl Columns {
    /// The column for a key of a schema: cached, or built from `read` on the second request. `read` yields
    /// the value of each datafile. `None` on the first request, or if the column does not fit into the
    /// budget.
    pub fn get<'a>(
        &self,
        schema: u32,
        key: &str,
        read: impl IntoIterator<Item = Option<ResolvedValue<'a>>>,
    ) -> Option<Arc<Column>> {
        let slot = (schema, Box::from(key));
        {
            let mut store = self.0.lock();
            match store.slots.get(&slot) {
                Some(ColumnSlot::Built(column)) => return Some(Arc::clone(column)),
                Some(ColumnSlot::TooLarge) => return None,
                Some(ColumnSlot::RequestedOnce) => {}
                None => {
                    store.slots.insert(slot, ColumnSlot::RequestedOnce);
                    return None;
                }
            }
        }
        // The lock is released while the column is built: concurrent requests may build it twice, but never
        // wait.
        let column = Column::of(read).map(Arc::new);
        let mut store = self.0.lock();
        if let Some(ColumnSlot::Built(theirs)) = store.slots.get(&slot) {
            return Some(Arc::clone(theirs));
        }
        let bytes = column.as_ref().map_or(0, |column| column.bytes());
        let has_room = store.bytes + bytes <= MAX_BYTES;
        let column = column.filter(|_| has_room);
        if column.is_some() {
            store.bytes += bytes;
        }
        store.slots.insert(slot, column.clone().map_or(ColumnSlot::TooLarge, ColumnSlot::Built));
        column
    }
}

impl Column {
    /// Builds the column of these values; `None` if it would be too large.
    fn of<'a>(read: impl IntoIterator<Item = Option<ResolvedValue<'a>>>) -> Option<Self> {
        let mut column = Self::default();
        for held in read {
            let cell = match held {
                Some(ResolvedValue::One(Source::File(file))) => Cell::File(file),
                Some(ResolvedValue::One(Source::Value(Value::Str(text)))) => column.text(text)?,
                _ => Cell::Other,
            };
            column.cells.push(cell);
        }
        column.texts.shrink_to_fit();
        Some(column)
    }

    fn text(&mut self, text: &str) -> Option<Cell> {
        let start = u32::try_from(self.texts.len()).ok()?;
        JavaScriptWriter(&mut self.texts).str(text);
        let end = u32::try_from(self.texts.len()).ok()?;
        (self.texts.len() <= MAX_BYTES).then_some(Cell::Text(start, end))
    }

    /// The value of the datafile in this row.
    pub fn at(&self, row: usize) -> Option<ColumnValue<'_>> {
        match *self.cells.get(row)? {
            Cell::Text(start, end) => {
                let range: Range<usize> = start as usize..end as usize;
                Some(ColumnValue::Text(&self.texts[range]))
            }
            Cell::File(file) => Some(ColumnValue::File(file)),
            Cell::Other => None,
        }
    }

    fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>() + self.texts.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(text: &Value) -> ResolvedValue<'_> {
        ResolvedValue::One(Source::Value(text))
    }

    #[test]
    fn a_column_is_built_on_the_second_request() {
        let columns = Columns::default();
        let (text, number) = (Value::str("a \"b\""), Value::Int(1));
        let rows = || {
            [
                Some(held(&text)),
                Some(ResolvedValue::One(Source::File(7))),
                Some(held(&number)),
                None,
                Some(ResolvedValue::Null),
            ]
        };
        assert!(columns.get(0, "name", rows()).is_none());
        let column = columns.get(0, "name", rows()).expect("requested before");
        assert_eq!(column.at(0), Some(ColumnValue::Text(b"\"a \\\"b\\\"\"")));
        assert_eq!(column.at(1), Some(ColumnValue::File(7)));
        assert_eq!((column.at(2), column.at(3), column.at(4), column.at(5)), (None, None, None, None));
        let again = columns.get(0, "name", std::iter::empty()).expect("built before");
        assert!(Arc::ptr_eq(&column, &again));
        assert!(columns.get(1, "name", rows()).is_none(), "another schema is another column");
    }

    #[test]
    fn columns_beyond_the_budget_are_not_built() {
        let columns = Columns::default();
        let large = Value::Str("x".repeat(MAX_BYTES / 2).into());
        for (key, fits) in [("a", true), ("b", false), ("c", false)] {
            assert!(columns.get(0, key, [Some(held(&large))]).is_none());
            assert_eq!(columns.get(0, key, [Some(held(&large))]).is_some(), fits, "{key}");
        }
        let larger = Value::Str("x".repeat(MAX_BYTES).into());
        assert!(Column::of([Some(held(&larger))]).is_none());
    }
}

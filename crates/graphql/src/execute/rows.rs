//! The columns that an execution reads from, by selection.

use std::rc::Rc;
use std::sync::Arc;

use crate::columns::Column;
use crate::index::FileId;
use crate::plan::{Plan, Read, SelectionId};
use crate::source::{Source, View};

/// Minimum length of a list that uses columns.
const LONG: usize = 256;

/// For each selection the columns of its fields, once a long list of it was written.
pub struct Rows(Vec<Option<Open>>);

struct Open {
    /// The number of the schema that the columns belong to.
    schema: u32,
    fields: Fields,
}

/// For each field of a selection its column, if there is one.
pub type Fields = Rc<[Option<Arc<Column>>]>;

impl Rows {
    /// No columns yet.
    pub fn new(plan: &Plan) -> Self {
        Self(plan.selections.iter().map(|_| None).collect())
    }

    /// Opens the columns of a selection that is about to be written for all of these datafiles.
    pub fn open(&mut self, plan: &Plan, selection: SelectionId, view: View<'_>, files: &[FileId]) {
        let schema = files.first().and_then(|file| view.index.schema_of(*file));
        let Some(schema) = schema.filter(|_| files.len() >= LONG) else { return };
        if self.0[selection].as_ref().is_some_and(|open| open.schema == schema) {
            return;
        }
        let all = view.index.files_of(view.index.schema_name(schema));
        let column = |key: &str| {
            let held = |file: &FileId| view.follow(view.raw(Source::File(*file), key)).ok();
            view.index.columns().get(schema, key, all.iter().map(held))
        };
        let fields = plan.selections[selection].fields.iter().map(|field| match &field.read {
            Read::Key(key) if !field.shape.list => column(key),
            _ => None,
        });
        self.0[selection] = Some(Open { schema, fields: fields.collect() });
    }

    /// The columns of a selection, and the row of the datafile in them.
    pub fn of(&self, selection: SelectionId, view: View<'_>, source: Source<'_>) -> Option<(Fields, usize)> {
        let open = self.0[selection].as_ref()?;
        let Source::File(file) = source else { return None };
        (view.index.schema_of(file) == Some(open.schema))
            .then(|| (Rc::clone(&open.fields), view.index.row(file)))
    }
}

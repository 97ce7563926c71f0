//! The columns that an execution reads, for each selection.

use std::rc::Rc;
use std::sync::Arc;

use crate::columns::Column;
use crate::data_view::DataView;
use crate::plan::{Plan, ReadKey, SelectionId};
use crate::source::{FileId, Source};

/// Minimum length of a list that uses columns.
const MIN_LIST_LEN: usize = 256;

/// Per selection, the columns of its fields. The columns are opened when a long list of the selection is
/// written.
pub struct ColumnCursors(Vec<Option<OpenColumns>>);

struct OpenColumns {
    /// The number of the schema that the columns belong to.
    schema: u32,
    fields: FieldColumns,
}

/// For each field of a selection, its column; `None` if the field has no column.
pub type FieldColumns = Rc<[Option<Arc<Column>>]>;

impl ColumnCursors {
    /// Creates cursors without columns.
    pub fn new(plan: &Plan) -> Self {
        Self(plan.selections.iter().map(|_| None).collect())
    }

    /// Opens the columns of a selection before a list of these datafiles is written.
    pub fn open(&mut self, plan: &Plan, selection: SelectionId, view: DataView<'_>, files: &[FileId]) {
        let schema = files.first().and_then(|file| view.index.schema_of(*file));
        let Some(schema) = schema.filter(|_| files.len() >= MIN_LIST_LEN) else { return };
        if self.0[selection].as_ref().is_some_and(|open| open.schema == schema) {
            return;
        }
        let all = view.index.files_of(view.index.schema_name(schema));
        let column = |key: &str| {
            let held = |file: &FileId| view.follow(view.raw(Source::File(*file), key)).ok();
            view.index.columns().get(schema, key, all.iter().map(held))
        };
        let fields = plan.selections[selection].fields.iter().map(|field| match &field.read {
            ReadKey::Key(key) if !field.shape.list => column(key),
            _ => None,
        });
        self.0[selection] = Some(OpenColumns { schema, fields: fields.collect() });
    }

    /// The columns of a selection, and the row of a datafile in them.
    pub fn of(
        &self,
        selection: SelectionId,
        view: DataView<'_>,
        source: Source<'_>,
    ) -> Option<(FieldColumns, usize)> {
        let open = self.0[selection].as_ref()?;
        let Source::File(file) = source else { return None };
        (view.index.schema_of(file) == Some(open.schema))
            .then(|| (Rc::clone(&open.fields), view.index.row(file)))
    }
}

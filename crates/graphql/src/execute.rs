//! Executes a plan: walks the bundle and writes the fields of the plan.
//!
//! **Invariant:** fields are written depth first, in the order of the plan. An error at a non-nullable
//! position nulls the closest nullable ancestor: the output of that ancestor is rewound, but earlier errors
//! remain.

mod column_cursors;
mod complete;
mod key_offsets;
mod lists;
mod object_memo;
mod position;
mod scalar;

use qontract_bundle::Value;

use crate::arguments::Arguments;
use crate::columns::ColumnValue;
use crate::data_view::DataView;
use crate::element_selection::{ElementRanges, ElementSelection};
use crate::failure::{Code, Failure};
use crate::introspection;
use crate::limits::QueryLimits;
use crate::plan::{FieldPlan, FieldTarget, Plan, ReadKey, SelectionId, ValueForm};
use crate::provenance::Provenance;
use crate::read_set::ReadSet;
use crate::schema::{Resolver, Scalar, Schema, TypeId};
use crate::sink::Sink;
use crate::source::{IntrospectionObject, ListSource, RawValue, ResolvedValue, Source};
use crate::variables::Variables;
use column_cursors::ColumnCursors;
use key_offsets::KeyOffsetCache;
use object_memo::ObjectMemo;
use position::{AnswerPath, DataOrigin, ExecutionPosition};

/// Number of objects written between two checks of limits and cancellation.
const CHECK_INTERVAL: u32 = 256;

/// A plan, and the data on which to execute it.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The GraphQL schema.
    pub schema: &'a Schema,
    /// The bundle and its lookup tables.
    pub view: DataView<'a>,
    /// The plan.
    pub plan: &'a Plan,
    /// The values of the variables.
    pub variables: &'a Variables,
    /// Limits on the response.
    pub limits: &'a QueryLimits,
    /// Returns whether the request was cancelled.
    pub cancelled: Option<&'a dyn Fn() -> bool>,
    /// Restricts root lists to these datafiles.
    pub only_elements: Option<&'a ElementSelection>,
}

/// Data recorded in addition to the response.
#[derive(Debug, Default)]
pub struct ExecutionRecord {
    /// Origins of all objects, if requested.
    pub provenance: Option<Provenance>,
    /// The files that were read, if requested.
    pub touched: Option<ReadSet>,
    /// Byte ranges of the root elements, if requested.
    pub elements: Option<Vec<ElementRanges>>,
}

/// The result of an execution.
#[derive(Debug)]
pub struct ExecutionOutcome<S> {
    /// The `data` of the response.
    pub data: S,
    /// Errors, in order.
    pub failures: Vec<Failure>,
    /// Schemas of the objects that were read, in order of first occurrence.
    pub schemas: Vec<Box<str>>,
    /// The recorded data.
    pub record: ExecutionRecord,
}

/// Executes a task and writes its data into `sink`.
pub fn execute<S: Sink>(task: Task<'_>, sink: S, record: ExecutionRecord) -> ExecutionOutcome<S> {
    let Task { plan, view, .. } = task;
    let mut executor = Executor {
        task,
        out: sink,
        failures: Vec::new(),
        schemas: Vec::new(),
        seen: vec![false; view.index.schema_count()],
        key_offsets: KeyOffsetCache::new(plan),
        object_memo: ObjectMemo::new(plan),
        column_cursors: ColumnCursors::new(plan),
        arguments: (0..plan.argument_sets).map(|_| None).collect(),
        scratch: Vec::new(),
        until_check: CHECK_INTERVAL,
        record,
    };
    let mark = executor.out.mark();
    let position = ExecutionPosition { path: None, origin: DataOrigin::Nowhere };
    if executor.object(plan.root, Source::Root, position).is_err() {
        executor.rewind(mark, 0);
        executor.out.null();
    }
    let Executor { out, failures, schemas, record, .. } = executor;
    ExecutionOutcome { data: out, failures, schemas, record }
}

/// The number of objects as which a copy of this many bytes counts in the next limit check.
fn checks_for_copy(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024).unwrap_or(u32::MAX)
}

/// The reason why writing stopped.
enum WriteAbort {
    /// A non-nullable value is null; the error is recorded.
    NullPropagation,
    /// The whole request is aborted; the error is recorded.
    RequestAborted,
}

/// An object, and the raw value of the key that a field reads.
#[derive(Clone, Copy)]
struct RawField<'a> {
    source: Source<'a>,
    raw: RawValue<'a>,
}

/// The kind of value that was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenValue {
    Value,
    /// An object without fields, which lists omit.
    EmptyObject,
}

struct Executor<'a, S> {
    task: Task<'a>,
    out: S,
    failures: Vec<Failure>,
    schemas: Vec<Box<str>>,
    /// Per schema number, whether the schema is already in the list.
    seen: Vec<bool>,
    key_offsets: KeyOffsetCache,
    object_memo: ObjectMemo,
    column_cursors: ColumnCursors,
    /// For each argument set of the plan, the values of the arguments, read on first use.
    arguments: Vec<Option<std::rc::Rc<Arguments>>>,
    scratch: Vec<u8>,
    until_check: u32,
    record: ExecutionRecord,
}

impl<'a, S: Sink> Executor<'a, S> {
    /// Writes an object, or copies it if it was already written.
    fn object(
        &mut self,
        selection: SelectionId,
        source: Source<'a>,
        position: ExecutionPosition<'_>,
    ) -> Result<WrittenValue, WriteAbort> {
        self.check_limits(position)?;
        // With provenance, each copy needs its own entry, so objects are not copied.
        let (Source::File(file), Some(start), None) = (source, self.out.offset(), &self.record.provenance)
        else {
            return self.write_object(selection, source, position);
        };
        if let Some(written) = self.object_memo.find(selection, file, start) {
            self.until_check = self.until_check.saturating_sub(checks_for_copy(written.len())).max(1);
            if self.out.size() + written.len() > self.task.limits.answer_bytes {
                return Err(self.too_large(position));
            }
            self.out.repeat(written);
            return Ok(WrittenValue::Value);
        }
        let failed = self.failures.len();
        let written = self.write_object(selection, source, position)?;
        // Errors contain their path, which differs for each copy.
        if let (WrittenValue::Value, Some(end)) = (written, self.out.offset())
            && failed == self.failures.len()
        {
            self.object_memo.put(selection, file, start..end);
        }
        Ok(written)
    }

    fn write_object(
        &mut self,
        selection: SelectionId,
        source: Source<'a>,
        position: ExecutionPosition<'_>,
    ) -> Result<WrittenValue, WriteAbort> {
        self.record_object(source, position);
        let Task { plan, view, .. } = self.task;
        let map = view.map(source);
        let places = map.map(|map| self.key_offsets.of(plan, selection, map.keys()));
        let columns = self.column_cursors.of(selection, view, source);
        let selection = &plan.selections[selection];
        self.out.begin_object();
        let mut schema_noted = false;
        for (number, field) in selection.fields.iter().enumerate() {
            if !schema_noted && field.read != ReadKey::Nothing {
                self.record_schema(source);
                schema_noted = true;
            }
            self.out.key(&field.key, &field.encoded_key);
            let cell = columns.as_ref().and_then(|(fields, row)| fields[number].as_ref()?.at(*row));
            if let (Some(ColumnValue::Text(text)), ValueForm::Scalar(Scalar::String)) = (cell, &field.form) {
                self.out.encoded(text);
                continue;
            }
            if let Some(ColumnValue::File(file)) = cell {
                self.field(selection.type_, field, Ok(ResolvedValue::One(Source::File(file))), position)?;
                continue;
            }
            let held = match (&field.read, map, &places) {
                (ReadKey::Key(_), Some(map), Some(places)) => {
                    map.at(places[number]).map_or(RawValue::Absent, RawValue::Value)
                }
                (ReadKey::Key(key), ..) => view.raw(source, key),
                (ReadKey::Path, ..) => view.raw(source, "path"),
                (ReadKey::Schema, ..) => view.raw(source, "$schema"),
                (ReadKey::Nothing, ..) => RawValue::Absent,
            };
            let resolved = self.resolve(selection.type_, field, RawField { source, raw: held });
            self.field(selection.type_, field, resolved, position)?;
        }
        self.out.end_object();
        Ok(if selection.fields.is_empty() { WrittenValue::EmptyObject } else { WrittenValue::Value })
    }

    /// Writes the value of a field; on an error, `null` if the field is nullable.
    fn field(
        &mut self,
        type_: TypeId,
        field: &'a FieldPlan,
        resolved: Result<ResolvedValue<'a>, Failure>,
        position: ExecutionPosition<'_>,
    ) -> Result<(), WriteAbort> {
        let path = AnswerPath::key(position.path, &field.key);
        let mark = self.out.mark();
        let recorded = self.recorded();
        let written = match resolved {
            Ok(resolved) => {
                let origin = self.origin_of(type_, field, &position.origin);
                self.complete(type_, field, resolved, ExecutionPosition { path: Some(&path), origin })
            }
            Err(failure) => Err(self.fail(failure, field, &path)),
        };
        match written {
            Ok(_) => Ok(()),
            Err(WriteAbort::NullPropagation) if !field.shape.required => {
                self.rewind(mark, recorded);
                self.out.null();
                Ok(())
            }
            Err(stop) => Err(stop),
        }
    }

    /// The origin of the value of a key, relative to its object.
    fn origin_of<'p>(&self, type_: TypeId, field: &'p FieldPlan, origin: &'p DataOrigin<'p>) -> DataOrigin<'p>
    where
        'a: 'p,
    {
        match field.target {
            FieldTarget::Field(number) => {
                DataOrigin::Key(origin, &self.task.schema.type_(type_).fields[number].name)
            }
            _ => DataOrigin::Nowhere,
        }
    }

    /// Resolves the value of a field.
    fn resolve(
        &mut self,
        type_: TypeId,
        field: &'a FieldPlan,
        RawField { source, raw }: RawField<'a>,
    ) -> Result<ResolvedValue<'a>, Failure> {
        let Task { schema, view, .. } = self.task;
        let internal = |message: String| Failure::new(Code::Internal, message);
        if matches!(field.read, ReadKey::Key(_) | ReadKey::Path) {
            return view.follow(raw).map_err(|error| internal(error.to_string()));
        }
        let number = match field.target {
            FieldTarget::Field(number) => number,
            FieldTarget::TypeName => return Ok(ResolvedValue::One(Source::Text(&schema.type_(type_).name))),
            FieldTarget::Schema => {
                return Ok(ResolvedValue::One(Source::Meta(IntrospectionObject::Schema)));
            }
            FieldTarget::Type => {
                let arguments = self.arguments(type_, field);
                let id = arguments.as_ref().and_then(|given| schema.type_id(given.text("name")?));
                let one = |id| {
                    ResolvedValue::One(Source::Meta(IntrospectionObject::Type(introspection::named(id))))
                };
                return Ok(id.map_or(ResolvedValue::Null, one));
            }
        };
        let definition = &schema.type_(type_).fields[number];
        match &definition.resolver {
            Resolver::Key => view.follow(raw).map_err(|error| internal(error.to_string())),
            Resolver::SchemaKey => Ok(match raw {
                RawValue::Text(text) => ResolvedValue::One(Source::Text(text)),
                RawValue::Value(Value::Null) | RawValue::Absent | RawValue::Backrefs(_) => {
                    ResolvedValue::Null
                }
                RawValue::Value(value) => ResolvedValue::One(Source::Value(value)),
            }),
            Resolver::Datafiles(schema) => self.datafiles(type_, field, schema).map(ResolvedValue::Many),
            Resolver::BackReferences(reference) => {
                let files = match view.raw(source, "path") {
                    RawValue::Text(path) => view.index.pointing(*reference, path),
                    RawValue::Value(Value::Str(path)) => view.index.pointing(*reference, path),
                    _ => &[],
                };
                Ok(ResolvedValue::Many(ListSource::Files(files)))
            }
            Resolver::Resource => {
                let id = match view.raw(source, &definition.name) {
                    RawValue::Text(path) => view.index.resource(path),
                    RawValue::Value(Value::Str(path)) => view.index.resource(path),
                    _ => None,
                };
                Ok(id.map_or(ResolvedValue::Null, |id| ResolvedValue::One(Source::Resource(id))))
            }
            Resolver::Resources => Ok(ResolvedValue::Many(self.resources(type_, field))),
            Resolver::Meta => Ok(match source {
                Source::Meta(part) => introspection::resolve(schema, part, &definition.name),
                _ => ResolvedValue::Null,
            }),
        }
    }

    /// Records an error at a field.
    fn fail(&mut self, mut failure: Failure, field: &FieldPlan, path: &AnswerPath<'_>) -> WriteAbort {
        failure.locations.clone_from(&field.locations);
        failure.path = path.steps();
        self.failures.push(failure);
        WriteAbort::NullPropagation
    }

    /// Adds the schema of an object to the list of schemas that were read.
    fn record_schema(&mut self, source: Source<'a>) {
        let view = self.task.view;
        let text = match source {
            Source::File(file) => {
                let Some(id) = view.index.schema_of(file) else { return };
                if std::mem::replace(&mut self.seen[id as usize], true) {
                    return;
                }
                view.index.schema_name(id)
            }
            other => match view.raw(other, "$schema") {
                RawValue::Text(text) => text,
                RawValue::Value(Value::Str(text)) => text,
                _ => return,
            },
        };
        if !self.schemas.iter().any(|schema| **schema == *text) {
            self.schemas.push(text.into());
        }
    }

    /// Aborts the request if the response is too large or the request was cancelled.
    fn check_limits(&mut self, position: ExecutionPosition<'_>) -> Result<(), WriteAbort> {
        self.until_check -= 1;
        if self.until_check > 0 {
            return Ok(());
        }
        self.until_check = CHECK_INTERVAL;
        if self.out.size() > self.task.limits.answer_bytes {
            return Err(self.too_large(position));
        }
        if self.task.cancelled.is_some_and(|cancelled| cancelled()) {
            let text = "The request was cancelled before the response was complete.";
            return Err(self.abort(Failure::new(Code::Cancelled, text), position));
        }
        Ok(())
    }

    fn too_large(&mut self, position: ExecutionPosition<'_>) -> WriteAbort {
        let max = self.task.limits.answer_bytes;
        let text = format!("The response has more than {max} bytes.");
        self.abort(Failure::new(Code::LimitExceeded, text), position)
    }

    /// Records the error that aborts the whole request.
    fn abort(&mut self, mut failure: Failure, position: ExecutionPosition<'_>) -> WriteAbort {
        failure.path = position.path.map(AnswerPath::steps).unwrap_or_default();
        self.failures.push(failure);
        WriteAbort::RequestAborted
    }

    /// Records an object in the read set and the provenance, if requested.
    fn record_object(&mut self, source: Source<'a>, position: ExecutionPosition<'_>) {
        if let Some(touched) = &mut self.record.touched {
            touched.note(source);
        }
        if let Some(provenance) = &mut self.record.provenance {
            position.record(self.task.view, provenance);
        }
    }

    fn recorded(&self) -> usize {
        self.record.provenance.as_ref().map_or(0, Provenance::len)
    }

    /// Rewinds the output and the records to the mark.
    fn rewind(&mut self, mark: S::Mark, recorded: usize) {
        self.out.rewind(mark);
        if let Some(end) = self.out.offset() {
            self.object_memo.truncate(end);
        }
        if let Some(provenance) = &mut self.record.provenance {
            provenance.truncate(recorded);
        }
    }
}

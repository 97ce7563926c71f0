//! Plan → answer: walks the bundle and writes the fields of the plan.
//!
//! **Invariant:** fields are written depth first, in the order of the plan. An error at a position that
//! cannot be null nulls the closest position above that can; what was written there is taken back, errors
//! found before stay.

mod again;
mod complete;
mod lists;
mod places;
mod rows;
mod scalar;
mod trail;

use qontract_bundle::Value;

use crate::arguments::Arguments;
use crate::columns::Found;
use crate::entities::{Entities, Written as WrittenEntities};
use crate::failure::{Code, Failure};
use crate::limits::Limits;
use crate::meta;
use crate::plan::{FieldPlan, Form, Plan, Read, SelectionId, What};
use crate::provenance::Provenance;
use crate::schema::{Resolver, Scalar, Schema, TypeId};
use crate::sink::Sink;
use crate::source::{Many, Raw, Resolved, Source, View};
use crate::touched::Touched;
use crate::variables::Variables;
use again::Again;
use places::Places;
use rows::Rows;
use trail::{Origin, Path, Place};

/// Number of objects that are written between two checks of limits and cancellation.
const LOOK_UP: u32 = 256;

/// A plan, and the data to execute it on.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The schema.
    pub schema: &'a Schema,
    /// The data.
    pub view: View<'a>,
    /// The plan.
    pub plan: &'a Plan,
    /// The variables.
    pub variables: &'a Variables,
    /// Limits on the answer.
    pub limits: &'a Limits,
    /// Whether the request was cancelled.
    pub cancelled: Option<&'a dyn Fn() -> bool>,
    /// The datafiles that root lists are restricted to.
    pub only: Option<&'a Entities>,
}

/// What is recorded besides the answer.
#[derive(Debug, Default)]
pub struct Record {
    /// Origins of all objects, if requested.
    pub provenance: Option<Provenance>,
    /// The files that were read, if requested.
    pub touched: Option<Touched>,
    /// Byte ranges of the root elements, if requested.
    pub entities: Option<Vec<WrittenEntities>>,
}

/// The result of an execution.
#[derive(Debug)]
pub struct Outcome<S> {
    /// The answer's data.
    pub data: S,
    /// Errors, in order.
    pub failures: Vec<Failure>,
    /// Schemas of the objects that were read, in order of first occurrence.
    pub schemas: Vec<Box<str>>,
    /// What was recorded.
    pub record: Record,
}

/// Executes a task and writes its data into `sink`.
pub fn execute<S: Sink>(task: Task<'_>, sink: S, record: Record) -> Outcome<S> {
    let Task { plan, view, .. } = task;
    let mut executor = Executor {
        task,
        out: sink,
        failures: Vec::new(),
        schemas: Vec::new(),
        seen: vec![false; view.index.schema_count()],
        places: Places::new(plan),
        again: Again::new(plan),
        rows: Rows::new(plan),
        arguments: (0..plan.argument_sets).map(|_| None).collect(),
        scratch: Vec::new(),
        until_look_up: LOOK_UP,
        record,
    };
    let mark = executor.out.mark();
    let place = Place { path: None, origin: Origin::Nowhere };
    if executor.object(plan.root, Source::Root, place).is_err() {
        executor.rewind(mark, 0);
        executor.out.null();
    }
    let Executor { out, failures, schemas, record, .. } = executor;
    Outcome { data: out, failures, schemas, record }
}

/// Number of objects that a copy of this many bytes counts for.
fn looks(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024).unwrap_or(u32::MAX)
}

/// Why writing stopped.
enum Stop {
    /// A non-nullable value is null; the error is recorded.
    Null,
    /// The whole request is aborted; the error is recorded.
    Over,
}

/// An object, and the raw value of the key that a field reads.
#[derive(Clone, Copy)]
struct Held<'a> {
    source: Source<'a>,
    raw: Raw<'a>,
}

/// The kind of value that was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Something,
    /// An object without fields, which lists leave out.
    EmptyObject,
}

struct Executor<'a, S> {
    task: Task<'a>,
    out: S,
    failures: Vec<Failure>,
    schemas: Vec<Box<str>>,
    /// Schemas of datafiles that are already in the list.
    seen: Vec<bool>,
    places: Places,
    again: Again,
    rows: Rows,
    /// Per argument set of the plan: its values, read on first use.
    arguments: Vec<Option<std::rc::Rc<Arguments>>>,
    scratch: Vec<u8>,
    until_look_up: u32,
    record: Record,
}

impl<'a, S: Sink> Executor<'a, S> {
    /// Writes an object, or copies it if it was written before.
    fn object(
        &mut self,
        selection: SelectionId,
        source: Source<'a>,
        place: Place<'_>,
    ) -> Result<Written, Stop> {
        self.look_up(place)?;
        // Provenance has an entry for each copy.
        let (Source::File(file), Some(start), None) = (source, self.out.offset(), &self.record.provenance)
        else {
            return self.object_anew(selection, source, place);
        };
        if let Some(written) = self.again.find(selection, file, start) {
            self.until_look_up = self.until_look_up.saturating_sub(looks(written.len())).max(1);
            if self.out.size() + written.len() > self.task.limits.answer_bytes {
                return Err(self.too_large(place));
            }
            self.out.repeat(written);
            return Ok(Written::Something);
        }
        let failed = self.failures.len();
        let written = self.object_anew(selection, source, place)?;
        // Errors contain their path, which differs for each copy.
        if let (Written::Something, Some(end)) = (written, self.out.offset())
            && failed == self.failures.len()
        {
            self.again.put(selection, file, start..end);
        }
        Ok(written)
    }

    fn object_anew(
        &mut self,
        selection: SelectionId,
        source: Source<'a>,
        place: Place<'_>,
    ) -> Result<Written, Stop> {
        self.note(source, place);
        let Task { plan, view, .. } = self.task;
        let map = view.map(source);
        let places = map.map(|map| self.places.of(plan, selection, map.keys()));
        let columns = self.rows.of(selection, view, source);
        let selection = &plan.selections[selection];
        self.out.begin_object();
        let mut schema_noted = false;
        for (number, field) in selection.fields.iter().enumerate() {
            if !schema_noted && field.read != Read::Nothing {
                self.note_schema(source);
                schema_noted = true;
            }
            self.out.key(&field.key, &field.encoded_key);
            let found = columns.as_ref().and_then(|(fields, row)| fields[number].as_ref()?.at(*row));
            if let (Some(Found::Text(text)), Form::Scalar(Scalar::String)) = (found, &field.form) {
                self.out.encoded(text);
                continue;
            }
            if let Some(Found::File(file)) = found {
                self.field(selection.type_, field, Ok(Resolved::One(Source::File(file))), place)?;
                continue;
            }
            let held = match (&field.read, map, &places) {
                (Read::Key(_), Some(map), Some(places)) => {
                    map.at(places[number]).map_or(Raw::Absent, Raw::Value)
                }
                (Read::Key(key), ..) => view.raw(source, key),
                (Read::Path, ..) => view.raw(source, "path"),
                (Read::Schema, ..) => view.raw(source, "$schema"),
                (Read::Nothing, ..) => Raw::Absent,
            };
            let resolved = self.resolve(selection.type_, field, Held { source, raw: held });
            self.field(selection.type_, field, resolved, place)?;
        }
        self.out.end_object();
        Ok(if selection.fields.is_empty() { Written::EmptyObject } else { Written::Something })
    }

    /// Writes the value of a field, or `null` where it is nullable.
    fn field(
        &mut self,
        type_: TypeId,
        field: &'a FieldPlan,
        resolved: Result<Resolved<'a>, Failure>,
        place: Place<'_>,
    ) -> Result<(), Stop> {
        let path = Path::key(place.path, &field.key);
        let mark = self.out.mark();
        let recorded = self.recorded();
        let written = match resolved {
            Ok(resolved) => {
                let origin = self.origin_of(type_, field, &place.origin);
                self.complete(type_, field, resolved, Place { path: Some(&path), origin })
            }
            Err(failure) => Err(self.fail(failure, field, &path)),
        };
        match written {
            Ok(_) => Ok(()),
            Err(Stop::Null) if !field.shape.required => {
                self.rewind(mark, recorded);
                self.out.null();
                Ok(())
            }
            Err(stop) => Err(stop),
        }
    }

    /// The origin of a key's value, relative to the object that has the key.
    fn origin_of<'p>(&self, type_: TypeId, field: &'p FieldPlan, origin: &'p Origin<'p>) -> Origin<'p>
    where
        'a: 'p,
    {
        match field.what {
            What::Field(number) => Origin::Key(origin, &self.task.schema.type_(type_).fields[number].name),
            _ => Origin::Nowhere,
        }
    }

    /// The value of a field.
    fn resolve(
        &mut self,
        type_: TypeId,
        field: &'a FieldPlan,
        Held { source, raw }: Held<'a>,
    ) -> Result<Resolved<'a>, Failure> {
        let Task { schema, view, .. } = self.task;
        let internal = |message: String| Failure::new(Code::Internal, message);
        if matches!(field.read, Read::Key(_) | Read::Path) {
            return view.follow(raw).map_err(|error| internal(error.to_string()));
        }
        let number = match field.what {
            What::Field(number) => number,
            What::TypeName => return Ok(Resolved::One(Source::Text(&schema.type_(type_).name))),
            What::Schema => return Ok(Resolved::One(Source::Meta(meta::Meta::Schema))),
            What::Type => {
                let arguments = self.arguments(type_, field);
                let id = arguments.as_ref().and_then(|given| schema.type_id(given.text("name")?));
                let one = |id| Resolved::One(Source::Meta(meta::Meta::Type(meta::named(id))));
                return Ok(id.map_or(Resolved::Null, one));
            }
        };
        let definition = &schema.type_(type_).fields[number];
        match &definition.resolver {
            Resolver::Key => view.follow(raw).map_err(|error| internal(error.to_string())),
            Resolver::SchemaKey => Ok(match raw {
                Raw::Text(text) => Resolved::One(Source::Text(text)),
                Raw::Value(Value::Null) | Raw::Absent | Raw::Backrefs(_) => Resolved::Null,
                Raw::Value(value) => Resolved::One(Source::Value(value)),
            }),
            Resolver::Datafiles(schema) => self.datafiles(type_, field, schema).map(Resolved::Many),
            Resolver::BackReferences(reference) => {
                let files = match view.raw(source, "path") {
                    Raw::Text(path) => view.index.pointing(*reference, path),
                    Raw::Value(Value::Str(path)) => view.index.pointing(*reference, path),
                    _ => &[],
                };
                Ok(Resolved::Many(Many::Files(files)))
            }
            Resolver::Resource => {
                let id = match view.raw(source, &definition.name) {
                    Raw::Text(path) => view.index.resource(path),
                    Raw::Value(Value::Str(path)) => view.index.resource(path),
                    _ => None,
                };
                Ok(id.map_or(Resolved::Null, |id| Resolved::One(Source::Resource(id))))
            }
            Resolver::Resources => Ok(Resolved::Many(self.resources(type_, field))),
            Resolver::Meta => Ok(match source {
                Source::Meta(part) => meta::resolve(schema, part, &definition.name),
                _ => Resolved::Null,
            }),
        }
    }

    /// Records an error at a field.
    fn fail(&mut self, mut failure: Failure, field: &FieldPlan, path: &Path<'_>) -> Stop {
        failure.locations.clone_from(&field.locations);
        failure.path = path.steps();
        self.failures.push(failure);
        Stop::Null
    }

    /// Adds the schema of an object to the list of schemas that were read.
    fn note_schema(&mut self, source: Source<'a>) {
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
                Raw::Text(text) => text,
                Raw::Value(Value::Str(text)) => text,
                _ => return,
            },
        };
        if !self.schemas.iter().any(|known| **known == *text) {
            self.schemas.push(text.into());
        }
    }

    /// Stops when the answer has become too large, or the request was cancelled.
    fn look_up(&mut self, place: Place<'_>) -> Result<(), Stop> {
        self.until_look_up -= 1;
        if self.until_look_up > 0 {
            return Ok(());
        }
        self.until_look_up = LOOK_UP;
        if self.out.size() > self.task.limits.answer_bytes {
            return Err(self.too_large(place));
        }
        if self.task.cancelled.is_some_and(|cancelled| cancelled()) {
            let text = "The request was cancelled before its answer was complete.";
            return Err(self.over(Failure::new(Code::Cancelled, text), place));
        }
        Ok(())
    }

    fn too_large(&mut self, place: Place<'_>) -> Stop {
        let most = self.task.limits.answer_bytes;
        let text = format!("The answer has more than {most} bytes.");
        self.over(Failure::new(Code::LimitExceeded, text), place)
    }

    /// Records why the whole request is aborted.
    fn over(&mut self, mut failure: Failure, place: Place<'_>) -> Stop {
        failure.path = place.path.map(Path::steps).unwrap_or_default();
        self.failures.push(failure);
        Stop::Over
    }

    /// Records an object in the read set and the provenance, if requested.
    fn note(&mut self, source: Source<'a>, place: Place<'_>) {
        if let Some(touched) = &mut self.record.touched {
            touched.note(source);
        }
        if let Some(provenance) = &mut self.record.provenance {
            place.record(self.task.view, provenance);
        }
    }

    fn recorded(&self) -> usize {
        self.record.provenance.as_ref().map_or(0, Provenance::len)
    }

    /// Takes back what was written and recorded since the mark.
    fn rewind(&mut self, mark: S::Mark, recorded: usize) {
        self.out.rewind(mark);
        if let Some(end) = self.out.offset() {
            self.again.cut(end);
        }
        if let Some(provenance) = &mut self.record.provenance {
            provenance.truncate(recorded);
        }
    }
}

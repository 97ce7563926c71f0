//! Lists that arguments filter.

use std::rc::Rc;

use qontract_bundle::Value;

use super::Executor;
use crate::arguments::Arguments;
use crate::failure::{Code, Failure};
use crate::filter::FilterFault;
use crate::index::FileId;
use crate::plan::{FieldPlan, What};
use crate::schema::TypeId;
use crate::sink::Sink;
use crate::source::{Many, Raw, Source};

/// Number of datafiles that are scanned between two checks for cancellation.
const SCANNED: usize = 256;

impl<'a, S: Sink> Executor<'a, S> {
    /// The arguments of a field, read on first use.
    pub(super) fn arguments(&mut self, type_: TypeId, field: &FieldPlan) -> Option<Rc<Arguments>> {
        let (number, given) = field.arguments.as_ref()?;
        let schema = self.task.schema;
        let type_name = match field.what {
            What::Field(number) => &*schema.type_(schema.type_(type_).fields[number].shape.named).name,
            _ => "",
        };
        let variables = self.task.variables;
        let slot = &mut self.arguments[*number];
        let read = || Rc::new(Arguments::read(schema, type_name, given, variables));
        Some(Rc::clone(slot.get_or_insert_with(read)))
    }

    /// Whether the elements of a field's list are root elements of the request.
    pub(super) fn has_entities(&self, type_: TypeId) -> bool {
        let plan = self.task.plan;
        plan.selections[plan.root].type_ == type_
    }

    /// The datafiles of a schema that the arguments and the request's selection of elements let through.
    pub(super) fn datafiles(
        &mut self,
        type_: TypeId,
        field: &FieldPlan,
        schema: &str,
    ) -> Result<Many<'a>, Failure> {
        let many = self.datafiles_of(type_, field, schema)?;
        let only = self.task.only.filter(|_| self.has_entities(type_)).and_then(|only| only.get(&field.key));
        let Some(only) = only else { return Ok(many) };
        let files = match &many {
            Many::Files(files) => files,
            Many::Chosen(files) => files.as_slice(),
            _ => &[],
        };
        let wanted = only.iter().filter_map(|path| self.task.view.file(path));
        let mut chosen: Vec<FileId> = wanted.filter(|file| files.binary_search(file).is_ok()).collect();
        chosen.sort_unstable();
        Ok(Many::Chosen(chosen))
    }

    fn datafiles_of(&mut self, type_: TypeId, field: &FieldPlan, schema: &str) -> Result<Many<'a>, Failure> {
        let view = self.task.view;
        let files = view.index.files_of(schema);
        if files.is_empty() {
            return Ok(Many::Files(files));
        }
        let Some(arguments) = self.arguments(type_, field) else { return Ok(Many::Files(files)) };
        if let Some(Err(fault)) = &arguments.filter {
            return Err(fault.to_failure());
        }
        if arguments.texts.is_empty() && arguments.filter.is_none() {
            return Ok(Many::Files(files));
        }
        let mut chosen = Vec::new();
        let mut consider = |file: FileId| -> Result<(), FilterFault> {
            if let Some(touched) = &mut self.record.touched {
                touched.note(Source::File(file));
            }
            let source = Source::File(file);
            let found = arguments.texts.iter().all(|(name, text)| match view.raw(source, name) {
                Raw::Text(raw) => raw == &**text,
                Raw::Value(Value::Str(raw)) => raw == text,
                _ => false,
            });
            if found && arguments.filter().map_or(Ok(true), |filter| filter.passes(view, source))? {
                chosen.push(file);
            }
            Ok(())
        };
        // The path is in the tables; everything else is a scan.
        let named = arguments.text("path").map(|path| {
            let file = view.file(path).filter(|file| files.binary_search(file).is_ok());
            file.into_iter().collect::<Vec<_>>()
        });
        let mut considered = Ok(());
        for files in named.as_deref().unwrap_or(files).chunks(SCANNED) {
            if self.task.cancelled.is_some_and(|cancelled| cancelled()) {
                let text = "The request was cancelled before its answer was complete.";
                return Err(Failure::new(Code::Cancelled, text));
            }
            considered = considered.and_then(|()| files.iter().copied().try_for_each(&mut consider));
        }
        considered.map_err(|fault| fault.to_failure())?;
        Ok(Many::Chosen(chosen))
    }

    /// The resources that the arguments let through; a requested path that does not exist is a missing
    /// element.
    pub(super) fn resources(&mut self, type_: TypeId, field: &FieldPlan) -> Many<'a> {
        let view = self.task.view;
        let arguments = self.arguments(type_, field);
        let given = |name| arguments.as_ref().and_then(|given| given.text(name));
        if let Some(path) = given("path").filter(|path| !path.is_empty()) {
            return match view.index.resource(path) {
                Some(id) => Many::Resources(vec![id]),
                None => Many::Missing,
            };
        }
        let wanted = given("schema").filter(|schema| !schema.is_empty());
        let resources = (0..).zip(view.bundle.resources());
        let chosen = resources
            .filter(|(_, resource)| wanted.is_none_or(|schema| resource.schema.as_deref() == Some(schema)));
        Many::Resources(chosen.map(|(id, _)| id).collect())
    }
}

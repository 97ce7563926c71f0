//! Resolves lists of datafiles and resources, filtered by arguments.

use std::rc::Rc;

use qontract_bundle::Value;

use super::Executor;
use crate::arguments::Arguments;
use crate::failure::{Code, Failure};
use crate::filter::FilterError;
use crate::plan::{FieldPlan, FieldTarget};
use crate::schema::TypeId;
use crate::sink::Sink;
use crate::source::{FileId, ListSource, RawValue, Source};

/// Number of datafiles that are scanned between two checks for cancellation.
const CANCEL_CHECK_INTERVAL: usize = 256;

impl<'a, S: Sink> Executor<'a, S> {
    /// The arguments of a field, read on first use.
    pub(super) fn arguments(&mut self, type_: TypeId, field: &FieldPlan) -> Option<Rc<Arguments>> {
        let (number, given) = field.arguments.as_ref()?;
        let schema = self.task.schema;
        let type_name = match field.target {
            FieldTarget::Field(number) => &*schema.type_(schema.type_(type_).fields[number].shape.named).name,
            _ => "",
        };
        let variables = self.task.variables;
        let slot = &mut self.arguments[*number];
        let read = || Rc::new(Arguments::read(schema, type_name, given, variables));
        Some(Rc::clone(slot.get_or_insert_with(read)))
    }

    /// Whether the elements of a field's list are root elements of the request.
    pub(super) fn has_elements(&self, type_: TypeId) -> bool {
        let plan = self.task.plan;
        plan.selections[plan.root].type_ == type_
    }

    /// The datafiles of a schema that match the arguments and the element selection of the request.
    pub(super) fn datafiles(
        &mut self,
        type_: TypeId,
        field: &FieldPlan,
        schema: &str,
    ) -> Result<ListSource<'a>, Failure> {
        let many = self.datafiles_of(type_, field, schema)?;
        let only = self
            .task
            .only_elements
            .filter(|_| self.has_elements(type_))
            .and_then(|only| only.get(&field.key));
        let Some(only) = only else { return Ok(many) };
        let files = match &many {
            ListSource::Files(files) => files,
            ListSource::Chosen(files) => files.as_slice(),
            _ => &[],
        };
        let wanted = only.iter().filter_map(|path| self.task.view.file(path));
        let mut chosen: Vec<FileId> = wanted.filter(|file| files.binary_search(file).is_ok()).collect();
        chosen.sort_unstable();
        Ok(ListSource::Chosen(chosen))
    }

    fn datafiles_of(
        &mut self,
        type_: TypeId,
        field: &FieldPlan,
        schema: &str,
    ) -> Result<ListSource<'a>, Failure> {
        let view = self.task.view;
        let files = view.index.files_of(schema);
        if files.is_empty() {
            return Ok(ListSource::Files(files));
        }
        let Some(arguments) = self.arguments(type_, field) else { return Ok(ListSource::Files(files)) };
        if let Some(Err(fault)) = &arguments.filter {
            return Err(fault.to_failure());
        }
        if arguments.texts.is_empty() && arguments.filter.is_none() {
            return Ok(ListSource::Files(files));
        }
        let mut chosen = Vec::new();
        let mut consider = |file: FileId| -> Result<(), FilterError> {
            if let Some(touched) = &mut self.record.touched {
                touched.note(Source::File(file));
            }
            let source = Source::File(file);
            let matches = arguments.texts.iter().all(|(name, text)| match view.raw(source, name) {
                RawValue::Text(raw) => raw == &**text,
                RawValue::Value(Value::Str(raw)) => raw == text,
                _ => false,
            });
            if matches && arguments.filter().map_or(Ok(true), |filter| filter.passes(view, source))? {
                chosen.push(file);
            }
            Ok(())
        };
        // A path is looked up in the index; all other arguments need a scan.
        let named = arguments.text("path").map(|path| {
            let file = view.file(path).filter(|file| files.binary_search(file).is_ok());
            file.into_iter().collect::<Vec<_>>()
        });
        let mut considered = Ok(());
        for files in named.as_deref().unwrap_or(files).chunks(CANCEL_CHECK_INTERVAL) {
            if self.task.cancelled.is_some_and(|cancelled| cancelled()) {
                let text = "The request was cancelled before the response was complete.";
                return Err(Failure::new(Code::Cancelled, text));
            }
            considered = considered.and_then(|()| files.iter().copied().try_for_each(&mut consider));
        }
        considered.map_err(|fault| fault.to_failure())?;
        Ok(ListSource::Chosen(chosen))
    }

    /// The resources that match the arguments. If the requested path does not exist, the list has one
    /// element, which is missing.
    pub(super) fn resources(&mut self, type_: TypeId, field: &FieldPlan) -> ListSource<'a> {
        let view = self.task.view;
        let arguments = self.arguments(type_, field);
        let given = |name| arguments.as_ref().and_then(|given| given.text(name));
        if let Some(path) = given("path").filter(|path| !path.is_empty()) {
            return match view.index.resource(path) {
                Some(id) => ListSource::Resources(vec![id]),
                None => ListSource::Missing,
            };
        }
        let wanted = given("schema").filter(|schema| !schema.is_empty());
        let resources = (0..).zip(view.bundle.resources());
        let chosen = resources
            .filter(|(_, resource)| wanted.is_none_or(|schema| resource.schema.as_deref() == Some(schema)));
        ListSource::Resources(chosen.map(|(id, _)| id).collect())
    }
}

//! Coerces the value of a field to the type of the field and writes it.

use std::borrow::Cow;

use super::position::{DataOrigin, ExecutionPosition};
use super::{Executor, WriteAbort, WrittenValue};
use crate::element_selection::{ElementRange, ElementRanges};
use crate::failure::{Code, Failure};
use crate::plan::{FieldPlan, FieldTarget, ValueForm};
use crate::schema::{Dispatch, Kind, TypeId};
use crate::sink::Sink;
use crate::source::{ListSource, RawValue, ResolvedValue, Source};
use qontract_bundle::Value;

impl<'a, S: Sink> Executor<'a, S> {
    /// Writes the value of a field. `type_` is the type of the object that has the field.
    pub(super) fn complete(
        &mut self,
        type_: TypeId,
        field: &'a FieldPlan,
        resolved: ResolvedValue<'a>,
        position: ExecutionPosition<'_>,
    ) -> Result<WrittenValue, WriteAbort> {
        match resolved {
            ResolvedValue::Null if field.shape.required => Err(self.null(type_, field, position)),
            ResolvedValue::Null => {
                self.out.null();
                Ok(WrittenValue::Value)
            }
            ResolvedValue::Many(many) if field.shape.list => self.list(type_, field, &many, position),
            _ if field.shape.list => {
                let name = self.name(type_, field);
                let message = format!("Expected Iterable, but did not find one for field \"{name}\".");
                Err(self.fail_at(message, field, position))
            }
            ResolvedValue::One(source) => self.single_value(type_, field, source, position),
            ResolvedValue::Many(many) => match field.form {
                ValueForm::Scalar(scalar) => {
                    self.scalar_field(field, scalar, &ResolvedValue::Many(many), position)
                }
                ValueForm::Enum | ValueForm::Object(_) | ValueForm::Abstract(_) => {
                    self.single_value(type_, field, Source::Opaque, position)
                }
            },
        }
    }

    fn list(
        &mut self,
        type_: TypeId,
        field: &'a FieldPlan,
        many: &ListSource<'a>,
        position: ExecutionPosition<'_>,
    ) -> Result<WrittenValue, WriteAbort> {
        self.out.begin_list();
        if let (ValueForm::Object(selection), ListSource::Files(files), Some(_)) =
            (&field.form, many, self.out.offset())
        {
            self.column_cursors.open(self.task.plan, *selection, self.task.view, files);
        }
        let has_entities = self.record.elements.is_some() && self.has_elements(type_);
        if let Some(lists) = self.record.elements.as_mut().filter(|_| has_entities) {
            lists.push(ElementRanges { list: field.key.as_ref().into(), elements: Vec::new() });
        }
        let mut written = 0;
        for index in 0..many.len() {
            let (mark, start) = (self.out.mark(), self.out.offset());
            let recorded = self.recorded();
            let path = position.path.map(|path| path.index(index, written));
            let element =
                ExecutionPosition { path: path.as_ref(), origin: DataOrigin::Index(&position.origin, index) };
            let Some(source) = many.element(index) else {
                return Err(self.null(type_, field, element));
            };
            self.out.element();
            if self.single_value(type_, field, source, element)? == WrittenValue::EmptyObject {
                self.rewind(mark, recorded);
            } else {
                written += 1;
                if let (true, Source::File(file), Some(start), Some(end)) =
                    (has_entities, source, start, self.out.offset())
                    && let Some(list) = self.record.elements.as_mut().and_then(|lists| lists.last_mut())
                {
                    list.elements.push(ElementRange { file, bytes: start..end });
                }
            }
        }
        self.out.end_list();
        Ok(WrittenValue::Value)
    }

    /// Writes a single value: the value of a field, or an element of its list.
    fn single_value(
        &mut self,
        type_: TypeId,
        field: &'a FieldPlan,
        source: Source<'a>,
        position: ExecutionPosition<'_>,
    ) -> Result<WrittenValue, WriteAbort> {
        let position = match source {
            Source::File(file) => ExecutionPosition { origin: DataOrigin::File(file), ..position },
            Source::Resource(resource) => {
                ExecutionPosition { origin: DataOrigin::Resource(resource), ..position }
            }
            _ => position,
        };
        match &field.form {
            ValueForm::Scalar(scalar) => {
                self.scalar_field(field, *scalar, &ResolvedValue::One(source), position)
            }
            ValueForm::Enum => {
                if let Source::Text(text) = source {
                    self.out.text(text);
                }
                Ok(WrittenValue::Value)
            }
            ValueForm::Object(selection) => self.object(*selection, source, position),
            ValueForm::Abstract(selections) => {
                let found = self.concrete(field.shape.named, source, &|| self.name(type_, field));
                let found = match found {
                    Ok(id) => id,
                    Err(message) => return Err(self.fail_at(message, field, position)),
                };
                if let Ok(index) = selections.binary_search_by_key(&found, |(id, _)| *id) {
                    return self.object(selections[index].1, source, position);
                }
                let schema = self.task.schema;
                let (found, wanted) = (&schema.type_(found).name, &schema.type_(field.shape.named).name);
                let message =
                    format!("Runtime Object type \"{found}\" is not a possible type for \"{wanted}\".");
                Err(self.fail_at(message, field, position))
            }
        }
    }

    /// Resolves the object type of a value whose field has an interface type.
    fn concrete(
        &self,
        interface: TypeId,
        source: Source<'a>,
        field: &dyn Fn() -> String,
    ) -> Result<TypeId, String> {
        let schema = self.task.schema;
        let name = &schema.type_(interface).name;
        let unknown = || {
            let field = field();
            format!(
                "Abstract type \"{name}\" must resolve to an Object type at runtime for field \"{field}\". Either \
                 the \"{name}\" type should provide a \"resolveType\" function or each possible type should \
                 provide an \"isTypeOf\" function."
            )
        };
        let mut at = interface;
        // An interface that is resolved by schema may yield an interface that is resolved by key. Longer
        // chains do not occur.
        for _ in 0..2 {
            let Kind::Interface(dispatch) = &schema.type_(at).kind else { break };
            at = match dispatch {
                Dispatch::None => return Err(unknown()),
                Dispatch::Schema => {
                    let raw = self.task.view.raw(source, "$schema");
                    let resolved = text_of(raw).and_then(|text| schema.datafile_type(&text));
                    resolved.ok_or_else(unknown)?
                }
                Dispatch::Key { key, types } => {
                    let value = text_of(self.task.view.raw(source, key));
                    let found = value.and_then(|value| types.get(&*value)).ok_or_else(unknown)?;
                    let missing = || {
                        format!(
                            "Abstract type \"{name}\" was resolved to a type \"{found}\" that does not exist \
                             inside the schema."
                        )
                    };
                    schema.type_id(found).ok_or_else(missing)?
                }
            };
        }
        if matches!(schema.type_(at).kind, Kind::Object) {
            return Ok(at);
        }
        let found = &schema.type_(at).name;
        Err(format!("Abstract type \"{name}\" was resolved to a non-object type \"{found}\"."))
    }

    fn null(&mut self, type_: TypeId, field: &FieldPlan, position: ExecutionPosition<'_>) -> WriteAbort {
        let name = self.name(type_, field);
        self.fail_at(format!("Cannot return null for non-nullable field {name}."), field, position)
    }

    pub(super) fn fail_at(
        &mut self,
        message: String,
        field: &FieldPlan,
        position: ExecutionPosition<'_>,
    ) -> WriteAbort {
        match position.path {
            Some(path) => self.fail(Failure::new(Code::Internal, message), field, path),
            None => WriteAbort::NullPropagation,
        }
    }

    /// The name of a field in messages, as `Type.field`.
    fn name(&self, type_: TypeId, field: &FieldPlan) -> String {
        let type_ = self.task.schema.type_(type_);
        let name = match field.target {
            FieldTarget::Field(number) => &type_.fields[number].name,
            FieldTarget::TypeName => "__typename",
            FieldTarget::Schema => "__schema",
            FieldTarget::Type => "__type",
        };
        format!("{}.{name}", type_.name)
    }
}

/// The string form of a value, for the lookup of a type.
fn text_of(raw: RawValue<'_>) -> Option<Cow<'_, str>> {
    match raw {
        RawValue::Text(text) => Some(text.into()),
        RawValue::Value(Value::Str(text)) => Some((&**text).into()),
        RawValue::Value(Value::Bool(value)) => Some(value.to_string().into()),
        RawValue::Value(Value::Null) => Some("null".into()),
        RawValue::Value(value) => {
            crate::input::as_number(value).map(|number| crate::input::show_number(number).into())
        }
        RawValue::Absent | RawValue::Backrefs(_) => None,
    }
}

//! The filter language: `filter: {name: {in: ["a", "b"]}, team: {filter: {name: "core"}}}`.
//!
//! A filter is compiled against the type it filters, then evaluated for each datafile. Its edge cases are
//! part of the API and are documented in `docs/graphql.md`.

use qontract_bundle::Value;
use qontract_bundle::types::{Field, Type};

use crate::data_view::DataView;
use crate::failure::{Code, Failure};
use crate::input::{Input, show_number};
use crate::schema::Schema;
use crate::source::{ListSource, RawValue, ResolvedValue, Source};

/// A compiled filter.
#[derive(Debug)]
pub enum Filter {
    /// The filter is not an object: nothing passes.
    Nothing,
    /// All of these conditions must hold.
    All(Vec<Condition>),
}

/// The test for one key.
#[derive(Debug)]
pub struct Condition {
    key: Box<str>,
    test: FieldTest,
}

#[derive(Debug)]
enum FieldTest {
    /// Equal to this value; a missing key counts as `null`.
    Is(Input),
    /// A list equal to these values, in order.
    IsList(Vec<Input>),
    /// Present, and one of these values.
    In(Vec<Input>),
    /// Not equal to this value.
    Not(Input),
    /// The target of the key passes this filter.
    Passes(Filter),
    /// Fails with this message for every value that is present.
    Fault(&'static str),
}

/// The reason why a filter cannot be compiled or evaluated.
#[derive(Debug)]
pub struct FilterError {
    /// The kind of error.
    pub code: Code,
    /// The message.
    pub message: String,
    /// The type that lacks a field.
    pub type_: Option<Box<str>>,
}

impl FilterError {
    fn internal(message: impl Into<String>) -> Self {
        Self { code: Code::Internal, message: message.into(), type_: None }
    }

    /// Converts the reason to an error of the response, without a location.
    pub fn to_failure(&self) -> Failure {
        Failure { type_: self.type_.clone(), ..Failure::new(self.code, self.message.clone()) }
    }
}

impl Filter {
    /// Compiles `input` for objects of `type_`.
    pub fn compile(schema: &Schema, type_: &Type, input: &Input) -> Result<Self, FilterError> {
        let entries: Vec<(Box<str>, &Input)> = match input {
            Input::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), value)).collect(),
            // The keys of a list are its indices.
            Input::List(items) => {
                items.iter().enumerate().map(|(index, item)| (index.to_string().into(), item)).collect()
            }
            _ => return Ok(Filter::Nothing),
        };
        let mut conditions = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(field) = find(schema, type_, &key) else {
                return Err(FilterError {
                    code: Code::BadFilterField,
                    message: format!("Field \"{key}\" does not exist on type \"{}\"", type_.name),
                    type_: Some(type_.name.clone()),
                });
            };
            conditions.push(Condition { test: FieldTest::compile(schema, field, value)?, key });
        }
        Ok(Filter::All(conditions))
    }

    /// Visits the keys that the filter reads, each with the filter for its target.
    pub fn visit(&self, visit: &mut dyn FnMut(&str, Option<&Filter>)) {
        let Filter::All(conditions) = self else { return };
        for Condition { key, test } in conditions {
            visit(key, if let FieldTest::Passes(inner) = test { Some(inner) } else { None });
        }
    }

    /// Whether an object passes the filter.
    pub fn passes<'a>(&self, view: DataView<'a>, source: Source<'a>) -> Result<bool, FilterError> {
        let Filter::All(conditions) = self else { return Ok(false) };
        for condition in conditions {
            if !condition.holds(view, Some(source))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a list passes the filter. Tests that support lists are evaluated for every element. Other
    /// tests are evaluated for the list itself, which has no keys.
    fn passes_list<'a>(&self, view: DataView<'a>, many: &ListSource<'a>) -> Result<bool, FilterError> {
        let Filter::All(conditions) = self else { return Ok(false) };
        for condition in conditions {
            match &condition.test {
                FieldTest::In(_) | FieldTest::Not(_) | FieldTest::Passes(_) | FieldTest::Fault(_) => {
                    for index in 0..many.len() {
                        if !condition.holds(view, many.element(index))? {
                            return Ok(false);
                        }
                    }
                }
                FieldTest::Is(_) | FieldTest::IsList(_) => {
                    if !condition.holds(view, Some(Source::Opaque))? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

impl FieldTest {
    fn compile(schema: &Schema, field: &Field, value: &Input) -> Result<Self, FilterError> {
        if let Input::List(items) = value
            && field.is_list
        {
            return Ok(FieldTest::IsList(items.clone()));
        }
        if let Some(set) = value.get("in") {
            return Ok(FieldTest::In(set_of(set)?));
        }
        if let Some(filter) = value.get("filter") {
            return match schema.described().of_field(field) {
                Some(_) if !filter.is_given() => {
                    Ok(FieldTest::Fault("Cannot convert undefined or null to object"))
                }
                Some(inner) => Ok(FieldTest::Passes(Filter::compile(schema, inner, filter)?)),
                None => Ok(FieldTest::Fault("Cannot read properties of undefined (reading 'name')")),
            };
        }
        if let Some(other) = value.get("ne") {
            return Ok(FieldTest::Not(other.clone()));
        }
        Ok(FieldTest::Is(value.clone()))
    }
}

impl Condition {
    fn holds<'a>(&self, view: DataView<'a>, source: Option<Source<'a>>) -> Result<bool, FilterError> {
        let key = &*self.key;
        let Some(source) = source else {
            return Err(FilterError::internal(match self.test {
                FieldTest::In(_) => format!("Cannot use 'in' operator to search for '{key}' in null"),
                _ => format!("Cannot read properties of null (reading '{key}')"),
            }));
        };
        let raw = view.raw(source, key);
        match &self.test {
            FieldTest::Is(value) => Ok(is(value, raw)),
            FieldTest::Not(value) => Ok(!is(value, raw)),
            FieldTest::IsList(values) => Ok(match raw {
                RawValue::Value(Value::List(items)) => {
                    let same = |(value, item): (&Input, &Value)| value.is(Some(item));
                    items.len() == values.len() && values.iter().zip(items).all(same)
                }
                _ => false,
            }),
            FieldTest::In(values) => match (source, raw) {
                (Source::Value(scalar), _) if scalar.as_map().is_none() && scalar.as_list().is_none() => {
                    let shown = match Input::from(scalar) {
                        Input::Text(text) => text.to_string(),
                        other => crate::input::inspect(&other),
                    };
                    let message = format!("Cannot use 'in' operator to search for '{key}' in {shown}");
                    Err(FilterError::internal(message))
                }
                (_, RawValue::Absent) => Ok(false),
                _ => Ok(values.iter().any(|value| is(value, raw))),
            },
            FieldTest::Passes(filter) => match follow(view, resolved(view, source, key))? {
                ResolvedValue::Null => Ok(false),
                ResolvedValue::One(source) => filter.passes(view, source),
                ResolvedValue::Many(many) => filter.passes_list(view, &many),
            },
            FieldTest::Fault(message) => match follow(view, resolved(view, source, key))? {
                ResolvedValue::Null => Ok(false),
                _ => Err(FilterError::internal(*message)),
            },
        }
    }
}

/// The raw value of a field, where `schema` stands for the key `$schema`. Tests that do not call this
/// function read the key `schema` itself.
fn resolved<'a>(view: DataView<'a>, source: Source<'a>, key: &str) -> RawValue<'a> {
    view.raw(source, if key == "schema" { "$schema" } else { key })
}

/// The target of a key; `null` counts as missing here.
fn follow<'a>(view: DataView<'a>, raw: RawValue<'a>) -> Result<ResolvedValue<'a>, FilterError> {
    match raw {
        RawValue::Value(Value::Null) => Ok(ResolvedValue::Null),
        other => view.follow(other).map_err(|error| FilterError::internal(error.to_string())),
    }
}

fn is(value: &Input, raw: RawValue<'_>) -> bool {
    match raw {
        RawValue::Absent => value.is(None),
        RawValue::Value(raw) => value.is(Some(raw)),
        RawValue::Text(text) => matches!(value, Input::Text(mine) if **mine == *text),
        RawValue::Backrefs(_) => false,
    }
}

/// The elements of a set; a string is the set of its characters.
fn set_of(set: &Input) -> Result<Vec<Input>, FilterError> {
    match set {
        Input::List(items) => Ok(items.clone()),
        Input::Text(text) => Ok(text.chars().map(|one| Input::Text(one.to_string().into())).collect()),
        Input::Null | Input::Undefined => Ok(Vec::new()),
        Input::Number(number) => Err(not_iterable("number", &show_number(*number))),
        Input::Bool(value) => Err(not_iterable("boolean", &value.to_string())),
        Input::Object(_) => Err(FilterError::internal(
            "object is not iterable (cannot read property Symbol(Symbol.iterator))",
        )),
    }
}

fn not_iterable(type_: &str, value: &str) -> FilterError {
    let message = format!("{type_} {value} is not iterable (cannot read property Symbol(Symbol.iterator))");
    FilterError::internal(message)
}

/// Finds a field of a type for a filter; for an interface whose types are resolved by the value of a field, a
/// field of any of these types.
pub fn find<'s>(schema: &'s Schema, type_: &'s Type, name: &str) -> Option<&'s Field> {
    type_.field(name).or_else(|| {
        let (_, types) = type_.field_map()?;
        types.values().find_map(|mapped| schema.described().get(mapped)?.field(name))
    })
}

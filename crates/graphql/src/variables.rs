//! The variables of a request, checked against their declared types.

use std::collections::HashMap;

use apollo_compiler::Node;
use apollo_compiler::ast::{self, Type, VariableDefinition};
use qontract_bundle::{Map, Value};

use crate::failure::{Code, Failure};
use crate::input::{Input, inspect};
use crate::location::RequestLines;
use crate::schema::{Kind, Scalar, Schema};
use crate::suggestions::enum_hint;

/// Maximum number of reported errors, as in graphql-js.
const MAX_ERRORS: usize = 50;

/// The values of variables, by name. A variable without a value and without a default is omitted.
#[derive(Debug, Default)]
pub struct Variables {
    values: HashMap<Box<str>, Input>,
}

impl Variables {
    /// The value of the variable `name`.
    pub fn get(&self, name: &str) -> Option<&Input> {
        self.values.get(name)
    }

    /// Converts a literal and replaces the variables in it by their values.
    pub fn resolve(&self, literal: &ast::Value) -> Input {
        match literal {
            ast::Value::Null => Input::Null,
            ast::Value::Boolean(value) => Input::Bool(*value),
            ast::Value::Enum(name) => Input::Text(name.as_str().into()),
            ast::Value::String(text) => Input::Text(text.as_str().into()),
            ast::Value::Variable(name) => self.get(name).cloned().unwrap_or(Input::Undefined),
            ast::Value::Int(digits) => Input::Number(digits.as_str().parse().unwrap_or(f64::INFINITY)),
            ast::Value::Float(digits) => Input::Number(digits.as_str().parse().unwrap_or(f64::INFINITY)),
            ast::Value::List(items) => {
                let item = |item: &ast::Value| match self.resolve(item) {
                    // Lists cannot contain undefined elements.
                    Input::Undefined => Input::Null,
                    other => other,
                };
                Input::List(items.iter().map(|literal| item(literal)).collect())
            }
            ast::Value::Object(fields) => {
                let mut entries: Vec<(Box<str>, Input)> = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    let value = self.resolve(value);
                    match entries.iter_mut().find(|(known, _)| **known == *name.as_str()) {
                        Some(known) => known.1 = value,
                        None => entries.push((name.as_str().into(), value)),
                    }
                }
                Input::Object(entries)
            }
        }
    }

    /// Coerces the given values to the declared types, and collects all errors.
    pub fn coerce(
        schema: &Schema,
        declared: &[Node<VariableDefinition>],
        given: Option<&Map>,
        lines: &RequestLines,
    ) -> Result<Self, Vec<Failure>> {
        let mut values = HashMap::new();
        let mut failures = Vec::new();
        for variable in declared {
            let name = variable.name.as_str();
            let mut fail = |message: String| {
                let mut failure = Failure::new(Code::BadUserInput, message);
                failure.locations.extend(lines.of_span(variable.location()));
                failures.push(failure);
            };
            let Some(value) = given.and_then(|given| given.get(name)) else {
                if let Some(default) = &variable.default_value {
                    let literal = Variables::default().resolve(default);
                    values.insert(name.into(), wrap(literal, &variable.ty));
                } else if variable.ty.is_non_null() {
                    let type_ = &variable.ty;
                    fail(format!("Variable \"${name}\" of required type \"{type_}\" was not provided."));
                }
                continue;
            };
            if *value == Value::Null && variable.ty.is_non_null() {
                let type_ = &variable.ty;
                fail(format!("Variable \"${name}\" of non-null type \"{type_}\" must not be null."));
                continue;
            }
            let mut coercion = Coercion { schema, errors: Vec::new() };
            let coerced = coercion.value(value, &variable.ty, "");
            for CoercionError { path, value, why } in coercion.errors {
                let at = if path.is_empty() { String::new() } else { format!(" at \"{name}{path}\"") };
                let shown = inspect(&Input::from(value));
                fail(format!("Variable \"${name}\" got invalid value {shown}{at}; {why}"));
            }
            values.insert(name.into(), coerced);
        }
        if failures.len() > MAX_ERRORS {
            failures.truncate(MAX_ERRORS);
            let message = "Too many errors processing variables, error limit reached. Execution aborted.";
            // The error has no location, and qontract-server derives the error code from the location, so the
            // code is `Internal`.
            failures.push(Failure::new(Code::Internal, message));
        }
        if failures.is_empty() { Ok(Self { values }) } else { Err(failures) }
    }
}

/// Wraps a single value in a list if the type is a list, recursively.
fn wrap(input: Input, type_: &Type) -> Input {
    match (type_, input) {
        (Type::List(inner) | Type::NonNullList(inner), Input::List(items)) => {
            Input::List(items.into_iter().map(|item| wrap(item, inner)).collect())
        }
        (Type::List(inner) | Type::NonNullList(inner), single) if single.is_given() => {
            Input::List(vec![wrap(single, inner)])
        }
        (_, other) => other,
    }
}

/// A value that does not have the declared type.
struct CoercionError<'a> {
    /// The path in the value of the variable.
    path: String,
    /// The value at `path`.
    value: &'a Value,
    /// The message.
    why: String,
}

struct Coercion<'a> {
    schema: &'a Schema,
    errors: Vec<CoercionError<'a>>,
}

impl<'a> Coercion<'a> {
    fn value(&mut self, value: &'a Value, type_: &Type, path: &str) -> Input {
        if *value == Value::Null {
            if type_.is_non_null() {
                let why = format!("Expected non-nullable type \"{type_}\" not to be null.");
                self.errors.push(CoercionError { path: path.to_owned(), value, why });
            }
            return Input::Null;
        }
        match type_ {
            Type::List(inner) | Type::NonNullList(inner) => {
                let Value::List(items) = value else {
                    return Input::List(vec![self.value(value, inner, path)]);
                };
                let item = |(index, item)| self.value(item, inner, &format!("{path}[{index}]"));
                Input::List(items.iter().enumerate().map(item).collect())
            }
            Type::Named(name) | Type::NonNullNamed(name) => {
                match self.leaf(value, name) {
                    Ok(()) => {}
                    Err(why) => self.errors.push(CoercionError { path: path.to_owned(), value, why }),
                }
                Input::from(value)
            }
        }
    }

    fn leaf(&self, value: &Value, name: &str) -> Result<(), String> {
        let shown = || inspect(&Input::from(value));
        let known = self.schema.type_id(name).map(|id| self.schema.type_(id));
        let Some(type_) = known else { return Err(format!("Expected type \"{name}\".")) };
        let number = crate::input::as_number(value);
        match &type_.kind {
            Kind::Scalar(Scalar::String) if value.as_str().is_none() => {
                Err(format!("String cannot represent a non string value: {}", shown()))
            }
            Kind::Scalar(Scalar::Boolean) if !matches!(value, Value::Bool(_)) => {
                Err(format!("Boolean cannot represent a non boolean value: {}", shown()))
            }
            Kind::Scalar(Scalar::Float) if number.is_none() => {
                Err(format!("Float cannot represent non numeric value: {}", shown()))
            }
            Kind::Scalar(Scalar::Int) => match number {
                Some(number) if number.fract() != 0.0 || !number.is_finite() => {
                    Err(format!("Int cannot represent non-integer value: {}", shown()))
                }
                None => Err(format!("Int cannot represent non-integer value: {}", shown())),
                Some(number) if number > f64::from(i32::MAX) || number < f64::from(i32::MIN) => {
                    Err(format!("Int cannot represent non 32-bit signed integer value: {}", shown()))
                }
                Some(_) => Ok(()),
            },
            Kind::Enum => match value.as_str() {
                None => {
                    let shown = shown();
                    let hint = enum_hint(&shown, &type_.values);
                    Err(format!("Enum \"{name}\" cannot represent non-string value: {shown}.{hint}"))
                }
                Some(text) if type_.values.iter().any(|(known, _)| &**known == text) => Ok(()),
                Some(text) => {
                    let hint = enum_hint(text, &type_.values);
                    Err(format!("Value \"{text}\" does not exist in \"{name}\" enum.{hint}"))
                }
            },
            Kind::Scalar(_) => Ok(()),
            Kind::Object | Kind::Interface(_) => Err(format!("Expected type \"{name}\".")),
        }
    }
}

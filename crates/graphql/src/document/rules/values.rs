//! Checks values against their expected types.

use std::collections::HashMap;

use super::print::print;
use super::types::{ExpectedType, InputType};
use super::{Checker, Usage};
use crate::document::syntax::tree::{Literal, Name, Value, Variable};
use crate::schema::{Kind, Scalar};
use crate::suggestions::enum_hint;

impl<'c, 't> Checker<'c, 't> {
    /// Checks the declaration of a variable.
    pub(super) fn variable(&mut self, variable: &'c Variable<'t>) {
        let type_ = InputType::of(self.schema, &variable.type_);
        let input = type_.filter(|type_| {
            let fits = self.schema.is_input(type_.named);
            if !fits {
                let (name, shown) = (variable.name.text, &variable.type_);
                let message = format!("Variable \"${name}\" cannot be non-input type \"{shown}\".");
                self.report(message, [variable.type_.at]);
            }
            fits
        });
        self.unique_directives(&variable.directives);
        self.known_type(variable.type_.named(), false);
        if let Some(default) = &variable.default {
            self.value(default, input.map(ExpectedType::without_default), false);
        }
        self.directives(&variable.directives, "VARIABLE_DEFINITION", None);
    }

    /// Checks a value against the expected type. If a value was already checked, or is invalid, the values
    /// inside it are not compared with the type again.
    pub(super) fn value(&mut self, value: &'c Value<'t>, expected: Option<ExpectedType>, inside: bool) {
        match &value.literal {
            Literal::Variable(name) => {
                if let Some(usages) = self.usages.last_mut() {
                    usages.push(Usage { name, at: value.at, expected });
                }
            }
            Literal::List(items) => {
                let list = expected.as_ref().map(|expected| expected.type_.nullable());
                let element = list.as_ref().and_then(InputType::element);
                let checked = inside || element.is_none();
                let inner = element.or(list);
                if !inside && checked {
                    self.leaf(value, inner.as_ref());
                }
                for item in items {
                    self.value(item, inner.clone().map(ExpectedType::without_default), checked);
                }
            }
            Literal::Object(fields) => {
                if !inside {
                    self.leaf(value, expected.as_ref().map(|expected| &expected.type_));
                }
                let mut seen: HashMap<&str, usize> = HashMap::new();
                for (Name { text, at }, value) in fields {
                    if let Some(first) = seen.get(text) {
                        let message = format!("There can be only one input field named \"{text}\".");
                        self.report(message, [*first, *at]);
                    } else {
                        seen.insert(text, *at);
                    }
                    self.value(value, None, true);
                }
            }
            Literal::Null => {
                let non_null = expected.filter(|expected| !inside && expected.type_.is_non_null());
                if let Some(ExpectedType { type_, .. }) = non_null {
                    let shown = type_.show(self.schema);
                    self.report(format!("Expected value of type \"{shown}\", found null."), [value.at]);
                }
            }
            _ if inside => {}
            _ => self.leaf(value, expected.as_ref().map(|expected| &expected.type_)),
        }
    }

    /// Checks a value against the scalar or enum inside of the type.
    fn leaf(&mut self, value: &Value<'_>, type_: Option<&InputType>) {
        let Some(type_) = type_ else { return };
        let named = self.schema.type_(type_.named);
        let message = match (&named.kind, &value.literal) {
            (Kind::Scalar(Scalar::Int), Literal::Int(digits)) => {
                let fits = digits.parse::<i64>().is_ok_and(|number| i32::try_from(number).is_ok());
                if fits {
                    return;
                }
                format!("Int cannot represent non 32-bit signed integer value: {digits}")
            }
            (Kind::Scalar(Scalar::Json) | Kind::Object | Kind::Interface(_), _)
            | (Kind::Scalar(Scalar::Float), Literal::Int(_) | Literal::Float(_))
            | (Kind::Scalar(Scalar::String), Literal::String(_) | Literal::Block(_))
            | (Kind::Scalar(Scalar::Boolean), Literal::Boolean(_)) => return,
            (Kind::Scalar(Scalar::Int), _) => {
                format!("Int cannot represent non-integer value: {}", print(value))
            }
            (Kind::Scalar(Scalar::Float), _) => {
                format!("Float cannot represent non numeric value: {}", print(value))
            }
            (Kind::Scalar(Scalar::String), _) => {
                format!("String cannot represent a non string value: {}", print(value))
            }
            (Kind::Scalar(Scalar::Boolean), _) => {
                format!("Boolean cannot represent a non boolean value: {}", print(value))
            }
            (Kind::Enum, literal) => {
                let (shown, name) = (print(value), &named.name);
                let hint = || enum_hint(&shown, &named.values);
                match literal {
                    Literal::Enum(given) if named.values.iter().any(|(name, _)| &**name == *given) => return,
                    Literal::Enum(_) => {
                        format!("Value \"{shown}\" does not exist in \"{name}\" enum.{}", hint())
                    }
                    _ => format!("Enum \"{name}\" cannot represent non-enum value: {shown}.{}", hint()),
                }
            }
        };
        self.report(message, [value.at]);
    }
}

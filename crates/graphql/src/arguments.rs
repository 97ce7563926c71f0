//! The values of a field's arguments.

use crate::filter::{Filter, FilterError};
use crate::input::Input;
use crate::plan::Argument;
use crate::schema::Schema;
use crate::variables::Variables;

/// The values of a field's arguments.
#[derive(Debug)]
pub struct Arguments {
    /// String values by name; null values are omitted.
    pub texts: Vec<(Box<str>, Box<str>)>,
    /// The filter, or the reason why it is invalid.
    pub filter: Option<Result<Filter, FilterError>>,
}

impl Arguments {
    /// Reads the arguments of a field whose type is named `type_name`.
    pub fn read(schema: &Schema, type_name: &str, given: &[Argument], variables: &Variables) -> Self {
        let mut arguments = Self { texts: Vec::new(), filter: None };
        for Argument { name, value } in given {
            match variables.resolve(value) {
                input if &**name == "filter" && input.is_given() => {
                    let type_ = schema.described().get(type_name);
                    arguments.filter = type_.map(|type_| Filter::compile(schema, type_, &input));
                }
                Input::Text(text) => arguments.texts.push((name.clone(), text)),
                _ => {}
            }
        }
        arguments
    }

    /// The string value with this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.iter().find(|(key, _)| &**key == name).map(|(_, text)| &**text)
    }

    /// Names of the string values.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|(name, _)| &**name)
    }

    /// The filter, if it exists and is valid.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()?.as_ref().ok()
    }
}

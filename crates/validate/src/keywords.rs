//! The keywords of JSON Schema draft 6, and the locations of subschemas.

use qontract_bundle::{Map, Value};

/// The kind of value a keyword has, by the subschemas in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// No schema.
    Plain,
    /// One schema.
    Schema,
    /// A list of schemas.
    List,
    /// Schemas by name.
    Map,
    /// One schema, or a list of them.
    SchemaOrList,
    /// By name, schemas or lists of names.
    Dependencies,
}

/// All keywords that have a meaning in a schema of a data repo.
pub const KEYWORDS: &[(&str, Holds)] = &[
    ("$id", Holds::Plain),
    ("$ref", Holds::Plain),
    ("$schema", Holds::Plain),
    ("$schemaRef", Holds::Plain),
    ("additionalItems", Holds::Schema),
    ("additionalProperties", Holds::Schema),
    ("allOf", Holds::List),
    ("anyOf", Holds::List),
    ("const", Holds::Plain),
    ("contains", Holds::Schema),
    ("default", Holds::Plain),
    ("definitions", Holds::Map),
    ("dependencies", Holds::Dependencies),
    ("description", Holds::Plain),
    ("enum", Holds::Plain),
    ("examples", Holds::Plain),
    ("exclusiveMaximum", Holds::Plain),
    ("exclusiveMinimum", Holds::Plain),
    ("format", Holds::Plain),
    ("items", Holds::SchemaOrList),
    ("maxItems", Holds::Plain),
    ("maxLength", Holds::Plain),
    ("maxProperties", Holds::Plain),
    ("maximum", Holds::Plain),
    ("minItems", Holds::Plain),
    ("minLength", Holds::Plain),
    ("minProperties", Holds::Plain),
    ("minimum", Holds::Plain),
    ("multipleOf", Holds::Plain),
    ("not", Holds::Schema),
    ("oneOf", Holds::List),
    ("pattern", Holds::Plain),
    ("patternProperties", Holds::Map),
    ("properties", Holds::Map),
    ("propertyNames", Holds::Schema),
    ("required", Holds::Plain),
    ("title", Holds::Plain),
    ("type", Holds::Plain),
    ("uniqueItems", Holds::Plain),
];

/// The kind of the keyword `name`; `None` if it is not a keyword.
pub fn holds(name: &str) -> Option<Holds> {
    KEYWORDS.iter().find(|(known, _)| *known == name).map(|(_, holds)| *holds)
}

/// Visits `schema` and its subschemas, with the JSON pointer of each.
pub fn each_schema<'v>(schema: &'v Value, pointer: &mut String, visit: &mut impl FnMut(&'v Map, &str)) {
    let Value::Map(map) = schema else { return };
    visit(map, pointer);
    for (key, value) in map.iter() {
        let Some(holds) = holds(key.as_str()) else { continue };
        let length = pointer.len();
        push(pointer, key.as_str());
        match (holds, value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Map(_)) => each_schema(value, pointer, visit),
            (Holds::List | Holds::SchemaOrList, Value::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let length = pointer.len();
                    push(pointer, &index.to_string());
                    each_schema(item, pointer, visit);
                    pointer.truncate(length);
                }
            }
            (Holds::Map | Holds::Dependencies, Value::Map(schemas)) => {
                for (name, schema) in schemas.iter() {
                    let length = pointer.len();
                    push(pointer, name.as_str());
                    each_schema(schema, pointer, visit);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        pointer.truncate(length);
    }
}

/// Appends a reference token to a JSON pointer, escaped.
pub fn push(pointer: &mut String, step: &str) {
    pointer.push('/');
    for character in step.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// A JSON pointer with one more reference token.
pub fn below(pointer: &str, step: &str) -> String {
    let mut pointer = pointer.to_owned();
    push(&mut pointer, step);
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(KEYWORDS.is_sorted_by_key(|(name, _)| *name));
    }
}

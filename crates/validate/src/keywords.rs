//! The keywords of JSON Schema draft 6, and the locations of subschemas.

use qontract_bundle::{Map, Value};

/// The kind of a keyword, according to the subschemas in its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeywordKind {
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
    /// For each name, a schema or a list of names.
    Dependencies,
}

/// All keywords that have a meaning in a schema of a data repo.
pub const KEYWORDS: &[(&str, KeywordKind)] = &[
    ("$id", KeywordKind::Plain),
    ("$ref", KeywordKind::Plain),
    ("$schema", KeywordKind::Plain),
    ("$schemaRef", KeywordKind::Plain),
    ("additionalItems", KeywordKind::Schema),
    ("additionalProperties", KeywordKind::Schema),
    ("allOf", KeywordKind::List),
    ("anyOf", KeywordKind::List),
    ("const", KeywordKind::Plain),
    ("contains", KeywordKind::Schema),
    ("default", KeywordKind::Plain),
    ("definitions", KeywordKind::Map),
    ("dependencies", KeywordKind::Dependencies),
    ("description", KeywordKind::Plain),
    ("enum", KeywordKind::Plain),
    ("examples", KeywordKind::Plain),
    ("exclusiveMaximum", KeywordKind::Plain),
    ("exclusiveMinimum", KeywordKind::Plain),
    ("format", KeywordKind::Plain),
    ("items", KeywordKind::SchemaOrList),
    ("maxItems", KeywordKind::Plain),
    ("maxLength", KeywordKind::Plain),
    ("maxProperties", KeywordKind::Plain),
    ("maximum", KeywordKind::Plain),
    ("minItems", KeywordKind::Plain),
    ("minLength", KeywordKind::Plain),
    ("minProperties", KeywordKind::Plain),
    ("minimum", KeywordKind::Plain),
    ("multipleOf", KeywordKind::Plain),
    ("not", KeywordKind::Schema),
    ("oneOf", KeywordKind::List),
    ("pattern", KeywordKind::Plain),
    ("patternProperties", KeywordKind::Map),
    ("properties", KeywordKind::Map),
    ("propertyNames", KeywordKind::Schema),
    ("required", KeywordKind::Plain),
    ("title", KeywordKind::Plain),
    ("type", KeywordKind::Plain),
    ("uniqueItems", KeywordKind::Plain),
];

/// The kind of the keyword `name`; `None` if it is not a keyword.
pub fn keyword_kind(name: &str) -> Option<KeywordKind> {
    KEYWORDS.iter().find(|(known, _)| *known == name).map(|(_, holds)| *holds)
}

/// Visits `schema` and its subschemas, with the JSON pointer of each.
pub fn visit_schemas<'v>(schema: &'v Value, pointer: &mut String, visit: &mut impl FnMut(&'v Map, &str)) {
    let Value::Map(map) = schema else { return };
    visit(map, pointer);
    for (key, value) in map.iter() {
        let Some(holds) = keyword_kind(key.as_str()) else { continue };
        let length = pointer.len();
        push_token(pointer, key.as_str());
        match (holds, value) {
            (KeywordKind::Schema | KeywordKind::SchemaOrList, Value::Map(_)) => {
                visit_schemas(value, pointer, visit);
            }
            (KeywordKind::List | KeywordKind::SchemaOrList, Value::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let length = pointer.len();
                    push_token(pointer, &index.to_string());
                    visit_schemas(item, pointer, visit);
                    pointer.truncate(length);
                }
            }
            (KeywordKind::Map | KeywordKind::Dependencies, Value::Map(schemas)) => {
                for (name, schema) in schemas.iter() {
                    let length = pointer.len();
                    push_token(pointer, name.as_str());
                    visit_schemas(schema, pointer, visit);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        pointer.truncate(length);
    }
}

/// Appends a reference token to a JSON pointer, escaped.
pub fn push_token(pointer: &mut String, step: &str) {
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
pub fn child_pointer(pointer: &str, step: &str) -> String {
    let mut pointer = pointer.to_owned();
    push_token(&mut pointer, step);
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

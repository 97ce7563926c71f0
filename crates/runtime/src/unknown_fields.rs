//! Recognises a query that cannot be executed only because the GraphQL types lack some of its fields.

use std::collections::BTreeSet;

/// The unknown fields that these messages of GraphQL errors name, as `Type.field`, or as `Type` for a type that does
/// not exist; `None` if one of the messages is another error.
///
/// The messages are those of graphql-js, which data servers and the engine share. A query that fails for another
/// reason must never be treated as a query with unknown fields, so every message must match completely.
///
/// ```
/// use qontract_runtime::unknown_fields;
///
/// let unknown = "Cannot query field \"windows\" on type \"SaasFile_v2\". Did you mean \"window\"?";
/// let fields = unknown_fields(&[unknown]).unwrap();
/// assert_eq!(fields.into_iter().collect::<Vec<_>>(), ["SaasFile_v2.windows"]);
/// assert_eq!(unknown_fields(&[unknown, "Cannot return null"]), None);
/// ```
pub fn unknown_fields(messages: &[&str]) -> Option<BTreeSet<String>> {
    let fields: BTreeSet<String> =
        messages.iter().map(|message| unknown_field(message)).collect::<Option<_>>()?;
    (!fields.is_empty()).then_some(fields)
}

fn unknown_field(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("Cannot query field \"") {
        let (field, rest) = name(rest)?;
        let (type_, rest) = name(rest.strip_prefix(" on type \"")?)?;
        return is_end(rest).then(|| format!("{type_}.{field}"));
    }
    let (type_, rest) = name(message.strip_prefix("Unknown type \"")?)?;
    is_end(rest).then(|| type_.to_owned())
}

/// Splits a text into a GraphQL name that ends with a quotation mark, and the text after it.
fn name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('"')?;
    let is_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, rest))
}

/// Whether the text is the end of a message: a full stop and, if there are similar names, a suggestion.
fn is_end(rest: &str) -> bool {
    rest == "." || (rest.starts_with(". Did you mean ") && rest.ends_with('?'))
}

#[cfg(test)]
mod tests {
    use super::unknown_fields;

    #[test]
    fn only_errors_about_unknown_fields_are_recognised() {
        let check = |messages: &[&str], expect: Option<&[&str]>| {
            let fields = unknown_fields(messages).map(|fields| fields.into_iter().collect::<Vec<_>>());
            assert_eq!(
                fields.as_deref(),
                expect
                    .map(|fields| fields.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
                    .as_deref()
            );
        };
        let field = "Cannot query field \"a\" on type \"T\".";
        check(&[field], Some(&["T.a"]));
        check(&[field, "Unknown type \"U_v1\"."], Some(&["T.a", "U_v1"]));
        check(
            &["Cannot query field \"a\" on type \"T\". Did you mean to use an inline fragment on \"B\"?"],
            Some(&["T.a"]),
        );
        check(&[], None);
        check(&["Unknown argument \"a\" on field \"T.b\"."], None);
        check(&["Cannot query field \"a\" on type \"T\" today."], None);
        check(&[field, "the server is overloaded"], None);
        check(&["Cannot return null for non-nullable field T.a."], None);
    }
}

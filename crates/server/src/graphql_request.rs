//! GraphQL over HTTP: parses request parameters as Apollo Server does. Pure.

use hyper::StatusCode;
use qontract_bundle::json::JsonParser;
use qontract_bundle::{Map, Value};

use crate::query_extension::QueryExtension;
use crate::route::decode_lossy;

/// The parameters of a GraphQL request.
#[derive(Debug, Default, PartialEq)]
pub struct GraphqlParams {
    /// The query; `None` if the client refers to a persisted query instead.
    pub query: Option<String>,
    /// The name of the operation to execute.
    pub operation: Option<String>,
    /// The values of the variables.
    pub variables: Option<Map>,
    /// The persisted query that the request refers to.
    pub persisted: Option<PersistedQueryId>,
    /// The extension that a client of qontract uses in addition to GraphQL.
    pub extension: Option<QueryExtension>,
}

/// The identifier of a persisted query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersistedQueryId {
    /// The SHA-256 of the query, in hexadecimal.
    Digest(String),
    /// The version of the persisted-query protocol is not supported.
    UnsupportedVersion,
}

/// The response to an invalid request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A status with an error message as JSON.
    Json(StatusCode, String),
    /// A status with an error page.
    Page(StatusCode),
}

const MISSING_BODY: &str = "POST body missing, invalid Content-Type, or JSON object has no keys.";
const QUERY_NOT_A_STRING: &str = "GraphQL queries must be strings.";
const QUERY_IS_PARSED: &str = "GraphQL queries must be strings. It looks like you're sending the internal graphql-js \
    representation of a parsed query in your request instead of a request in the GraphQL query language. You can \
    convert an AST to a string using the `print` function from `graphql`, or use a client like `apollo-client` which \
    converts the internal representation to a string for you.";

fn refused(message: impl Into<String>) -> Refusal {
    Refusal::Json(StatusCode::BAD_REQUEST, message.into())
}

/// Parses the body as JSON if the content type is JSON. Invalid JSON is refused on every route.
pub fn json_of(content_type: Option<&str>, body: &[u8]) -> Result<Option<Value>, Refusal> {
    let (media_type, charset) = media(content_type.unwrap_or_default());
    if !media_type.eq_ignore_ascii_case("application/json") || body.is_empty() {
        return Ok(None);
    }
    let bad = || Refusal::Page(StatusCode::BAD_REQUEST);
    let text = match charset.map(str::to_ascii_lowercase).as_deref() {
        None | Some("utf-8") => String::from_utf8_lossy(body).into_owned(),
        Some("utf-16" | "utf-16le") => utf16(body),
        Some(_) => return Err(Refusal::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // Only objects and lists are accepted, which is checked before parsing.
    if !text.trim_start().starts_with(['{', '[']) {
        return Err(bad());
    }
    JsonParser::new(text).parse().map(Some).map_err(|_| match unpaired_surrogate(text) {
        Some(unit) => refused(format!("Syntax Error: Invalid character: U+{unit:04X}.")),
        None => bad(),
    })
}

/// The first unpaired surrogate in the `query` of a body that is otherwise valid JSON. JavaScript accepts an unpaired
/// surrogate in a string, but GraphQL rejects it.
fn unpaired_surrogate(text: &str) -> Option<u16> {
    let (mut units, mut replaced, mut rest) = (Vec::new(), String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        let escape = unit_at(&rest[at..]);
        let next = escape.and_then(|_| unit_at(rest.get(at + 6..)?));
        let (length, by) = match (escape, next) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (12, None),
            (Some(unit @ 0xd800..0xe000), _) => (6, Some(unit)),
            (Some(_), _) => (6, None),
            (None, _) => (2, None),
        };
        let end = (at..=at + length).rev().find(|end| rest.is_char_boundary(*end))?;
        match by {
            None => replaced.push_str(&rest[..end]),
            Some(unit) => {
                replaced.push_str(&rest[..at]);
                replaced.push(char::from_u32(PRIVATE_USE + u32::try_from(units.len()).ok()?)?);
                units.push(unit);
            }
        }
        rest = &rest[end..];
    }
    replaced.push_str(rest);
    let value = JsonParser::new(&replaced).parse().ok()?;
    let query = value.get("query")?.as_str()?;
    query.chars().find_map(|letter| {
        let number = u32::from(letter).checked_sub(PRIVATE_USE)?;
        units.get(usize::try_from(number).ok()?).copied()
    })
}

/// Start of the private-use characters that stand for surrogates while a body is searched for them.
const PRIVATE_USE: u32 = 0xf_0000;

/// The UTF-16 code unit of the escape sequence at the start of a string.
fn unit_at(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Parses the body of a `POST`.
pub fn read_body(body: Option<&Value>) -> Result<GraphqlParams, Refusal> {
    let fields = match body {
        Some(Value::Map(fields)) if !fields.is_empty() => fields,
        Some(Value::List(_)) => return Err(refused("Operation batching disabled.")),
        _ => return Err(refused(MISSING_BODY)),
    };
    for name in ["variables", "extensions"] {
        match fields.get(name) {
            None | Some(Value::Null | Value::Map(_)) => {}
            Some(Value::Str(_)) => {
                return Err(refused(format!(
                    "`{name}` in a POST body should be provided as an object, not a recursively JSON-encoded string."
                )));
            }
            Some(_) => {
                return Err(refused(format!("`{name}` in a POST body must be an object if provided.")));
            }
        }
    }
    let operation = match fields.get("operationName") {
        None | Some(Value::Null) => None,
        Some(Value::Str(name)) => Some(name.to_string()),
        Some(_) => return Err(refused("`operationName` in a POST body must be a string if provided.")),
    };
    let query = match fields.get("query") {
        None | Some(Value::Null | Value::Bool(false) | Value::Int(0)) => None,
        Some(Value::Str(text)) => Some(text.to_string()),
        Some(Value::Map(map)) if map.get("kind").and_then(Value::as_str) == Some("Document") => {
            return Err(refused(QUERY_IS_PARSED));
        }
        Some(_) => return Err(refused(QUERY_NOT_A_STRING)),
    };
    let object = |name: &str| fields.get(name).and_then(Value::as_map);
    let persisted = object("extensions").and_then(persisted);
    let extension = object("extensions").map(QueryExtension::parse).transpose().map_err(refused)?.flatten();
    Ok(GraphqlParams { query, operation, variables: object("variables").cloned(), persisted, extension })
}

/// Parses the parameters of a `GET`.
pub fn read_parameters(content_type: Option<&str>, parameters: &str) -> Result<GraphqlParams, Refusal> {
    let media_type = media(content_type.unwrap_or_default()).0;
    if content_type.is_some() && !media_type.eq_ignore_ascii_case("application/json") {
        let message = "GET requests may not have a content-type header other than application/json.";
        return Err(Refusal::Json(StatusCode::UNSUPPORTED_MEDIA_TYPE, message.to_owned()));
    }
    let (mut params, mut extensions) = (GraphqlParams::default(), None);
    let mut seen = [false; 4];
    for pair in parameters.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode_lossy(&name.replace('+', " "));
        let names = ["query", "operationName", "variables", "extensions"];
        let Some(at) = names.iter().position(|known_name| *known_name == name) else { continue };
        if std::mem::replace(&mut seen[at], true) {
            return Err(refused(format!("The '{name}' search parameter may only be specified once.")));
        }
        let value = decode_lossy(&value.replace('+', " "));
        let object = || match JsonParser::new(&value).parse() {
            Ok(Value::Map(map)) => Ok(map),
            Ok(_) => {
                Err(refused(format!("The {name} search parameter should contain a JSON-encoded object.")))
            }
            Err(_) => Err(refused(format!("The {name} search parameter contains invalid JSON."))),
        };
        match at {
            0 => params.query = Some(value),
            1 => params.operation = Some(value),
            2 => params.variables = Some(object()?),
            _ => extensions = Some(object()?),
        }
    }
    params.persisted = extensions.as_ref().and_then(persisted);
    params.extension = extensions.as_ref().map(QueryExtension::parse).transpose().map_err(refused)?.flatten();
    Ok(params)
}

/// Parses `extensions.persistedQuery`.
fn persisted(extensions: &Map) -> Option<PersistedQueryId> {
    let persisted = match extensions.get("persistedQuery")? {
        Value::Null | Value::Bool(false) | Value::Int(0) => return None,
        Value::Str(text) if text.is_empty() => return None,
        Value::Map(map) => map,
        _ => return Some(PersistedQueryId::UnsupportedVersion),
    };
    if persisted.get("version") != Some(&Value::Int(1)) {
        return Some(PersistedQueryId::UnsupportedVersion);
    }
    Some(PersistedQueryId::Digest(
        persisted.get("sha256Hash").and_then(Value::as_str).unwrap_or_default().to_owned(),
    ))
}

/// Splits a header into the media type without its parameters, and the `charset`.
fn media(header: &str) -> (&str, Option<&str>) {
    let mut parts = header.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"'))
    });
    (media_type, charset)
}

/// The media type of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFormat {
    /// The media type `application/json`.
    Json,
    /// The media type `application/graphql-response+json`.
    Response,
}

impl ResponseFormat {
    /// The value of `Content-Type`.
    pub fn as_str(self) -> &'static str {
        match self {
            ResponseFormat::Json => "application/json; charset=utf-8",
            ResponseFormat::Response => "application/graphql-response+json; charset=utf-8",
        }
    }

    /// The media type that `Accept` prefers; `None` if it allows none of them.
    pub fn of(accept: Option<&str>) -> Option<Self> {
        let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
            return Some(ResponseFormat::Json);
        };
        let weight = |name: &str| preference(accept, name);
        let (json, response) = (weight("json"), weight("graphql-response+json"));
        if json <= 0.0 && response <= 0.0 {
            return None;
        }
        Some(if response > json { ResponseFormat::Response } else { ResponseFormat::Json })
    }
}

/// Whether the client is a browser, that is, whether it prefers HTML to JSON. If both have equal weights, the first
/// one is preferred.
pub fn wants_page(accept: Option<&str>) -> bool {
    let Some(accept) = accept else { return false };
    let best = |names: &[&str]| {
        let parts = accept.split(',').enumerate();
        let matching = parts.filter(|(_, part)| names.contains(&media(part).0.to_ascii_lowercase().as_str()));
        matching
            .map(|(at, part)| (quality(part), at))
            .fold((0.0, usize::MAX), |best: (f32, usize), one| if one.0 > best.0 { one } else { best })
    };
    let page = best(&["text/html", "text/*"]);
    let json = best(&["application/json", "application/graphql-response+json"]);
    page.0 > 0.0 && (page.0 > json.0 || page.0 >= json.0 && page.1 < json.1)
}

/// The weight of `application/<name>` in `Accept`: the weight of the most specific range.
fn preference(accept: &str, name: &str) -> f32 {
    let mut best = (0, 0.0);
    for part in accept.split(',') {
        let media_type = media(part).0.to_ascii_lowercase();
        let exactness = match media_type.as_str() {
            "*/*" => 1,
            "application/*" => 2,
            other if other.strip_prefix("application/") == Some(name) => 3,
            _ => continue,
        };
        if exactness > best.0 {
            best = (exactness, quality(part));
        }
    }
    best.1
}

fn quality(part: &str) -> f32 {
    let weight = part.split(';').skip(1).find_map(|word| word.trim().strip_prefix("q="));
    weight.map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> Result<GraphqlParams, Refusal> {
        read_body(json_of(Some("application/json"), text.as_bytes())?.as_ref())
    }

    #[test]
    fn an_unpaired_surrogate_in_a_query_is_an_invalid_character() {
        let check = |body: &str, expect: Option<&str>| {
            let refusal = json_of(Some("application/json"), body.as_bytes()).err();
            let expect = match expect {
                Some(message) => Refusal::Json(StatusCode::BAD_REQUEST, message.to_owned()),
                None => Refusal::Page(StatusCode::BAD_REQUEST),
            };
            assert_eq!(refusal, Some(expect), "{body}");
        };
        let invalid = |unit: &str| format!("Syntax Error: Invalid character: U+{unit}.");
        check(r#"{"query":"\ud83d"}"#, Some(&invalid("D83D")));
        check(r#"{"variables":{"a":"\ud800"},"query":"{a}\udc00"}"#, Some(&invalid("DC00")));
        check(r#"{"query":"\ud83d\ude00 \ude00"}"#, Some(&invalid("DE00")));
        // Outside `query`, and in invalid JSON, an unpaired surrogate is not reported.
        check(r#"{"query":"{a}","variables":{"a":"\ud800"}}"#, None);
        check(r#"{"query":"\ud83d"#, None);
        check(r#"{"query":"\\ud83d""#, None);
        assert!(json_of(Some("application/json"), br#"{"query":"\\ud83d"}"#).is_ok());
    }

    #[test]
    fn a_body_is_parsed() {
        let params = body(r#"{"query": "{ a }", "operationName": "A", "variables": {"x": [1]}}"#).unwrap();
        assert_eq!((params.query.as_deref(), params.operation.as_deref()), (Some("{ a }"), Some("A")));
        assert!(params.variables.unwrap().get("x").is_some());
        assert_eq!(body(r#"{"query": "{ a }", "variables": null}"#).unwrap().variables, None);
    }

    #[test]
    fn invalid_bodies_are_refused() {
        for (text, refusal) in [
            ("", refused(MISSING_BODY)),
            ("{}", refused(MISSING_BODY)),
            ("[]", refused("Operation batching disabled.")),
            ("\"x\"", Refusal::Page(StatusCode::BAD_REQUEST)),
            ("{", Refusal::Page(StatusCode::BAD_REQUEST)),
            (r#"{"query": 1}"#, refused(QUERY_NOT_A_STRING)),
        ] {
            assert_eq!(body(text), Err(refusal), "{text}");
        }
    }

    #[test]
    fn bodies_are_accepted_in_several_charsets() {
        let utf16: Vec<u8> = "{\"a\":\"é\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let read = |content_type, bytes: &[u8]| json_of(Some(content_type), bytes);
        let is_e = |value: Value| value.get("a").and_then(Value::as_str) == Some("é");
        assert!(is_e(read("application/json; charset=utf-16le", &utf16).unwrap().unwrap()));
        assert!(is_e(
            read("Application/JSON;charset=\"UTF-8\"", "\u{feff}{\"a\":\"é\"}".as_bytes()).unwrap().unwrap()
        ));
        assert_eq!(read("text/plain", b"{"), Ok(None));
        let unknown = Refusal::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(read("application/json; charset=iso-8859-1", b"{}"), Err(unknown));
    }

    #[test]
    fn parameters_are_parsed() {
        let params = read_parameters(None, "query=%7B+a+%7D&variables=%7B%22x%22%3A1%7D&other=1").unwrap();
        assert_eq!(params.query.as_deref(), Some("{ a }"));
        assert_eq!(params.variables.unwrap().get("x"), Some(&Value::Int(1)));
        assert!(read_parameters(None, "query=a&variables=x").is_err());
        assert!(read_parameters(None, "query=a&query=b").is_err());
        assert!(read_parameters(Some("text/plain"), "query=a").is_err());
    }

    #[test]
    fn the_format_is_negotiated() {
        for (accept, form) in [
            (None, Some(ResponseFormat::Json)),
            (Some("*/*"), Some(ResponseFormat::Json)),
            (Some("application/graphql-response+json"), Some(ResponseFormat::Response)),
            (
                Some("application/graphql-response+json, application/json;q=0.9"),
                Some(ResponseFormat::Response),
            ),
            (Some("application/json, application/graphql-response+json"), Some(ResponseFormat::Json)),
            (Some("text/plain"), None),
            (Some("application/json;q=0"), None),
        ] {
            assert_eq!(ResponseFormat::of(accept), form, "{accept:?}");
        }
    }

    #[test]
    fn browsers_get_a_page() {
        assert!(wants_page(Some("text/html,application/xhtml+xml,*/*;q=0.8")));
        for other in [None, Some("*/*"), Some("application/json"), Some("application/json, text/html")] {
            assert!(!wants_page(other), "{other:?}");
        }
    }
}

//! GraphQL over HTTP: what a request asks, read as Apollo Server reads it. Pure.

use bytes::Bytes;
use hyper::StatusCode;
use qontract_bundle::json::{Reader, write_javascript};
use qontract_bundle::{Keys, Map, Value};

use crate::route::decode;

/// What is asked of a bundle.
#[derive(Debug, Default, PartialEq)]
pub struct Asked {
    /// The text of the request.
    pub query: String,
    /// Which of its operations is meant.
    pub operation: Option<String>,
    /// The values of its variables.
    pub variables: Option<Map>,
    /// The SHA-256 of the text, in digits, if the client thinks that we know it.
    pub persisted: Option<String>,
}

impl Asked {
    /// The variables in one form, whichever form they came in.
    pub fn variables_text(&self) -> String {
        let mut text = Vec::new();
        if let Some(variables) = &self.variables {
            write_javascript(&Value::Map(variables.clone()), &mut text);
        }
        String::from_utf8(text).expect("JSON is text")
    }
}

/// A request that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// With a status and an error in JSON.
    Json(StatusCode, String),
    /// With a status and a page.
    Page(StatusCode),
}

const MISSING: &str = "POST body missing, invalid Content-Type, or JSON object has no keys.";

fn refused(message: impl Into<String>) -> Refusal {
    Refusal::Json(StatusCode::BAD_REQUEST, message.into())
}

/// Reads the body of a `POST`.
pub fn read_body(content_type: Option<&str>, body: &Bytes) -> Result<Asked, Refusal> {
    let (media_type, charset) = media(content_type.unwrap_or_default());
    if !media_type.eq_ignore_ascii_case("application/json") || body.is_empty() {
        return Err(refused(MISSING));
    }
    if charset.is_some_and(|charset| !charset.to_ascii_lowercase().starts_with("utf-")) {
        return Err(Refusal::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let bad = || Refusal::Page(StatusCode::BAD_REQUEST);
    let text = str::from_utf8(body).map_err(|_| bad())?;
    // Only objects and lists are taken, and that is seen before anything else.
    if !text.trim_start().starts_with(['{', '[']) {
        return Err(bad());
    }
    match Reader::new(text).whole(&mut Keys::default()).map_err(|_| bad())? {
        Value::List(list) if list.is_empty() => Err(refused(MISSING)),
        Value::List(_) => Err(refused("Operation batching disabled.")),
        Value::Map(fields) if fields.is_empty() => Err(refused(MISSING)),
        Value::Map(fields) => read_fields(&fields),
        _ => Err(bad()),
    }
}

fn read_fields(fields: &Map) -> Result<Asked, Refusal> {
    let text = |name: &str| match fields.get(name) {
        Some(Value::Str(text)) => Some(text.to_string()),
        _ => None,
    };
    if fields.get("variables").is_some_and(|variables| variables.as_str().is_some()) {
        return Err(refused(
            "`variables` in a POST body should be provided as an object, not a recursively JSON-encoded string.",
        ));
    }
    if fields.get("extensions").is_some_and(|extensions| extensions.as_str().is_some()) {
        return Err(refused(
            "`extensions` in a POST body should be provided as an object, not a recursively JSON-encoded string.",
        ));
    }
    let object = |name: &str| fields.get(name).and_then(Value::as_map);
    Ok(Asked {
        query: text("query").unwrap_or_default(),
        operation: text("operationName"),
        variables: object("variables").cloned(),
        persisted: object("extensions").map(persisted).transpose()?.flatten(),
    })
}

/// Reads the parameters of a `GET`.
pub fn read_parameters(parameters: &str) -> Result<Asked, Refusal> {
    let (mut asked, mut extensions) = (Asked::default(), None);
    let mut seen = [false; 4];
    for pair in parameters.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(&name.replace('+', " "));
        let Some(at) =
            ["query", "operationName", "variables", "extensions"].iter().position(|known| *known == name)
        else {
            continue;
        };
        if std::mem::replace(&mut seen[at], true) {
            return Err(refused(format!("The '{name}' search parameter may only be specified once.")));
        }
        let value = decode(&value.replace('+', " "));
        let object = || match Reader::new(&value).whole(&mut Keys::default()) {
            Ok(Value::Map(map)) => Ok(map),
            Ok(_) => Err(refused(format!("The {name} search parameter contains invalid JSON."))),
            Err(_) => Err(refused(format!("The {name} search parameter contains invalid JSON."))),
        };
        match at {
            0 => asked.query = value,
            1 => asked.operation = Some(value),
            2 => asked.variables = Some(object()?),
            _ => extensions = Some(object()?),
        }
    }
    asked.persisted = extensions.as_ref().map(persisted).transpose()?.flatten();
    Ok(asked)
}

/// The digest in `extensions.persistedQuery`.
fn persisted(extensions: &Map) -> Result<Option<String>, Refusal> {
    let Some(persisted) = extensions.get("persistedQuery").and_then(Value::as_map) else { return Ok(None) };
    if persisted.get("version") != Some(&Value::Int(1)) {
        return Err(refused("Unsupported persisted query version"));
    }
    Ok(persisted.get("sha256Hash").and_then(Value::as_str).map(str::to_owned))
}

/// A media type without its parameters, and its `charset`.
fn media(header: &str) -> (&str, Option<&str>) {
    let mut parts = header.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"'))
    });
    (media_type, charset)
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/json`
    Json,
    /// `application/graphql-response+json`
    Response,
}

impl Form {
    /// The content type.
    pub fn as_str(self) -> &'static str {
        match self {
            Form::Json => "application/json; charset=utf-8",
            Form::Response => "application/graphql-response+json; charset=utf-8",
        }
    }

    /// The form that `Accept` prefers, if it allows one.
    pub fn of(accept: Option<&str>) -> Option<Self> {
        let Some(accept) = accept else { return Some(Form::Json) };
        let weight = |name: &str| preference(accept, name);
        let (json, response) = (weight("json"), weight("graphql-response+json"));
        if json <= 0.0 && response <= 0.0 {
            return None;
        }
        Some(if response > json { Form::Response } else { Form::Json })
    }
}

/// Whether a browser asks: it prefers pages to JSON.
pub fn wants_page(accept: Option<&str>) -> bool {
    let Some(accept) = accept else { return false };
    let weight = |type_: &str| accept.split(',').filter(|part| media(part).0.eq_ignore_ascii_case(type_)).map(quality).fold(0.0, f32::max);
    weight("text/html") > 0.0 && weight("text/html") >= weight("application/json")
}

/// How much `Accept` likes `application/<name>`: what is named most exactly counts.
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

    fn body(text: &str) -> Result<Asked, Refusal> {
        read_body(Some("application/json"), &Bytes::from(text.to_owned()))
    }

    #[test]
    fn a_body_tells_what_is_asked() {
        let asked = body(r#"{"query": "{ a }", "operationName": "A", "variables": {"x": [1]}}"#).unwrap();
        assert_eq!((asked.query.as_str(), asked.operation.as_deref()), ("{ a }", Some("A")));
        assert_eq!(asked.variables_text(), r#"{"x":[1]}"#);
        assert_eq!(body(r#"{"query": "{ a }", "variables": null}"#).unwrap().variables, None);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, refusal) in [
            ("", refused(MISSING)),
            ("{}", refused(MISSING)),
            ("[]", refused(MISSING)),
            ("[{}]", refused("Operation batching disabled.")),
            ("\"x\"", Refusal::Page(StatusCode::BAD_REQUEST)),
            ("{", Refusal::Page(StatusCode::BAD_REQUEST)),
        ] {
            assert_eq!(body(text), Err(refusal), "{text}");
        }
        assert!(matches!(body(r#"{"query": "{ a }", "variables": "{}"}"#), Err(Refusal::Json(..))));
    }

    #[test]
    fn the_content_type_decides_whether_a_body_is_read() {
        let read = |content_type| read_body(content_type, &Bytes::from(r#"{"query":"{ a }"}"#));
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/json;charset=\"UTF-8\""] {
            assert!(read(Some(good)).is_ok(), "{good}");
        }
        for bad in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            assert_eq!(read(bad), Err(refused(MISSING)));
        }
        let latin = read(Some("application/json; charset=iso-8859-1"));
        assert_eq!(latin, Err(Refusal::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE)));
    }

    #[test]
    fn parameters_tell_what_is_asked() {
        let asked = read_parameters("query=%7B+a+%7D&variables=%7B%22x%22%3A1%7D&other=1").unwrap();
        assert_eq!((asked.query.as_str(), asked.variables_text().as_str()), ("{ a }", r#"{"x":1}"#));
        assert!(read_parameters("query=a&variables=x").is_err());
        assert!(read_parameters("query=a&query=b").is_err());
    }

    #[test]
    fn the_form_is_what_the_client_likes_best() {
        for (accept, form) in [
            (None, Some(Form::Json)),
            (Some("*/*"), Some(Form::Json)),
            (Some("application/graphql-response+json"), Some(Form::Response)),
            (Some("application/graphql-response+json, application/json;q=0.9"), Some(Form::Response)),
            (Some("application/json, application/graphql-response+json"), Some(Form::Json)),
            (Some("text/plain"), None),
            (Some("application/json;q=0"), None),
        ] {
            assert_eq!(Form::of(accept), form, "{accept:?}");
        }
    }

    #[test]
    fn browsers_get_a_page() {
        assert!(wants_page(Some("text/html,application/xhtml+xml,*/*;q=0.8")));
        for other in [None, Some("*/*"), Some("application/json"), Some("application/json, text/html;q=0.5")] {
            assert!(!wants_page(other), "{other:?}");
        }
    }
}

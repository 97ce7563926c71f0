//! Filters that parse and write other formats: JSON, YAML, URLs, templates, JSON paths.

use std::rc::Rc;

use sha2::{Digest as _, Sha256};

use super::{json, url};
use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::{Args, Interpreter};
use crate::jsonpath::JsonPath;
use crate::value::{Dict, Value};
use crate::yaml;

pub(super) fn apply(run: &mut Interpreter<'_>, name: &str, value: Value, args: Args) -> EvalResult<Value> {
    match name {
        "eval" => {
            if !args.positional.is_empty() {
                return failed("`eval` takes its variables by name");
            }
            let template = text(run, &value, name)?;
            let mut variables = Dict::default();
            for (name, value) in args.named {
                variables.insert_text(&name, value);
            }
            run.deeper(|run| run.render_lenient(&template, variables)).map(Value::text)
        }
        "extract_jsonpath" | "json_pointers" | "matches_jsonpath" => {
            let [path] = args.bind(name, ["jsonpath"], 1)?;
            let path = match path {
                Some(Value::Text(path)) if !path.is_empty() => path,
                _ => return failed(format!("`{name}` needs a path")),
            };
            if value.is_undefined() {
                return refused(format!("`{name}` of an undefined value"));
            }
            let found = JsonPath::parse(&path)?.find(run, &value)?;
            match name {
                "extract_jsonpath" => run.list(found.into_iter().map(|found| found.value).collect()),
                "matches_jsonpath" => Ok(Value::Bool(!found.is_empty())),
                _ => {
                    let pointers: EvalResult<Vec<Value>> =
                        found.iter().map(crate::jsonpath::PathMatch::pointer).collect();
                    run.list(pointers?)
                }
            }
        }
        "json_to_dict" => {
            let [] = args.bind(name, [], 0)?;
            let text = text(run, &value, name)?;
            json::read(run, &text)
        }
        "yaml_to_dict" => {
            let [] = args.bind(name, [], 0)?;
            let text = text(run, &value, name)?;
            yaml::read(run, &text)
        }
        "tojson" => {
            let [indent] = args.bind(name, ["indent"], 0)?;
            let indent = match indent {
                None | Some(Value::None) => None,
                Some(Value::Text(indent)) => Some(indent.to_string()),
                indent => {
                    let width = super::integer_argument(name, indent.as_ref(), 0)?;
                    let width = usize::try_from(width).unwrap_or(0);
                    run.charge(width)?;
                    Some(" ".repeat(width))
                }
            };
            let text = json::to_sorted_json(run, &value, indent.as_deref())?;
            let text = text
                .replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026")
                .replace('\'', "\\u0027");
            Ok(Value::Markup(Rc::from(text)))
        }
        "urlencode" => {
            let [] = args.bind(name, [], 0)?;
            url::encode(run, &value)
        }
        "urlescape" => {
            let [safe, encoding] = args.bind(name, ["safe", "encoding"], 0)?;
            url::escape(run, Some(value), safe, encoding)
        }
        _ => {
            let [encoding] = args.bind(name, ["encoding"], 0)?;
            url::unescape(run, Some(value), encoding)
        }
    }
}

fn text(run: &Interpreter<'_>, value: &Value, of: &str) -> EvalResult<Rc<str>> {
    match value {
        Value::Text(text) | Value::Markup(text) => Ok(Rc::clone(text)),
        Value::Undefined(what) => run.undefined(what),
        other => failed(format!("`{of}` takes a string, not a {}", other.kind())),
    }
}

/// The SHA-256 of the items, as sorted strings.
pub(crate) fn hash_list(run: &mut Interpreter<'_>, items: &Value) -> EvalResult<Value> {
    let mut texts = Vec::new();
    for item in run.collect(items)? {
        if matches!(item, Value::List(_) | Value::Dict(_)) {
            return failed("`hash_list` takes a list of plain values");
        }
        texts.push(run.text(&item)?);
    }
    texts.sort();
    let mut hash = Sha256::new();
    hash.update(b"a");
    for text in &texts {
        hash.update(text.as_bytes());
    }
    let mut hex = String::new();
    for byte in hash.finalize() {
        hex.push_str(&format!("{byte:02x}"));
    }
    Ok(Value::text(hex))
}

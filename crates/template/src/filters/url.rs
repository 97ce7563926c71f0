//! URL quoting as in Python's `urllib`.

use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::Interpreter;
use crate::value::{Value, View};

/// `urllib.parse.quote(text, safe, encoding)`
pub(crate) fn escape(
    run: &mut Interpreter<'_>,
    text: Option<Value>,
    safe: Option<Value>,
    encoding: Option<Value>,
) -> EvalResult<Value> {
    utf8(encoding)?;
    let safe = match safe {
        None => "/".into(),
        Some(Value::Text(safe)) => safe,
        Some(other) => return refused(format!("characters that are a {}", other.kind())),
    };
    match text {
        Some(Value::Text(text) | Value::Markup(text)) => {
            run.charge(text.len().saturating_mul(3))?;
            Ok(Value::text(quote(&text, &safe)))
        }
        Some(Value::Undefined(what)) => run.undefined(&what),
        _ => failed("only strings can be quoted"),
    }
}

/// `urllib.parse.unquote(text, encoding)`
pub(crate) fn unescape(
    run: &mut Interpreter<'_>,
    text: Option<Value>,
    encoding: Option<Value>,
) -> EvalResult<Value> {
    utf8(encoding)?;
    match text {
        Some(Value::Text(text) | Value::Markup(text)) => {
            run.charge(text.len())?;
            Ok(Value::text(unquote(&text)))
        }
        Some(Value::Undefined(what)) => run.undefined(&what),
        _ => failed("only strings can be unquoted"),
    }
}

/// The filter `urlencode`: of a string, or of pairs.
pub(crate) fn encode(run: &mut Interpreter<'_>, value: &Value) -> EvalResult<Value> {
    let pairs = match value {
        Value::Undefined(what) if run.is_fatal(what) => return run.undefined(what),
        Value::Dict(dict) => run.view(dict, View::Items)?,
        Value::List(_) | Value::Tuple(_) | Value::Iter(_) | Value::View(..) => run.collect(value)?,
        Value::Range(_) => return failed("`urlencode` takes pairs"),
        value => {
            let text = run.text(value)?;
            run.charge(text.len().saturating_mul(3))?;
            return Ok(Value::text(quote(&text, "/")));
        }
    };
    let mut out = Vec::new();
    for pair in pairs {
        let pair = run.collect(&pair)?;
        let [key, value] = pair.as_slice() else { return failed("`urlencode` takes pairs") };
        let (key, value) = (run.text(key)?, run.text(value)?);
        run.charge((key.len() + value.len()).saturating_mul(3))?;
        out.push(format!(
            "{}={}",
            quote(&key, "").replace("%20", "+"),
            quote(&value, "").replace("%20", "+")
        ));
    }
    Ok(Value::text(out.join("&")))
}

fn utf8(encoding: Option<Value>) -> EvalResult<()> {
    match encoding {
        None | Some(Value::None) => Ok(()),
        Some(Value::Text(name)) if matches!(name.to_ascii_lowercase().as_str(), "utf-8" | "utf8") => Ok(()),
        Some(_) => refused("an encoding other than UTF-8"),
    }
}

fn quote(text: &str, safe: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let character = char::from(byte);
        if byte.is_ascii_alphanumeric()
            || b"_.-~".contains(&byte)
            || (byte.is_ascii() && safe.contains(character))
        {
            out.push(character);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn unquote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.find(|character: char| !character.is_ascii()).unwrap_or(rest.len());
        let (run, after) = rest.split_at(ascii);
        out.push_str(&String::from_utf8_lossy(&bytes(run)));
        let other = after.find(|character: char| character.is_ascii()).unwrap_or(after.len());
        out.push_str(&after[..other]);
        rest = &after[other..];
    }
    out
}

fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        let code = code.filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok()) {
            out.push(byte);
            rest = &tail[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

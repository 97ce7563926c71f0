//! Filters for numbers.

use super::{attribute_path, bool_argument, integer_argument};
use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::{Args, Interpreter};
use crate::iterators::IterState;
use crate::lexer::is_space;
use crate::syntax::Operator;
use crate::value::Value;

pub(super) fn apply(run: &mut Interpreter<'_>, name: &str, value: &Value, args: Args) -> EvalResult<Value> {
    if name != "sum"
        && let Value::Undefined(what) = value
    {
        run.ensure_resolved(value)?;
        return run.undefined(what);
    }
    match name {
        "abs" => {
            let [] = args.bind(name, [], 0)?;
            match value {
                Value::Float(number) => Ok(Value::Float(number.abs())),
                value => match value.as_int().map(i128::checked_abs) {
                    Some(Some(number)) => Ok(Value::Int(number)),
                    Some(None) => refused("a number of more than 128 bits"),
                    None => failed(format!("`abs` does not take a {}", value.kind())),
                },
            }
        }
        "float" => {
            let [default] = args.bind(name, ["default"], 0)?;
            match value {
                Value::Text(text) | Value::Markup(text) => match parse_float(text)? {
                    Some(number) => Ok(Value::Float(number)),
                    None => Ok(default.unwrap_or(Value::Float(0.0))),
                },
                value => Ok(crate::run_float_of(value)
                    .map_or_else(|| default.unwrap_or(Value::Float(0.0)), Value::Float)),
            }
        }
        "int" => {
            let [default, base] = args.bind(name, ["default", "base"], 0)?;
            let base = integer_argument("int", base.as_ref(), 10)?;
            Ok(int(value, base)?.unwrap_or_else(|| default.unwrap_or(Value::Int(0))))
        }
        "round" => {
            let [precision, method] = args.bind(name, ["precision", "method"], 0)?;
            round(value, integer_argument("round", precision.as_ref(), 0)?, method.as_ref())
        }
        "sum" => sum(run, value, args),
        _ => {
            let [binary] = args.bind(name, ["binary"], 0)?;
            let binary = bool_argument(run, binary.as_ref())?;
            file_size(value, binary)
        }
    }
}

/// Python's `float(text)`; `None` where it fails.
pub(crate) fn parse_float(text: &str) -> EvalResult<Option<f64>> {
    let text = text.trim_matches(is_space);
    if !text.is_ascii() {
        return refused("a number that is not written in ASCII");
    }
    let bare = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    if bare == "nan" && text.len() <= 4 {
        return refused("a value that is not a number");
    }
    if matches!(bare.as_str(), "inf" | "infinity") && text.len() - bare.len() <= 1 {
        return Ok(Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    let fits = |character: char| character.is_ascii_digit() || "+-._e".contains(character);
    if !bare.chars().all(fits) || !underscores_are_between_digits(text) {
        return Ok(None);
    }
    Ok(text.replace('_', "").parse().ok())
}

fn underscores_are_between_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit =
        |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
    (0..bytes.len())
        .filter(|index| bytes[*index] == b'_')
        .all(|index| is_digit(index.checked_sub(1)) && is_digit(Some(index + 1)))
}

/// Python's `int(text, base)`; `None` where it fails.
fn parse_int(text: &str, base: i128) -> EvalResult<Option<i128>> {
    let text = text.trim_matches(is_space);
    if !text.is_ascii() {
        return refused("a number that is not written in ASCII");
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let Ok(radix @ 2..=36) = u32::try_from(base) else {
        return refused(format!("`int` with the base {base}"));
    };
    let prefix = match radix {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let digits = match digits.get(..2) {
        Some(start) if !prefix.is_empty() && start.eq_ignore_ascii_case(prefix) => {
            digits[2..].strip_prefix('_').unwrap_or(&digits[2..])
        }
        _ => digits,
    };
    let well_formed = !digits.is_empty()
        && !digits.starts_with('_')
        && !digits.ends_with('_')
        && !digits.contains("__")
        && digits.chars().all(|digit| digit == '_' || digit.is_digit(radix));
    if !well_formed {
        return Ok(None);
    }
    match i128::from_str_radix(&digits.replace('_', ""), radix) {
        Ok(number) => Ok(Some(if negative { -number } else { number })),
        Err(_) => refused("a number of more than 128 bits"),
    }
}

fn int(value: &Value, base: i128) -> EvalResult<Option<Value>> {
    if let Value::Text(text) | Value::Markup(text) = value {
        if let Some(number) = parse_int(text, base)? {
            return Ok(Some(Value::Int(number)));
        }
        return match parse_float(text)? {
            Some(number) if number.is_finite() => truncated(number).map(Some),
            _ => Ok(None),
        };
    }
    match value {
        Value::Float(number) if number.is_infinite() => failed("infinity is not an integer"),
        Value::Float(number) => truncated(*number).map(Some),
        value => Ok(value.as_int().map(Value::Int)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
pub(crate) fn truncated(number: f64) -> EvalResult<Value> {
    if number.abs() >= 1e38 {
        return refused("a number of more than 128 bits");
    }
    Ok(Value::Int(number.trunc() as i128))
}

fn round(value: &Value, precision: i128, method: Option<&Value>) -> EvalResult<Value> {
    let method = match method {
        None => "common",
        Some(Value::Text(method)) if matches!(&**method, "common" | "ceil" | "floor") => method,
        Some(_) => return failed("`round` takes `common`, `ceil` or `floor`"),
    };
    let Some(number) = crate::run_float_of(value) else {
        return failed(format!("`round` does not take a {}", value.kind()));
    };
    let Some(digits) = usize::try_from(precision).ok().filter(|digits| *digits <= 20) else {
        return refused(format!("`round` to {precision} digits"));
    };
    if method == "common" {
        if let Some(whole) = value.as_int() {
            return Ok(Value::Int(whole));
        }
        let rounded = format!("{number:.digits$}").parse().unwrap_or(number);
        return Ok(Value::Float(rounded));
    }
    let factor = 10_f64.powi(i32::try_from(digits).unwrap_or(20));
    let scaled = number * factor;
    if scaled.abs() >= 9e15 {
        return refused("rounding a number this large");
    }
    let whole = if method == "ceil" { scaled.ceil() } else { scaled.floor() };
    // Python converts to an integer here, and integers have no negative zero.
    Ok(Value::Float((whole + 0.0) / factor))
}

/// `sum`. Newer versions of Python add floats more precisely. A sum that differs between the versions is
/// refused.
fn sum(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [attribute, start] = args.bind("sum", ["attribute", "start"], 0)?;
    let start = start.unwrap_or(Value::Int(0));
    let mut iter = run.iterator(value)?;
    if attribute.is_some() {
        let path = attribute_path(attribute.as_ref())?;
        iter = run.iter_of(IterState::Attribute { inner: iter, path, default: None })?;
    }
    if matches!(start, Value::Text(_) | Value::Markup(_)) {
        return failed("`sum` does not add strings");
    }
    let (mut total, mut compensation) = (start, 0.0_f64);
    while let Some(item) = run.next(&iter)? {
        let before = total.clone();
        total = run.binary(Operator::Add, &total, &item)?;
        if let (Value::Float(sum), Some(before), Some(item)) =
            (&total, crate::run_float_of(&before), crate::run_float_of(&item))
        {
            compensation +=
                if before.abs() >= item.abs() { (before - sum) + item } else { (item - sum) + before };
        }
    }
    if let Value::Float(sum) = total
        && sum.is_finite()
        && (sum + compensation).to_bits() != sum.to_bits()
    {
        return refused("a sum that versions of Python round differently");
    }
    Ok(total)
}

fn file_size(value: &Value, binary: bool) -> EvalResult<Value> {
    let bytes = match value {
        Value::Text(text) | Value::Markup(text) => match parse_float(text)? {
            Some(bytes) => bytes,
            None => return failed("`filesizeformat` takes a number"),
        },
        value => match crate::run_float_of(value) {
            Some(bytes) => bytes,
            None => return failed(format!("`filesizeformat` does not take a {}", value.kind())),
        },
    };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes.to_bits() == 1.0_f64.to_bits() {
        return Ok(Value::text("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::text(format!("{} Bytes", bytes.trunc() + 0.0)));
    }
    let mut unit = base;
    for letter in ["k", "M", "G", "T", "P", "E", "Z", "Y"] {
        unit *= base;
        if bytes < unit || letter == "Y" {
            let shown = base * bytes / unit;
            let letter = if binary { letter.to_uppercase() + "i" } else { letter.to_owned() };
            return Ok(Value::text(format!("{shown:.1} {letter}B")));
        }
    }
    failed("`filesizeformat` takes a number")
}

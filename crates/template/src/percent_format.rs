//! Python's `pattern % values`.

use crate::fault::{EvalResult, failed, refused};
use crate::filters::truncated;
use crate::interpreter::Interpreter;
use crate::value::{Key, Value};

/// The flags, width and precision between `%` and the conversion letter.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "these are the five flags of the format")]
struct FormatSpec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// `pattern % values`
pub(crate) fn format(run: &mut Interpreter<'_>, pattern: &str, values: &Value) -> EvalResult<Value> {
    let mut out = String::new();
    let mut rest = pattern;
    let single = [values.clone()];
    let items = match values {
        Value::Tuple(tuple) => tuple.items.clone(),
        _ => single.to_vec(),
    };
    let mut next = items.into_iter();
    let mut used_mapping = false;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let mut named = None;
        if let Some(body) = rest.strip_prefix('(') {
            let Value::Dict(dict) = values else { return failed("`%` with names needs a dict") };
            let Some((name, after)) = body.split_once(')') else {
                return failed("a name in `%` is not closed");
            };
            if name.contains('(') {
                return refused("parentheses in a name of `%`");
            }
            let found = dict.items.borrow().get(&Key::Text(name.into())).cloned();
            let Some(found) = found else { return failed(format!("`%({name})` has no value")) };
            named = Some(found);
            used_mapping = true;
            rest = after;
        }
        let (field, after) = parse_spec(rest)?;
        let Some(letter) = after.chars().next() else { return failed("`%` at the end of a pattern") };
        rest = &after[letter.len_utf8()..];
        let value = match named {
            Some(value) => value,
            None => match next.next() {
                Some(value) => value,
                None => return failed("`%` has too few values"),
            },
        };
        run.charge(field.width.saturating_add(field.precision.unwrap_or(0)))?;
        let shown = format_value(run, letter, &field, &value)?;
        out.push_str(&shown);
        run.charge(out.len())?;
    }
    out.push_str(rest);
    run.charge(out.len())?;
    let is_mapping =
        matches!(values, Value::Dict(_) | Value::List(_) | Value::Range(_) | Value::Undefined(_))
            || used_mapping;
    if !is_mapping && next.next().is_some() {
        return failed("`%` has too many values");
    }
    Ok(Value::text(out))
}

fn parse_spec(text: &str) -> EvalResult<(FormatSpec, &str)> {
    let mut field = FormatSpec::default();
    let mut rest = text;
    loop {
        match rest.chars().next() {
            Some('-') => field.left = true,
            Some('0') => field.zero = true,
            Some('+') => field.plus = true,
            Some(' ') => field.space = true,
            Some('#') => field.alternate = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let number = |rest: &mut &str| -> EvalResult<usize> {
        let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        *rest = after;
        if after.starts_with('*') {
            return refused("`*` in `%`");
        }
        if number.is_empty() { Ok(0) } else { number.parse().or_else(|_| refused("a width this large")) }
    };
    field.width = number(&mut rest)?;
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        field.precision = Some(number(&mut rest)?);
    }
    let rest = rest.strip_prefix(['l', 'h', 'L']).unwrap_or(rest);
    Ok((field, rest))
}

fn format_value(
    run: &mut Interpreter<'_>,
    letter: char,
    field: &FormatSpec,
    value: &Value,
) -> EvalResult<String> {
    match letter {
        's' | 'r' => {
            let mut text = String::new();
            if letter == 's' {
                run.write_text(value, &mut text)?;
            } else {
                run.repr(value, &mut text)?;
            }
            if let Some(precision) = field.precision {
                text = text.chars().take(precision).collect();
            }
            Ok(pad(&text, field, false))
        }
        'd' | 'i' | 'u' => {
            let number = match value {
                Value::Float(number) if number.is_infinite() => {
                    return failed("infinity is not an integer");
                }
                Value::Float(number) => truncated(*number)?.as_int(),
                value => value.as_int(),
            };
            format_integer(number, field, |number| number.to_string(), "")
        }
        'x' => format_integer(value.as_int(), field, |number| format!("{number:x}"), "0x"),
        'X' => format_integer(value.as_int(), field, |number| format!("{number:X}"), "0X"),
        'o' => format_integer(value.as_int(), field, |number| format!("{number:o}"), "0o"),
        'f' | 'F' => {
            let Some(number) = crate::run_float_of(value) else {
                return failed(format!("`%f` does not take a {}", value.kind()));
            };
            if number.is_infinite() || field.alternate {
                return refused("`%f` of infinity, or with `#`");
            }
            let digits = format!("{:.*}", field.precision.unwrap_or(6), number.abs());
            Ok(pad(&signed(number.is_sign_negative(), &digits, field), field, true))
        }
        'c' => match value {
            Value::Text(text) if text.chars().count() == 1 => Ok(pad(text, field, false)),
            Value::Int(_) => refused("`%c` of a number"),
            other => failed(format!("`%c` does not take a {}", other.kind())),
        },
        'a' | 'e' | 'E' | 'g' | 'G' => refused(format!("`%{letter}`")),
        letter => failed(format!("`%{letter}` is not a valid conversion")),
    }
}

fn format_integer(
    number: Option<i128>,
    field: &FormatSpec,
    digits: impl Fn(u128) -> String,
    prefix: &str,
) -> EvalResult<String> {
    let Some(number) = number else { return failed("`%` needs a number here") };
    if field.precision.is_some() {
        return refused("a precision for an integer");
    }
    let digits = digits(number.unsigned_abs());
    let digits = if field.alternate { format!("{prefix}{digits}") } else { digits };
    Ok(pad(&signed(number < 0, &digits, field), field, true))
}

fn signed(negative: bool, digits: &str, field: &FormatSpec) -> String {
    let sign = match (negative, field.plus, field.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    };
    format!("{sign}{digits}")
}

fn pad(text: &str, field: &FormatSpec, numeric: bool) -> String {
    let padding = field.width.saturating_sub(text.chars().count());
    if field.left {
        return format!("{text}{}", " ".repeat(padding));
    }
    if field.zero && numeric {
        let head = text.len() - text.trim_start_matches(['+', '-', ' ']).len();
        let head = if text[head..].starts_with("0x")
            || text[head..].starts_with("0X")
            || text[head..].starts_with("0o")
        {
            head + 2
        } else {
            head
        };
        return format!("{}{}{}", &text[..head], "0".repeat(padding), &text[head..]);
    }
    format!("{}{text}", " ".repeat(padding))
}

//! Python's `"{}".format(…)`: positions, names, and specs with width and type. All other features are
//! refused.

use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::{Args, Interpreter};
use crate::value::Value;

/// `pattern.format(args)`
pub(crate) fn format(run: &mut Interpreter<'_>, pattern: &str, args: &Args) -> EvalResult<Value> {
    let mut out = String::new();
    let mut rest = pattern;
    // Whether a position was counted automatically, and whether one was given.
    let (mut counted, mut given) = (0, false);
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let mark = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(mark) {
            out.push_str(mark);
            rest = after;
            continue;
        }
        if mark == "}" {
            return failed("a single `}` in a pattern");
        }
        let Some((body, after)) = rest.split_once('}') else { return failed("a `{` that is not closed") };
        if body.contains('{') {
            return refused("braces within braces of a pattern");
        }
        rest = after;
        let (name, spec) = body.split_once(':').unwrap_or((body, ""));
        let (name, conversion) = match name.split_once('!') {
            Some((name, conversion)) => (name, Some(conversion)),
            None => (name, None),
        };
        if name.contains(['.', '[']) {
            return refused("attributes and items within a pattern");
        }
        let value = if name.is_empty() {
            counted += 1;
            args.positional.get(counted - 1)
        } else if name.chars().all(|digit| digit.is_ascii_digit()) {
            given = true;
            name.parse::<usize>().ok().and_then(|place| args.positional.get(place))
        } else {
            args.named.iter().find(|(known, _)| &**known == name).map(|(_, value)| value)
        };
        if given && counted > 0 {
            return failed("a pattern uses automatic or explicit positions, not both");
        }
        let Some(value) = value.cloned() else {
            return failed(format!("the pattern's `{{{name}}}` has no value"));
        };
        let shown = match conversion {
            None => format_value(run, &value, spec)?,
            Some("s") => {
                let text = run.text(&value)?;
                format_value(run, &Value::text(text), spec)?
            }
            Some("r") => {
                let mut text = String::new();
                run.repr(&value, &mut text)?;
                format_value(run, &Value::text(text), spec)?
            }
            Some(_) => return refused("a conversion other than `!s` and `!r`"),
        };
        out.push_str(&shown);
        run.charge(out.len())?;
    }
    out.push_str(rest);
    run.charge(out.len())?;
    Ok(Value::text(out))
}

fn format_value(run: &mut Interpreter<'_>, value: &Value, spec: &str) -> EvalResult<String> {
    if spec.is_empty() {
        return run.text(value);
    }
    if matches!(value, Value::Markup(_) | Value::Bool(_) | Value::Undefined(_)) {
        return refused(format!("a spec for a {}", value.kind()));
    }
    let characters: Vec<char> = spec.chars().collect();
    let is_align = |character: Option<&char>| matches!(character, Some('<' | '>' | '^'));
    let (fill, align, mut at) = if is_align(characters.get(1)) {
        (characters[0], Some(characters[1]), 2)
    } else if is_align(characters.first()) {
        (' ', Some(characters[0]), 1)
    } else {
        (' ', None, 0)
    };
    let zero = characters.get(at) == Some(&'0') && align.is_none();
    let digits = |at: &mut usize| {
        let start = *at;
        while characters.get(*at).is_some_and(char::is_ascii_digit) {
            *at += 1;
        }
        characters[start..*at].iter().collect::<String>()
    };
    let width: usize = digits(&mut at).parse().unwrap_or(0);
    let mut precision = None;
    if characters.get(at) == Some(&'.') {
        at += 1;
        let Ok(number) = digits(&mut at).parse::<usize>() else {
            return failed("a spec without its precision");
        };
        precision = Some(number);
    }
    run.charge(width.saturating_add(precision.unwrap_or(0)))?;
    let kind: String = characters[at..].iter().collect();
    let (text, numeric) = match (value, kind.as_str(), precision) {
        (Value::Text(text), "" | "s", precision) if !zero => {
            (text.chars().take(precision.unwrap_or(usize::MAX)).collect::<String>(), false)
        }
        (Value::Int(number), "" | "d", None) => (number.to_string(), true),
        (Value::Int(number), "x", None) if *number >= 0 => (format!("{number:x}"), true),
        (Value::Int(_) | Value::Float(_), "f", precision) => {
            let number = crate::run_float_of(value).unwrap_or_default();
            if number.is_infinite() {
                return refused("a spec for infinity");
            }
            (format!("{number:.*}", precision.unwrap_or(6)), true)
        }
        _ => return refused(format!("the spec `{spec}` for a {}", value.kind())),
    };
    let padding = width.saturating_sub(text.chars().count());
    let filling = |count: usize| fill.to_string().repeat(count);
    Ok(match align {
        Some('^') => format!("{}{text}{}", filling(padding / 2), filling(padding - padding / 2)),
        Some('<') => format!("{text}{}", filling(padding)),
        None if zero => {
            let sign = if text.starts_with('-') { "-" } else { "" };
            format!("{sign}{}{}", "0".repeat(padding), &text[sign.len()..])
        }
        None if !numeric => format!("{text}{}", filling(padding)),
        _ => format!("{}{text}", filling(padding)),
    })
}

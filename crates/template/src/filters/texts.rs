//! Filters for strings.

use std::rc::Rc;

use super::{bool_argument, integer_argument, same_markup};
use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::{Args, Interpreter};
use crate::lexer::is_space;
use crate::percent_format;
use crate::value::{Dict, Value};
use crate::wrap;

pub(super) fn apply(run: &mut Interpreter<'_>, name: &str, value: &Value, args: Args) -> EvalResult<Value> {
    if let Value::Undefined(what) = value
        && run.is_fatal(what)
    {
        return run.undefined(what);
    }
    match name {
        "indent" => return indent(run, value, args),
        "truncate" => return truncate(run, value, args),
        "xmlattr" => return attributes(run, value, args),
        "wordwrap" => return word_wrap(run, value, args),
        "format" => return format(run, value, args),
        "string" if matches!(value, Value::Markup(_)) => return Ok(value.clone()),
        _ => {}
    }
    let text = run.text(value)?;
    run.charge(text.len().saturating_mul(2))?;
    Ok(match name {
        "center" => {
            let [width] = args.bind(name, ["width"], 0)?;
            let width = integer_argument(name, width.as_ref(), 80)?;
            let width = usize::try_from(width).unwrap_or(0);
            run.charge(width)?;
            same_markup(value, crate::methods::text::centre(&text, width, ' '))
        }
        "replace" => {
            let [old, new, count] = args.bind(name, ["old", "new", "count"], 2)?;
            let old = run.text(&old.unwrap_or(Value::None))?;
            let new = run.text(&new.unwrap_or(Value::None))?;
            let count = match count {
                None | Some(Value::None) => -1,
                count => integer_argument(name, count.as_ref(), -1)?,
            };
            Value::text(crate::methods::text::replace(run, &text, &old, &new, count)?)
        }
        "trim" => {
            let [chars] = args.bind(name, ["chars"], 0)?;
            let trimmed = match chars {
                None | Some(Value::None) => text.trim_matches(is_space),
                Some(Value::Text(chars)) => text.trim_matches(|character| chars.contains(character)),
                Some(other) => return failed(format!("`trim` does not take a {}", other.kind())),
            };
            same_markup(value, trimmed.to_owned())
        }
        name => {
            let [] = args.bind(name, [], 0)?;
            match name {
                "capitalize" => same_markup(value, capitalize(&text)?),
                "lower" => same_markup(value, text.to_lowercase()),
                "upper" => same_markup(value, text.to_uppercase()),
                "title" => same_markup(value, title_case(&text)),
                "string" => Value::text(text),
                "safe" => Value::Markup(Rc::from(text)),
                "escape" | "e" if matches!(value, Value::Markup(_)) => value.clone(),
                "escape" | "e" | "forceescape" => Value::Markup(Rc::from(escape_html(&text))),
                "wordcount" => {
                    if !text.is_ascii() {
                        return refused("`wordcount` of text that is not ASCII");
                    }
                    let words =
                        text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
                    Value::int(words.filter(|word| !word.is_empty()).count())
                }
                name => return refused(format!("the filter `{name}`")),
            }
        }
    })
}

/// Escapes the special characters of HTML.
pub(super) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('>', "&gt;")
        .replace('<', "&lt;")
        .replace('\'', "&#39;")
        .replace('"', "&#34;")
}

/// Converts the first letter to upper case, and the other letters to lower case.
pub(crate) fn capitalize(text: &str) -> EvalResult<String> {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return Ok(String::new()) };
    // The title case of other letters needs Unicode tables that are not available here.
    if !first.is_ascii() && (u32::from(first) >= 0x180 || first.to_uppercase().count() != 1) {
        return refused(format!("`capitalize` of text that begins with `{first}`"));
    }
    // The whole string is converted to lower case, because the form of a final sigma depends on its context.
    let lower = text.to_lowercase();
    let rest = if lower.chars().count() == text.chars().count() {
        lower.chars().skip(1).collect::<String>()
    } else {
        characters.as_str().to_lowercase()
    };
    Ok(first.to_uppercase().chain(rest.chars()).collect())
}

/// Converts the first letter of each word to upper case, and the other letters to lower case.
fn title_case(text: &str) -> String {
    let splits = |character: char| is_space(character) || "-({[<".contains(character);
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let finish = |word: &mut String, out: &mut String| {
        let mut characters = word.chars();
        if let Some(first) = characters.next() {
            out.extend(first.to_uppercase());
            out.push_str(&characters.as_str().to_lowercase());
        }
        word.clear();
    };
    for character in text.chars() {
        if splits(character) {
            finish(&mut word, &mut out);
            out.push(character);
        } else {
            word.push(character);
        }
    }
    finish(&mut word, &mut out);
    out
}

fn indent(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [width, first, blank] = args.bind("indent", ["width", "first", "blank"], 0)?;
    let (Value::Text(text) | Value::Markup(text)) = value else {
        return match value {
            Value::List(_) => refused("`indent` of a list"),
            Value::Undefined(what) => run.undefined(what),
            other => failed(format!("`indent` does not take a {}", other.kind())),
        };
    };
    let indention = match width {
        Some(Value::Text(text)) => text.to_string(),
        width => {
            let width = integer_argument("indent", width.as_ref(), 4)?;
            let width = usize::try_from(width).unwrap_or(0);
            run.charge(width)?;
            " ".repeat(width)
        }
    };
    if matches!(value, Value::Markup(_)) && !indention.trim().is_empty() {
        return refused("`indent` of text that is marked as safe, by a string other than spaces");
    }
    let (first, blank) = (bool_argument(run, first.as_ref())?, bool_argument(run, blank.as_ref())?);
    let text = format!("{text}\n");
    let lines = crate::methods::text::lines(&text, false);
    run.charge(text.len().saturating_add(lines.len().saturating_mul(indention.len())))?;
    let mut out = if first { indention.clone() } else { String::new() };
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
            if blank || !line.is_empty() {
                out.push_str(&indention);
            }
        }
        out.push_str(line);
    }
    Ok(same_markup(value, out))
}

fn truncate(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [length, killwords, end, leeway] =
        args.bind("truncate", ["length", "killwords", "end", "leeway"], 0)?;
    let length = integer_argument("truncate", length.as_ref(), 255)?;
    let end = match end {
        None => Rc::from("..."),
        Some(Value::Text(end)) => end,
        Some(_) => return refused("`truncate` with an `end` that is not a string"),
    };
    let leeway = match leeway {
        None | Some(Value::None) => 5,
        leeway => integer_argument("truncate", leeway.as_ref(), 5)?,
    };
    let end_length = i128::try_from(end.chars().count()).unwrap_or(i128::MAX);
    if length < end_length || leeway < 0 {
        return failed("`truncate` takes a length of at least that of its `end`");
    }
    let Value::Text(text) = value else {
        return match value {
            Value::Undefined(what) => run.undefined(what),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::None => {
                failed(format!("`truncate` does not take a {}", value.kind()))
            }
            other => refused(format!("`truncate` of a {}", other.kind())),
        };
    };
    run.charge(text.len())?;
    let characters: Vec<char> = text.chars().collect();
    if i128::try_from(characters.len()).unwrap_or(i128::MAX) <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let killwords = bool_argument(run, killwords.as_ref())?;
    let kept: String = characters.iter().take(usize::try_from(length - end_length).unwrap_or(0)).collect();
    let kept = match kept.rsplit_once(' ') {
        Some((before, _)) if !killwords => before.to_owned(),
        _ => kept,
    };
    Ok(Value::text(kept + &end))
}

fn format(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    if matches!(value, Value::Markup(_)) {
        return refused("`format` of text that is marked as safe");
    }
    let pattern = run.text(value)?;
    if !args.positional.is_empty() && !args.named.is_empty() {
        return failed("`format` takes positional or named arguments, not both");
    }
    let values = if args.named.is_empty() {
        run.tuple(args.positional)?
    } else {
        let mut dict = Dict::default();
        for (name, value) in args.named {
            dict.insert_text(&name, value);
        }
        run.dict(dict)?
    };
    percent_format::format(run, &pattern, &values)
}

fn attributes(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [autospace] = args.bind("xmlattr", ["autospace"], 0)?;
    let autospace = match autospace {
        Some(autospace) => run.is_truthy(&autospace)?,
        None => true,
    };
    let Value::Dict(dict) = value else {
        return failed(format!("`xmlattr` does not take a {}", value.kind()));
    };
    let mut items = Vec::new();
    for (key, value) in dict.items.borrow().clone().entries() {
        if matches!(value, Value::None | Value::Undefined(_)) {
            continue;
        }
        let Value::Text(key) = key else { return failed("`xmlattr` takes keys that are strings") };
        if key.chars().any(|character| character.is_ascii_whitespace() || "\x0b/>=".contains(character)) {
            return failed(format!("`{key}` is not a valid attribute name"));
        }
        let text = run.text(value)?;
        let text = if matches!(value, Value::Markup(_)) { text } else { escape_html(&text) };
        items.push(format!("{}=\"{text}\"", escape_html(key)));
    }
    let text = items.join(" ");
    Ok(Value::text(if autospace && !text.is_empty() { format!(" {text}") } else { text }))
}

fn word_wrap(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [width, break_long, wrap_with, on_hyphens] =
        args.bind("wordwrap", ["width", "break_long_words", "wrapstring", "break_on_hyphens"], 0)?;
    let Value::Text(text) = value else {
        return match value {
            Value::Markup(_) => refused("`wordwrap` of text that is marked as safe"),
            other => failed(format!("`wordwrap` does not take a {}", other.kind())),
        };
    };
    let width = integer_argument("wordwrap", width.as_ref(), 79)?;
    let break_long = break_long.map_or(Ok(true), |value| run.is_truthy(&value))?;
    let on_hyphens = on_hyphens.map_or(Ok(true), |value| run.is_truthy(&value))?;
    let newline = match wrap_with {
        None | Some(Value::None) => Rc::from("\n"),
        Some(Value::Text(text)) => text,
        Some(_) => return refused("`wordwrap` with a `wrapstring` that is not a string"),
    };
    let Some(width) = usize::try_from(width).ok().filter(|width| *width > 0) else {
        return failed("`wordwrap` takes a width of at least 1");
    };
    if on_hyphens && text.contains('-') {
        return refused("`wordwrap` of text with hyphens, unless `break_on_hyphens` is false");
    }
    if !text.is_ascii() {
        return refused("`wordwrap` of text that is not ASCII");
    }
    let mut wrapped = Vec::new();
    for line in crate::methods::text::lines(text, false) {
        wrapped.push(wrap::wrap(line, width, break_long).join(&newline));
    }
    let wrapped = wrapped.join(&newline);
    run.charge(wrapped.len())?;
    Ok(Value::text(wrapped))
}

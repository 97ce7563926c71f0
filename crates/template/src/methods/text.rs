//! Methods of strings.

use super::positional_arguments;
use crate::fault::{EvalResult, failed, refused};
use crate::filters::capitalize;
use crate::interpreter::{Args, Interpreter};
use crate::lexer::is_space;
use crate::str_format;
use crate::value::Value;

pub(super) fn call(run: &mut Interpreter<'_>, of: &str, name: &str, args: Args) -> EvalResult<Value> {
    run.charge(of.len())?;
    match name {
        "format" => str_format::format(run, of, &args),
        "split" | "rsplit" => split(run, of, name, args),
        "splitlines" => {
            let [keep] = args.bind(name, ["keepends"], 0)?;
            let keep = keep.map_or(Ok(false), |keep| run.is_truthy(&keep))?;
            let lines = lines(of, keep).into_iter().map(Value::text).collect();
            run.list(lines)
        }
        "join" => {
            let from = positional_arguments(name, args, 1, 1)?.remove(0);
            let mut texts = Vec::new();
            for item in run.collect(&from)? {
                match item {
                    Value::Text(text) => texts.push(text),
                    Value::Markup(_) => return refused("`join` of text that is marked as safe"),
                    other => return failed(format!("`join` takes strings, not a {}", other.kind())),
                }
            }
            let length = texts.iter().map(|text| text.len() + of.len()).sum();
            run.charge(length)?;
            Ok(Value::text(texts.join(of)))
        }
        "replace" => {
            let args = positional_arguments(name, args, 2, 3)?;
            let count = match args.get(2) {
                Some(count) => number(count)?,
                None => -1,
            };
            let (old, new) = (text(&args[0])?, text(&args[1])?);
            replace(run, of, old, new, count).map(Value::text)
        }
        "startswith" | "endswith" => {
            let args = positional_arguments(name, args, 1, 3)?;
            if args.len() > 1 {
                return refused(format!("`{name}` with a start or an end"));
            }
            let parts = match &args[0] {
                Value::Tuple(tuple) => tuple.items.clone(),
                other => vec![other.clone()],
            };
            for part in &parts {
                let part = text(part)?;
                if if name == "startswith" { of.starts_with(part) } else { of.ends_with(part) } {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        "strip" | "lstrip" | "rstrip" => strip(of, name, args),
        "center" | "ljust" | "rjust" | "zfill" => pad(run, of, name, args),
        "count" | "find" | "index" | "rfind" | "partition" | "rpartition" | "removeprefix"
        | "removesuffix" => search(run, of, name, args),
        name => {
            positional_arguments(name, args, 0, 0)?;
            without_arguments(of, name)
        }
    }
}

fn without_arguments(of: &str, name: &str) -> EvalResult<Value> {
    if name.starts_with("is") && name != "isspace" && !of.is_ascii() {
        return refused(format!("`{name}` of text that is not ASCII"));
    }
    let all = |test: fn(&u8) -> bool| Value::Bool(!of.is_empty() && of.as_bytes().iter().all(test));
    let (lower, upper) = (
        of.bytes().any(|letter| letter.is_ascii_lowercase()),
        of.bytes().any(|letter| letter.is_ascii_uppercase()),
    );
    Ok(match name {
        "capitalize" => Value::text(capitalize(of)?),
        "lower" => Value::text(of.to_lowercase()),
        "upper" => Value::text(of.to_uppercase()),
        "casefold" if of.is_ascii() => Value::text(of.to_lowercase()),
        "isalnum" => all(u8::is_ascii_alphanumeric),
        "isalpha" => all(u8::is_ascii_alphabetic),
        "isdigit" | "isnumeric" => all(u8::is_ascii_digit),
        "isspace" => Value::Bool(!of.is_empty() && of.chars().all(is_space)),
        "islower" => Value::Bool(lower && !upper),
        "isupper" => Value::Bool(upper && !lower),
        name => return refused(format!("`{name}` of this text")),
    })
}

fn text(value: &Value) -> EvalResult<&str> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Markup(_) => refused("an argument that is marked as safe"),
        other => failed(format!("a string was expected, not a {}", other.kind())),
    }
}

fn number(value: &Value) -> EvalResult<i128> {
    match value.as_int() {
        Some(number) => Ok(number),
        None => failed(format!("an integer was expected, not a {}", value.kind())),
    }
}

/// Python's `replace`; a negative count means that all occurrences are replaced.
pub(crate) fn replace(
    run: &mut Interpreter<'_>,
    text: &str,
    old: &str,
    new: &str,
    count: i128,
) -> EvalResult<String> {
    let found = if old.is_empty() { text.len() + 1 } else { text.matches(old).count() };
    run.charge(text.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(match usize::try_from(count) {
        Ok(count) => text.replacen(old, new, count),
        Err(_) => text.replace(old, new),
    })
}

/// Splits lines like Python's `splitlines`.
pub(crate) fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let breaks = ['\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(at) = rest.find(breaks) else {
            lines.push(rest);
            break;
        };
        let end = if rest[at..].starts_with("\r\n") {
            at + 2
        } else {
            at + rest[at..].chars().next().map_or(1, char::len_utf8)
        };
        lines.push(if keep_ends { &rest[..end] } else { &rest[..at] });
        rest = &rest[end..];
    }
    lines
}

/// Centres the text in `width` characters like Python's `center`.
pub(crate) fn centre(text: &str, width: usize, fill: char) -> String {
    let length = text.chars().count();
    let padding = width.saturating_sub(length);
    let left = padding / 2 + (padding & width & 1);
    let fill = |count: usize| fill.to_string().repeat(count);
    format!("{}{text}{}", fill(left), fill(padding - left))
}

fn pad(run: &mut Interpreter<'_>, of: &str, name: &str, args: Args) -> EvalResult<Value> {
    let args = positional_arguments(name, args, 1, if name == "zfill" { 1 } else { 2 })?;
    let width = usize::try_from(number(&args[0])?).unwrap_or(0);
    run.charge(width.saturating_mul(4))?;
    let fill = match args.get(1) {
        None => ' ',
        Some(fill) => {
            let mut characters = text(fill)?.chars();
            match (characters.next(), characters.next()) {
                (Some(fill), None) => fill,
                _ => return failed(format!("`{name}` takes one character to fill with")),
            }
        }
    };
    let padding = width.saturating_sub(of.chars().count());
    let filling = |fill: char| fill.to_string().repeat(padding);
    Ok(Value::text(match name {
        "center" => centre(of, width, fill),
        "ljust" => format!("{of}{}", filling(fill)),
        "rjust" => format!("{}{of}", filling(fill)),
        _ => {
            let sign = if of.starts_with(['+', '-']) { &of[..1] } else { "" };
            format!("{sign}{}{}", filling('0'), &of[sign.len()..])
        }
    }))
}

fn strip(of: &str, name: &str, args: Args) -> EvalResult<Value> {
    let args = positional_arguments(name, args, 0, 1)?;
    let chars = match args.first() {
        None | Some(Value::None) => None,
        Some(chars) => Some(text(chars)?),
    };
    let goes = |character: char| chars.map_or_else(|| is_space(character), |chars| chars.contains(character));
    Ok(Value::text(match name {
        "strip" => of.trim_matches(goes),
        "lstrip" => of.trim_start_matches(goes),
        _ => of.trim_end_matches(goes),
    }))
}

fn split(run: &mut Interpreter<'_>, of: &str, name: &str, args: Args) -> EvalResult<Value> {
    let [separator, most] = args.bind(name, ["sep", "maxsplit"], 0)?;
    let most = match most {
        None => usize::MAX,
        Some(most) => usize::try_from(number(&most)?).unwrap_or(usize::MAX),
    };
    let limit = most.saturating_add(1);
    let parts: Vec<&str> = match &separator {
        None | Some(Value::None) if name == "split" => words(of, most),
        None | Some(Value::None) => words_from_end(of, most),
        Some(separator) => {
            let separator = text(separator)?;
            if separator.is_empty() {
                return failed(format!("the separator of `{name}` is empty"));
            }
            if name == "split" {
                of.splitn(limit, separator).collect()
            } else {
                let mut parts: Vec<&str> = of.rsplitn(limit, separator).collect();
                parts.reverse();
                parts
            }
        }
    };
    run.list(parts.into_iter().map(Value::text).collect())
}

fn words(text: &str, most: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        if words.len() == most {
            words.push(rest);
            break;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        words.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_space);
    }
    words
}

fn words_from_end(text: &str, most: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        if words.len() == most {
            words.push(rest);
            break;
        }
        let start = rest.char_indices().rfind(|(_, character)| is_space(*character));
        let start = start.map_or(0, |(index, character)| index + character.len_utf8());
        words.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    words.reverse();
    words
}

fn search(run: &mut Interpreter<'_>, of: &str, name: &str, args: Args) -> EvalResult<Value> {
    let args = positional_arguments(name, args, 1, 3)?;
    if args.len() > 1 {
        return match name {
            "count" | "find" | "index" | "rfind" => refused(format!("`{name}` with a start or an end")),
            _ => failed(format!("`{name}` takes one argument")),
        };
    }
    let part = text(&args[0])?;
    let characters = |bytes: usize| Value::int(of[..bytes].chars().count());
    Ok(match name {
        "count" if part.is_empty() => Value::int(of.chars().count() + 1),
        "count" => Value::int(of.matches(part).count()),
        "find" => of.find(part).map_or(Value::Int(-1), characters),
        "rfind" => of.rfind(part).map_or(Value::Int(-1), characters),
        "index" => match of.find(part) {
            Some(at) => characters(at),
            None => return failed("`index` of a substring that does not occur"),
        },
        "removeprefix" => Value::text(of.strip_prefix(part).unwrap_or(of)),
        "removesuffix" => Value::text(of.strip_suffix(part).unwrap_or(of)),
        name => {
            if part.is_empty() {
                return failed(format!("the separator of `{name}` is empty"));
            }
            let found = if name == "partition" { of.split_once(part) } else { of.rsplit_once(part) };
            let parts = match (found, name) {
                (Some((before, after)), _) => [before, part, after],
                (None, "partition") => [of, "", ""],
                (None, _) => ["", "", of],
            };
            return run.tuple(parts.map(Value::text).to_vec());
        }
    })
}

//! JSON as Python reads and writes it: in ASCII, with sorted keys and unchanged numbers.
//!
//! The reader is separate from that of `qontract_bundle`: it behaves like Python's `json.loads`, counts its
//! steps and its memory against the limits of the interpreter, and refuses input that Python accepts but that
//! a template cannot represent.

use std::cmp::Ordering;

use qontract_python_json::Writer;

use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::Interpreter;
use crate::value::{Dict, Value};

/// `json.dumps(value, sort_keys=True, indent=indent)`
pub(crate) fn to_sorted_json(
    run: &mut Interpreter<'_>,
    value: &Value,
    indent: Option<&str>,
) -> EvalResult<String> {
    let mut writer = Writer::new(indent);
    write(run, value, &mut writer)?;
    let out = writer.finish();
    run.charge(out.len())?;
    Ok(out)
}

/// The JSON form of query variables in a lookup.
pub(crate) fn compact(run: &mut Interpreter<'_>, value: &Value) -> EvalResult<String> {
    to_sorted_json(run, value, None)
}

fn write(run: &mut Interpreter<'_>, value: &Value, writer: &mut Writer<'_>) -> EvalResult<()> {
    run.step(1)?;
    match value {
        Value::None => writer.null(),
        Value::Bool(value) => writer.bool(*value),
        Value::Int(number) => writer.int(number),
        Value::Float(number) => writer.float(*number),
        Value::Text(text) | Value::Markup(text) => writer.str(text),
        Value::List(_) | Value::Tuple(_) => {
            writer.open('[');
            for item in &run.collect(value)? {
                writer.item();
                write(run, item, writer)?;
            }
            writer.close(']');
        }
        Value::Dict(dict) => {
            let entries = ordered(run, dict.items.borrow().entries().to_vec())?;
            writer.open('{');
            for (key, value) in &entries {
                match key {
                    Value::Text(text) | Value::Markup(text) => writer.key(text),
                    Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                        let mut text = Writer::new(None);
                        write(run, key, &mut text)?;
                        writer.key(&text.finish());
                    }
                    other => return failed(format!("a {} cannot be a key in JSON", other.kind())),
                }
                write(run, value, writer)?;
            }
            writer.close('}');
        }
        other => {
            run.ensure_resolved(other)?;
            return failed(format!("a {} cannot be written as JSON", other.kind()));
        }
    }
    run.charge(0)
}

fn ordered(run: &mut Interpreter<'_>, mut entries: Vec<(Value, Value)>) -> EvalResult<Vec<(Value, Value)>> {
    let mut error = None;
    entries.sort_by(|(left, _), (right, _)| match run.order(left, right) {
        Ok(order) => order.unwrap_or(Ordering::Equal),
        Err(found) => {
            error.get_or_insert(found);
            Ordering::Equal
        }
    });
    error.map_or(Ok(entries), Err)
}

/// `json.loads(text)`
pub(crate) fn read(run: &mut Interpreter<'_>, text: &str) -> EvalResult<Value> {
    run.charge(text.len())?;
    let mut reader = PythonJsonParser { text, at: 0 };
    reader.skip_whitespace();
    let value = reader.value(run)?;
    reader.skip_whitespace();
    if reader.at < text.len() { invalid_json() } else { Ok(value) }
}

fn invalid_json<T>() -> EvalResult<T> {
    failed("the text is not JSON")
}

struct PythonJsonParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> PythonJsonParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_whitespace(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.rest().starts_with(mark);
        if found {
            self.at += mark.len();
        }
        found
    }

    fn value(&mut self, run: &mut Interpreter<'_>) -> EvalResult<Value> {
        run.step(1)?;
        for (word, value) in
            [("null", Value::None), ("true", Value::Bool(true)), ("false", Value::Bool(false))]
        {
            if self.take(word) {
                return Ok(value);
            }
        }
        if ["NaN", "Infinity", "-Infinity"].iter().any(|word| self.rest().starts_with(word)) {
            return refused("JSON with `NaN` or `Infinity`");
        }
        match self.rest().chars().next() {
            Some('"') => {
                self.at += 1;
                self.text().map(Value::text)
            }
            Some('[') => {
                self.at += 1;
                run.deeper(|run| self.list(run))
            }
            Some('{') => {
                self.at += 1;
                run.deeper(|run| self.object(run))
            }
            Some('-' | '0'..='9') => self.number(),
            _ => invalid_json(),
        }
    }

    fn list(&mut self, run: &mut Interpreter<'_>) -> EvalResult<Value> {
        let mut items = Vec::new();
        self.skip_whitespace();
        if self.take("]") {
            return run.list(items);
        }
        loop {
            self.skip_whitespace();
            items.push(self.value(run)?);
            self.skip_whitespace();
            if self.take("]") {
                return run.list(items);
            }
            if !self.take(",") {
                return invalid_json();
            }
        }
    }

    fn object(&mut self, run: &mut Interpreter<'_>) -> EvalResult<Value> {
        let mut dict = Dict::default();
        self.skip_whitespace();
        if self.take("}") {
            return run.dict(dict);
        }
        loop {
            self.skip_whitespace();
            if !self.take("\"") {
                return invalid_json();
            }
            let key = self.text()?;
            self.skip_whitespace();
            if !self.take(":") {
                return invalid_json();
            }
            self.skip_whitespace();
            let value = self.value(run)?;
            dict.insert_text(&key, value);
            self.skip_whitespace();
            if self.take("}") {
                return run.dict(dict);
            }
            if !self.take(",") {
                return invalid_json();
            }
        }
    }

    fn number(&mut self) -> EvalResult<Value> {
        let rest = self.rest();
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let sign = usize::from(rest.starts_with('-'));
        let whole = if rest[sign..].starts_with('0') { 1 } else { digits(&rest[sign..]) };
        if whole == 0 {
            return invalid_json();
        }
        let mut length = sign + whole;
        let mut is_float = false;
        if let Some(fraction) = rest[length..].strip_prefix('.').map(digits).filter(|digits| *digits > 0) {
            length += 1 + fraction;
            is_float = true;
        }
        if let Some(exponent) = rest[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let power = digits(&exponent[sign..]);
            if power > 0 {
                length += 1 + sign + power;
                is_float = true;
            }
        }
        self.at += length;
        let text = &rest[..length];
        if is_float {
            return Ok(Value::Float(text.parse().unwrap_or(f64::INFINITY)));
        }
        text.parse().map(Value::Int).or_else(|_| refused("a number of more than 128 bits"))
    }

    /// Parses a string after its opening quote.
    fn text(&mut self) -> EvalResult<String> {
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(|character| matches!(character, '"' | '\\' | '\0'..='\x1f'));
            let Some(plain) = plain else { return invalid_json() };
            out.push_str(&rest[..plain]);
            self.at += plain + 1;
            match rest.as_bytes()[plain] {
                b'"' => return Ok(out),
                b'\\' => {}
                _ => return invalid_json(),
            }
            let mark = self.rest().chars().next();
            self.at += mark.map_or(0, char::len_utf8);
            match mark {
                Some(mark @ ('"' | '\\' | '/')) => out.push(mark),
                Some('b') => out.push('\x08'),
                Some('f') => out.push('\x0c'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('u') => out.push(self.escape()?),
                _ => return invalid_json(),
            }
        }
    }

    fn escape(&mut self) -> EvalResult<char> {
        let first = self.unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.take("\\u") {
            units.push(self.unit()?);
        }
        match char::decode_utf16(units).collect::<Result<Vec<char>, _>>().as_deref() {
            Ok([character]) => Ok(*character),
            _ => refused("JSON with an unpaired surrogate"),
        }
    }

    fn unit(&mut self) -> EvalResult<u16> {
        let digits =
            self.rest().get(..4).filter(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()));
        let Some(unit) = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) else {
            return invalid_json();
        };
        self.at += 4;
        Ok(unit)
    }
}

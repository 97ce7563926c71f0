//! Serializes values as scalars, in the same way as graphql-js.

use super::position::ExecutionPosition;
use super::{Executor, WriteAbort, WrittenValue};
use crate::input::{as_number, inspect, show_number};
use crate::plan::FieldPlan;
use crate::schema::Scalar;
use crate::sink::Sink;
use crate::source::{ResolvedValue, Source};
use qontract_bundle::Value;

impl<'a, S: Sink> Executor<'a, S> {
    /// Writes a scalar, or records the error if the value has a different type.
    pub(super) fn scalar_field(
        &mut self,
        field: &FieldPlan,
        scalar: Scalar,
        resolved: &ResolvedValue<'a>,
        position: ExecutionPosition<'_>,
    ) -> Result<WrittenValue, WriteAbort> {
        match self.scalar(scalar, resolved) {
            Ok(()) => Ok(WrittenValue::Value),
            Err(message) => Err(self.fail_at(message, field, position)),
        }
    }

    fn scalar(&mut self, scalar: Scalar, resolved: &ResolvedValue<'a>) -> Result<(), String> {
        // A string is the most common case.
        if let (Scalar::String, ResolvedValue::One(Source::Value(Value::Str(text)))) = (scalar, resolved) {
            self.out.text(text);
            return Ok(());
        }
        let view = self.task.view;
        if scalar == Scalar::Json {
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.clear();
            view.write_json(resolved, &mut scratch);
            // The bytes are JSON strings, so they are valid UTF-8.
            self.out.text(str::from_utf8(&scratch).unwrap_or_default());
            self.scratch = scratch;
            return Ok(());
        }
        let plain = LeafValue::of(resolved);
        let shown = || inspect(&view.input(resolved));
        match scalar {
            Scalar::String => match plain {
                LeafValue::Text(text) => self.out.text(text),
                LeafValue::Flag(flag) => self.out.text(if flag { "true" } else { "false" }),
                LeafValue::Number(number) if number.is_finite() => self.out.text(&show_number(number)),
                _ => return Err(format!("String cannot represent value: {}", shown())),
            },
            Scalar::Boolean => match plain {
                LeafValue::Flag(flag) => self.out.flag(flag),
                LeafValue::Number(number) if number.is_finite() => self.out.flag(number != 0.0),
                _ => return Err(format!("Boolean cannot represent a non boolean value: {}", shown())),
            },
            Scalar::Float => match plain.to_number().filter(|number| number.is_finite()) {
                Some(number) => self.out.float(number),
                None => return Err(format!("Float cannot represent non numeric value: {}", shown())),
            },
            Scalar::Int => match plain.to_number().filter(|number| number.fract() == 0.0) {
                #[expect(clippy::cast_possible_truncation, reason = "it is an integer and in range")]
                Some(number) if number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX) => {
                    self.out.int(number as i32);
                }
                Some(_) => {
                    return Err(format!("Int cannot represent non 32-bit signed integer value: {}", shown()));
                }
                None => return Err(format!("Int cannot represent non-integer value: {}", shown())),
            },
            Scalar::Json => {}
        }
        Ok(())
    }
}

/// A value without fields or elements.
#[derive(Clone, Copy)]
enum LeafValue<'a> {
    Text(&'a str),
    Flag(bool),
    Number(f64),
    Other,
}

impl<'a> LeafValue<'a> {
    fn of(resolved: &ResolvedValue<'a>) -> Self {
        match resolved {
            ResolvedValue::One(Source::Text(text)) => LeafValue::Text(text),
            ResolvedValue::One(Source::Flag(flag)) => LeafValue::Flag(*flag),
            ResolvedValue::One(Source::Value(value)) => match value {
                Value::Str(text) => LeafValue::Text(text),
                Value::Bool(flag) => LeafValue::Flag(*flag),
                value => as_number(value).map_or(LeafValue::Other, LeafValue::Number),
            },
            _ => LeafValue::Other,
        }
    }

    /// Converts the value to a number: Booleans are 0 and 1, and strings are parsed, except for the empty
    /// string.
    fn to_number(self) -> Option<f64> {
        match self {
            LeafValue::Number(number) => Some(number),
            LeafValue::Flag(flag) => Some(f64::from(u8::from(flag))),
            LeafValue::Text("") | LeafValue::Other => None,
            LeafValue::Text(text) => read_number(text),
        }
    }
}

/// Parses a string like JavaScript's `Number`.
fn read_number(text: &str) -> Option<f64> {
    // U+FEFF is white space in JavaScript but not in Rust; U+0085 is white space in Rust but not in
    // JavaScript.
    let text = text.trim_matches(|one: char| one == '\u{feff}' || one.is_whitespace() && one != '\u{85}');
    if text.is_empty() {
        return Some(0.0);
    }
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let digit = |total: Option<f64>, digit: char| {
                Some(total? * f64::from(radix) + f64::from(digit.to_digit(radix)?))
            };
            return if digits.is_empty() { None } else { digits.chars().fold(Some(0.0), digit) };
        }
    }
    if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
        let unsigned = text.trim_start_matches(['+', '-']);
        let infinite = unsigned == "Infinity" && text.len() - unsigned.len() <= 1;
        return infinite.then_some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<f64>) {
        assert_eq!(read_number(text), expect, "{text:?}");
    }

    #[test]
    fn strings_are_parsed_as_numbers_as_in_javascript() {
        check("12", Some(12.0));
        check(" 12\n", Some(12.0));
        check("  ", Some(0.0));
        check("1e3", Some(1000.0));
        check(".5", Some(0.5));
        check("5.", Some(5.0));
        check("-0x10", None);
        check("0x10", Some(16.0));
        check("0b101", Some(5.0));
        check("0o17", Some(15.0));
        check("0x", None);
        check("Infinity", Some(f64::INFINITY));
        check("-Infinity", Some(f64::NEG_INFINITY));
        check("inf", None);
        check("nan", None);
        check("1_000", None);
        check("12px", None);
        check("e3", None);
        check("+", None);
    }
}

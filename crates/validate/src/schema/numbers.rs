//! Compares and divides numbers as Python does: integers of any size are exact, and floats have their stored
//! value.

use std::cmp::Ordering;

use qontract_bundle::Value;

/// Compares two numbers; `None` if one of the values is not a number.
pub fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Float(one), Value::Float(other)) => one.partial_cmp(other),
        _ => Some(ExactNumber::of(one)?.cmp(&ExactNumber::of(other)?)),
    }
}

/// Whether a number is a multiple of another; `true` if one of the values is not a number.
pub fn is_multiple(number: &Value, of: &Value) -> bool {
    match of {
        Value::Float(of) => float(number).is_none_or(|number| {
            // Floats are divided with their stored values, so 0.3 is not a multiple of 0.1.
            let quotient = number / of;
            quotient.is_finite() && quotient.fract() == 0.0
        }),
        Value::Int(of) => match number {
            Value::Int(number) => number.checked_rem(*of).is_none_or(|rest| rest == 0),
            Value::BigInt(digits) => remainder(digits, of.unsigned_abs()) == 0,
            Value::Float(number) => number % lossy(*of) == 0.0,
            _ => true,
        },
        Value::BigInt(of) => match number {
            Value::Int(number) => *number == 0,
            Value::BigInt(number) => match (number.parse::<i128>(), of.parse::<i128>()) {
                (Ok(number), Ok(of)) => number.checked_rem(of).is_none_or(|rest| rest == 0),
                _ => number == of,
            },
            Value::Float(number) => of.parse::<f64>().is_ok_and(|of| number % of == 0.0),
            _ => true,
        },
        _ => true,
    }
}

/// A number as a float; large integers are rounded.
pub fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(lossy(*value)),
        Value::BigInt(digits) => digits.parse().ok(),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "Python loses the same precision")]
fn lossy(value: i64) -> f64 {
    value as f64
}

fn remainder(digits: &str, of: u64) -> u64 {
    let digits = digits.bytes().filter(u8::is_ascii_digit).map(|digit| u128::from(digit - b'0'));
    let rest = digits.fold(0, |rest, digit| (rest * 10 + digit) % u128::from(of.max(1)));
    u64::try_from(rest).unwrap_or_default()
}

/// A number without loss of precision: its sign, the digits before the decimal point, and the fraction.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactNumber {
    negative: bool,
    digits: String,
    fraction: f64,
}

impl ExactNumber {
    /// The number in this value; `None` if the value is not a number.
    pub fn of(value: &Value) -> Option<Self> {
        let (negative, digits, fraction) = match value {
            Value::Int(value) => (*value < 0, value.unsigned_abs().to_string(), 0.0),
            Value::BigInt(text) => {
                (text.starts_with('-'), text.trim_start_matches(['-', '+']).to_owned(), 0.0)
            }
            Value::Float(value) => (*value < 0.0, format!("{:.0}", value.trunc().abs()), value.fract().abs()),
            _ => return None,
        };
        let digits = digits.trim_start_matches('0').to_owned();
        Some(Self { negative, digits, fraction })
    }

    /// The digits of an integer with its sign; `None` if there is a fraction.
    pub fn whole(&self) -> Option<String> {
        let sign = if self.negative && !self.digits.is_empty() { "-" } else { "" };
        (self.fraction == 0.0).then(|| format!("{sign}{}", self.digits))
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let size = |one: &Self, other: &Self| {
            let digits =
                one.digits.len().cmp(&other.digits.len()).then_with(|| one.digits.cmp(&other.digits));
            digits.then_with(|| one.fraction.total_cmp(&other.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_compared_exactly() {
        let big = Value::BigInt("9007199254740993000000".into());
        let check = |one: &Value, other: &Value, expect| assert_eq!(compare(one, other), Some(expect));
        check(&Value::Int(9_007_199_254_740_993), &Value::Float(9_007_199_254_740_992.0), Ordering::Greater);
        check(&Value::Int(1), &Value::Float(1.0), Ordering::Equal);
        check(&Value::Int(-2), &Value::Float(-1.5), Ordering::Less);
        check(&Value::Float(1.5), &Value::Int(1), Ordering::Greater);
        check(&big, &Value::Float(1e300), Ordering::Less);
        check(&big, &Value::Int(i64::MAX), Ordering::Greater);
        check(&Value::Float(-0.0), &Value::Int(0), Ordering::Equal);
    }

    #[test]
    fn multiples_are_computed_from_stored_floats() {
        assert!(!is_multiple(&Value::Float(0.3), &Value::Float(0.1)));
        assert!(is_multiple(&Value::Float(0.2), &Value::Float(0.1)));
        assert!(is_multiple(&Value::Float(1e300), &Value::Int(3)));
        assert!(is_multiple(&Value::BigInt("30000000000000000000000".into()), &Value::Int(3)));
        assert!(is_multiple(&Value::Int(i64::MIN), &Value::Int(-1)));
    }
}

//! Resolves plain scalars (null, booleans, integers, floats, dates) as in YAML 1.1, the language of the data.
//!
//! **Invariant:** for every text, the result is that of PyYAML's `SafeLoader` (tested against it).

use std::borrow::Cow;

use crate::decimal::{Decimal, MAX_DIGITS};

/// A resolved plain scalar.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `~`, `null`, or empty.
    Null,
    /// `yes`, `no`, `on`, `off`, `true`, `false` in three spellings each.
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// A larger integer, as decimal digits.
    BigInt(String),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Str,
    /// A date, with or without a time.
    Date,
    /// `<<`
    Merge,
    /// `=`, the default value of YAML 1.1.
    Default,
    /// A scalar that looks like a number but has no value.
    NoValue,
}

/// Resolves the text of a plain scalar.
///
/// ```
/// use qontract_yaml::scalar::{Scalar, resolve};
/// assert_eq!(resolve("on"), Scalar::Bool(true));
/// assert_eq!(resolve("0755"), Scalar::Int(493));
/// assert_eq!(resolve("1:30"), Scalar::Int(90));
/// assert_eq!(resolve("1e3"), Scalar::Str);
/// ```
pub fn resolve(text: &str) -> Scalar {
    let bytes = text.as_bytes();
    match bytes.first() {
        None => Scalar::Null,
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => number(text),
        Some(b'~') if bytes.len() == 1 => Scalar::Null,
        Some(b'<') if text == "<<" => Scalar::Merge,
        Some(b'=') if bytes.len() == 1 => Scalar::Default,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') => word(text),
        Some(_) => Scalar::Str,
    }
}

/// Resolves the text of a bare scalar in a JSON file; `None` if JSON has no such scalar.
///
/// ```
/// use qontract_yaml::scalar::{Scalar, resolve_json};
/// assert_eq!(resolve_json("1e3"), Some(Scalar::Float(1000.0)));
/// assert_eq!(resolve_json("yes"), None);
/// ```
pub fn resolve_json(text: &str) -> Option<Scalar> {
    match text {
        "null" => return Some(Scalar::Null),
        "true" => return Some(Scalar::Bool(true)),
        "false" => return Some(Scalar::Bool(false)),
        _ => {}
    }
    let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |unsigned| (true, unsigned));
    let bytes = unsigned.as_bytes();
    let whole = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if whole == 0 || (whole > 1 && bytes[0] == b'0') {
        return None;
    }
    if whole == bytes.len() {
        return Some(decimal(unsigned, negative && unsigned != "0"));
    }
    let fraction = match &bytes[whole..] {
        [b'.', rest @ ..] => 1 + rest.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    let exponent = match &bytes[whole + fraction..] {
        [] => true,
        [b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..] => {
            all(digits, |byte| byte.is_ascii_digit())
        }
        _ => false,
    };
    (fraction != 1 && exponent)
        .then(|| unsigned.parse().map_or(Scalar::NoValue, |value: f64| float(value, negative)))
}

fn word(text: &str) -> Scalar {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::Str,
    }
}

fn number(text: &str) -> Scalar {
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let signed = unsigned.len() < text.len();
    if let Some(form) = NumberFormat::of(unsigned, signed) {
        let digits: Cow<'_, str> = if unsigned.contains('_') {
            Cow::Owned(unsigned.replace('_', ""))
        } else {
            Cow::Borrowed(unsigned)
        };
        return form.value(&digits, negative);
    }
    if !signed && is_date(unsigned.as_bytes()) {
        return Scalar::Date;
    }
    Scalar::Str
}

/// The notations of numbers, without the sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberFormat {
    Binary,
    Octal,
    Decimal,
    Hexadecimal,
    /// `1:30`, base 60.
    Sexagesimal,
    /// `1.5`, `.5`, `1.0e+3`
    Point,
    /// `1:30.5`
    SexagesimalPoint,
    Infinity,
    NotANumber,
}

impl NumberFormat {
    fn of(text: &str, signed: bool) -> Option<Self> {
        let bytes = text.as_bytes();
        match bytes {
            [b'0', b'b', rest @ ..] if all(rest, |byte| matches!(byte, b'0' | b'1' | b'_')) => {
                return Some(NumberFormat::Binary);
            }
            [b'0', b'x', rest @ ..] if all(rest, |byte| byte.is_ascii_hexdigit() || byte == b'_') => {
                return Some(NumberFormat::Hexadecimal);
            }
            b"0" => return Some(NumberFormat::Decimal),
            [b'0', rest @ ..] if all(rest, |byte| matches!(byte, b'0'..=b'7' | b'_')) => {
                return Some(NumberFormat::Octal);
            }
            b".inf" | b".Inf" | b".INF" => return Some(NumberFormat::Infinity),
            b".nan" | b".NaN" | b".NAN" if !signed => return Some(NumberFormat::NotANumber),
            // A number that begins with a point has no sign.
            [b'.', b'0'..=b'9', rest @ ..] if !signed => {
                let after = skip_digits(rest);
                return is_exponent(&rest[after..]).then_some(NumberFormat::Point);
            }
            [b'0'..=b'9', ..] => {}
            _ => return None,
        }
        let whole = skip_digits(bytes);
        match &bytes[whole..] {
            [] => (bytes[0] != b'0').then_some(NumberFormat::Decimal),
            [b'.', rest @ ..] => {
                let after = skip_digits(rest);
                is_exponent(&rest[after..]).then_some(NumberFormat::Point)
            }
            rest @ [b':', ..] => {
                let after = skip_sixties(rest);
                match &rest[after..] {
                    [] if bytes[0] != b'0' => Some(NumberFormat::Sexagesimal),
                    [b'.', fraction @ ..] if skip_digits(fraction) == fraction.len() => {
                        Some(NumberFormat::SexagesimalPoint)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The value of `digits`, without underscores.
    fn value(self, digits: &str, negative: bool) -> Scalar {
        match self {
            NumberFormat::Binary => whole_in_base(&digits[2..], 2, negative),
            NumberFormat::Octal => whole_in_base(&digits[1..], 8, negative),
            NumberFormat::Decimal => decimal(digits, negative),
            NumberFormat::Hexadecimal => whole_in_base(&digits[2..], 16, negative),
            NumberFormat::Sexagesimal => sexagesimal(digits, negative),
            NumberFormat::Point => {
                digits.parse().map_or(Scalar::NoValue, |value: f64| float(value, negative))
            }
            NumberFormat::SexagesimalPoint => sexagesimal_point(digits, negative),
            NumberFormat::Infinity => float(f64::INFINITY, negative),
            NumberFormat::NotANumber => Scalar::Float(f64::NAN),
        }
    }
}

fn float(value: f64, negative: bool) -> Scalar {
    Scalar::Float(if negative { -value } else { value })
}

/// Whether there is at least one byte, and the predicate is true for all bytes.
fn all(bytes: &[u8], pass: impl Fn(u8) -> bool) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| pass(*byte))
}

/// Number of leading digits and underscores.
fn skip_digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count()
}

/// Length of the leading groups of `:0`–`:59`.
fn skip_sixties(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += match &bytes[at..] {
            [b':', b'0'..=b'5', b'0'..=b'9', ..] => 3,
            [b':', b'0'..=b'9', ..] => 2,
            _ => return at,
        };
    }
}

/// Whether the bytes are empty or an exponent such as `e+3`. In a YAML 1.1 float, the exponent has a sign.
fn is_exponent(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [b'e' | b'E', b'+' | b'-', digits @ ..] => all(digits, |byte| byte.is_ascii_digit()),
        _ => false,
    }
}

fn decimal(digits: &str, negative: bool) -> Scalar {
    if digits.len() > MAX_DIGITS {
        return Scalar::NoValue;
    }
    let text = if negative { format!("-{digits}") } else { digits.to_owned() };
    text.parse().map_or_else(|_| Scalar::BigInt(text), Scalar::Int)
}

fn whole_in_base(digits: &str, base: u32, negative: bool) -> Scalar {
    if digits.is_empty() && base != 8 {
        return Scalar::NoValue;
    }
    let mut whole = Decimal::zero();
    let digits = digits.trim_start_matches('0');
    // A decimal digit is a little over 3.32 bits, so longer numbers certainly have too many digits.
    let bits = digits.len() * base.ilog2() as usize;
    if bits * 100 > (MAX_DIGITS + 2) * 333 {
        return Scalar::NoValue;
    }
    for digit in digits.chars() {
        whole.shift(base, digit.to_digit(base).unwrap_or_default());
    }
    decimal(&whole.text(), negative)
}

fn sexagesimal(digits: &str, negative: bool) -> Scalar {
    let mut whole = Decimal::zero();
    if digits.len() > MAX_DIGITS {
        return Scalar::NoValue;
    }
    for (index, group) in digits.split(':').enumerate() {
        if index == 0 {
            for digit in group.chars() {
                whole.shift(10, digit.to_digit(10).unwrap_or_default());
            }
        } else {
            whole.shift(60, group.parse().unwrap_or_default());
        }
    }
    decimal(&whole.text(), negative)
}

/// Adds groups from the right as PyYAML does, so that rounding is the same.
fn sexagesimal_point(digits: &str, negative: bool) -> Scalar {
    let mut total = 0.0;
    let mut base = 1.0;
    // 60^13 is the last power that is exact.
    for (index, group) in digits.rsplit(':').enumerate() {
        let Some(value) = group.parse::<f64>().ok().filter(|_| index <= 13) else {
            return Scalar::NoValue;
        };
        total += value * base;
        base *= 60.0;
    }
    float(total, negative)
}

/// Whether the bytes are a date, such as `2024-01-02`, or a date with a time.
fn is_date(bytes: &[u8]) -> bool {
    let Some((_, rest)) = take(bytes, 4, 4) else { return false };
    let [b'-', rest @ ..] = rest else { return false };
    let Some((month, rest)) = take(rest, 1, 2) else { return false };
    let [b'-', rest @ ..] = rest else { return false };
    let Some((day, rest)) = take(rest, 1, 2) else { return false };
    if rest.is_empty() {
        return month == 2 && day == 2;
    }
    is_time(rest)
}

fn is_time(bytes: &[u8]) -> bool {
    let rest = match bytes {
        [b'T' | b't', rest @ ..] => rest,
        [b' ' | b'\t', ..] => skip_blanks(bytes),
        _ => return false,
    };
    let Some((_, rest)) = take(rest, 1, 2) else { return false };
    let [b':', rest @ ..] = rest else { return false };
    let Some((_, rest)) = take(rest, 2, 2) else { return false };
    let [b':', rest @ ..] = rest else { return false };
    let Some((_, mut rest)) = take(rest, 2, 2) else { return false };
    if let [b'.', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = &fraction[digits..];
    }
    if rest.is_empty() {
        return true;
    }
    match skip_blanks(rest) {
        [b'Z'] => true,
        [b'+' | b'-', zone @ ..] => match take(zone, 1, 2) {
            Some((_, [])) => true,
            Some((_, [b':', minutes @ ..])) => minutes.len() == 2 && minutes.iter().all(u8::is_ascii_digit),
            _ => false,
        },
        _ => false,
    }
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &bytes[blanks..]
}

/// Splits `least` to `most` digits off the beginning, as many as possible.
fn take(bytes: &[u8], least: usize, most: usize) -> Option<(usize, &[u8])> {
    let digits = bytes.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    (digits >= least).then(|| (digits, &bytes[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &Scalar) {
        assert_eq!(&resolve(text), expect, "{text:?}");
    }

    #[test]
    fn words_are_booleans_in_three_spellings_only() {
        check("yes", &Scalar::Bool(true));
        check("OFF", &Scalar::Bool(false));
        check("oN", &Scalar::Str);
        check("y", &Scalar::Str);
    }

    #[test]
    fn numbers_have_the_bases_of_yaml_1_1() {
        check("017", &Scalar::Int(15));
        check("089", &Scalar::Str);
        check("0o17", &Scalar::Str);
        check("0_", &Scalar::Int(0));
        check("-0x1F", &Scalar::Int(-31));
        check("0x_", &Scalar::NoValue);
        check("1_000", &Scalar::Int(1000));
        check("190:20:30", &Scalar::Int(685_230));
        check("0xFFFFFFFFFFFFFFFFFF", &Scalar::BigInt("4722366482869645213695".to_owned()));
        check("9223372036854775808", &Scalar::BigInt("9223372036854775808".to_owned()));
    }

    #[test]
    fn an_exponent_needs_a_point_and_a_sign() {
        check("12345e7", &Scalar::Str);
        check("1.5e3", &Scalar::Str);
        check("1.5e+3", &Scalar::Float(1500.0));
        check("-.5", &Scalar::Str);
        check(".5", &Scalar::Float(0.5));
        check("190:20:30.15", &Scalar::Float(685_230.15));
    }

    #[test]
    fn dates_are_recognised_so_that_they_can_be_refused() {
        check("2024-01-02", &Scalar::Date);
        check("2024-1-2", &Scalar::Str);
        check("2024-1-2 3:04:05.6 +1:00", &Scalar::Date);
    }
}

//! Kubernetes quantities: `500m` equals `0.5`, `1Gi` equals `1024Mi`.

use serde_json::Value;

/// Maximum number of digits of a quantity; quantities with more digits are compared as strings.
const MAX_DIGITS: usize = 30;

/// Whether two values are the same quantity; `None` if one of them is not a quantity.
pub fn is_same_quantity(one: &Value, other: &Value) -> Option<bool> {
    Some(nanos(&text(one)?)? == nanos(&text(other)?)?)
}

/// Whether Kubernetes accepts a string as a quantity.
///
/// ```
/// use qontract_inventory::is_quantity;
///
/// assert_eq!(["500m", "8Gi", "2", "1.5e3"].map(is_quantity), [true; 4]);
/// assert_eq!(["8Gigs", "", "m", "1.2.3", "1 Gi"].map(is_quantity), [false; 5]);
/// ```
pub fn is_quantity(text: &str) -> bool {
    let number = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = number.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(number.len());
    let (number, suffix) = number.split_at(end);
    let has_digit = number.bytes().any(|one| one.is_ascii_digit());
    has_digit && number.bytes().filter(|one| *one == b'.').count() <= 1 && scale(suffix).is_some()
}

/// The string form of a quantity, which may also be a JSON number.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The quantity in billionths; `None` if the text is not a quantity, or the quantity is not a multiple of one
/// billionth.
fn nanos(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + part.len() == 0 || whole.len() + part.len() > MAX_DIGITS || part.contains('.') {
        return None;
    }
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    let (binary, ten) = scale(suffix)?;
    let ten = ten.checked_add(9)?.checked_sub(i32::try_from(part.len()).ok()?)?;
    let scaled = digits.checked_mul(1i128.checked_shl(binary)?)?;
    let factor = 10i128.checked_pow(ten.unsigned_abs())?;
    let amount = if ten >= 0 {
        scaled.checked_mul(factor)?
    } else {
        (scaled % factor == 0).then_some(scaled / factor)?
    };
    Some(if negative { -amount } else { amount })
}

/// The factor of a suffix: a power of two, and a power of ten.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        other => (0, other.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::is_same_quantity;
    use serde_json::{Value, json};

    fn check(one: &Value, other: &Value, expect: Option<bool>) {
        assert_eq!(is_same_quantity(one, other), expect, "{one} and {other}");
        assert_eq!(is_same_quantity(other, one), expect, "{other} and {one}");
    }

    #[test]
    fn quantities_are_equal_by_value() {
        check(&json!("0.5"), &json!("500m"), Some(true));
        check(&json!(0.5), &json!("500m"), Some(true));
        check(&json!("1000m"), &json!(1), Some(true));
        check(&json!("1024Mi"), &json!("1Gi"), Some(true));
        check(&json!("1.5Gi"), &json!("1536Mi"), Some(true));
        check(&json!("1e3"), &json!("1k"), Some(true));
        check(&json!("1E3"), &json!("1000"), Some(true));
        check(&json!("1E"), &json!("1000P"), Some(true));
        check(&json!("0"), &json!("-0Gi"), Some(true));
        check(&json!(".5"), &json!("0.50"), Some(true));
        check(&json!("1G"), &json!("1Gi"), Some(false));
        check(&json!("1"), &json!("-1"), Some(false));
        check(&json!("100m"), &json!("100M"), Some(false));
    }

    #[test]
    fn a_value_that_is_not_a_quantity_is_not_compared() {
        for odd in ["", "m", ".", "1.2.3", "1x", "--1", "1e", "1e99", "1 Gi", "0.0000000001", &"9".repeat(40)]
        {
            check(&json!(odd), &json!("1"), None);
        }
        check(&json!(true), &json!("1"), None);
        check(&json!(null), &json!("1"), None);
    }
}

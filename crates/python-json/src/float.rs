//! Prints floats as Python prints them.

/// The shortest digits that parse back to the same number.
///
/// Python and JavaScript print the same digits. They differ only in which numbers have an exponent, so the
/// caller chooses the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortestDigits {
    /// Whether the number has a minus sign.
    pub negative: bool,
    /// Significant digits, without trailing zeros.
    pub digits: Vec<u8>,
    /// Position of the point relative to the first digit: `d.ddd × 10^exponent`.
    pub exponent: i32,
}

impl ShortestDigits {
    /// The digits of a finite number.
    pub fn of(value: f64) -> Self {
        let shortest = Self::parse(&format!("{value:e}"));
        // If a number is halfway between two shortest forms, both languages choose the even form, but Rust
        // might not. Only numbers with nearly the maximum number of digits can be halfway between two forms.
        if shortest.digits.len() >= 15 {
            let text = format!("{value:.*e}", shortest.digits.len() - 1);
            if text.parse() == Ok(value) {
                return Self::parse(&text);
            }
        }
        shortest
    }

    fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').expect("the format has an exponent");
        let negative = mantissa.starts_with('-');
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        let significant = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
        digits.truncate(significant);
        Self { negative, digits, exponent: exponent.parse().expect("a small integer") }
    }

    /// Writes `123.45`, padded with zeros; `point_zero` adds `.0` to integers.
    pub fn positional(&self, point_zero: bool, out: &mut Vec<u8>) {
        let digits = &self.digits;
        let whole = usize::try_from(self.exponent + 1).unwrap_or(0);
        if whole == 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', usize::try_from(-self.exponent - 1).unwrap_or(0)));
            out.extend_from_slice(digits);
        } else if digits.len() <= whole {
            out.extend_from_slice(digits);
            out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
            if point_zero {
                out.extend_from_slice(b".0");
            }
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }

    /// Writes `1.5e+20`; Python uses at least two digits for the exponent.
    pub fn scientific(&self, exponent_width: usize, out: &mut Vec<u8>) {
        out.push(self.digits[0]);
        if self.digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&self.digits[1..]);
        }
        let sign = if self.exponent < 0 { '-' } else { '+' };
        let magnitude = self.exponent.unsigned_abs();
        out.extend_from_slice(format!("e{sign}{magnitude:0exponent_width$}").as_bytes());
    }
}

/// Appends a finite number as Python's `repr` prints it: with an exponent for numbers below 1e-4, and for
/// numbers of 1e16 or more.
pub fn write_float(value: f64, out: &mut Vec<u8>) {
    let shortest = ShortestDigits::of(value);
    if shortest.negative {
        out.push(b'-');
    }
    if (-4..16).contains(&shortest.exponent) {
        shortest.positional(true, out);
    } else {
        shortest.scientific(2, out);
    }
}

/// Python's `repr` of a number.
///
/// ```
/// assert_eq!(qontract_python_json::float_repr(1e16), "1e+16");
/// assert_eq!(qontract_python_json::float_repr(f64::NEG_INFINITY), "-inf");
/// ```
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let mut text = Vec::new();
    write_float(value, &mut text);
    text.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::float_repr;

    #[test]
    fn numbers_are_printed_as_python_prints_them() {
        for (value, expect) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_012, "1.2e-05"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
            // A number that is halfway between two shortest forms is printed as the even form.
            (f64::from_bits(0x431c_c0e5_0492_1fcd), "2023347301156851.2"),
            (97_691_119_162_302.62, "97691119162302.62"),
        ] {
            assert_eq!(float_repr(value), expect);
        }
    }
}

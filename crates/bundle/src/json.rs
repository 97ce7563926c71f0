//! JSON in the two dialects of the contracts, and its reader.
//!
//! A bundle is written as Python's `json` does (ASCII, floats as Python prints them); answers and diffs are
//! written as JavaScript's `JSON.stringify` does (numbers and key order of JavaScript).

mod javascript;
mod python;
mod read;
mod shapes;

pub use javascript::{JavaScript, write_javascript};
pub use python::{write_python, write_python_str};
pub use read::{Fault, Reader};
pub(crate) use shapes::Shapes;

/// Appends a decimal point or exponent form of a float from its shortest digits.
///
/// Python and JavaScript agree on the digits, the shortest that read back as the same number; they differ only in
/// where they switch to an exponent, so the caller decides on the layout.
struct Shortest {
    negative: bool,
    /// Significant digits, without trailing zeros.
    digits: Vec<u8>,
    /// Position of the point relative to the first digit: `d.ddd × 10^exponent`.
    exponent: i32,
}

impl Shortest {
    fn of(value: f64) -> Self {
        let shortest = Self::parse(&format!("{value:e}"));
        // Halfway between two shortest forms both languages take the even one, and the format above does not.
        // Only numbers with nearly all digits can lie there.
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
        Self { negative, digits, exponent: exponent.parse().expect("a small whole number") }
    }

    /// `123.45`, with zeros filled in; `point_zero` adds `.0` to whole numbers.
    fn positional(&self, point_zero: bool, out: &mut Vec<u8>) {
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

    /// `1.5e+20`; Python writes the exponent with at least two digits.
    fn scientific(&self, exponent_width: usize, out: &mut Vec<u8>) {
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

/// Appends `\u00e9`-like escapes for every UTF-16 unit of `character`.
fn escape_unicode(character: char, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        let nibble = |shift: u16| DIGITS[usize::from(*unit >> shift & 15)];
        out.extend_from_slice(&[b'\\', b'u', nibble(12), nibble(8), nibble(4), nibble(0)]);
    }
}

/// The two-character escape of `byte`, if JSON has one that both dialects use.
fn short_escape(byte: u8) -> Option<&'static [u8; 2]> {
    Some(match byte {
        b'"' => b"\\\"",
        b'\\' => b"\\\\",
        b'\n' => b"\\n",
        b'\r' => b"\\r",
        b'\t' => b"\\t",
        0x08 => b"\\b",
        0x0c => b"\\f",
        _ => return None,
    })
}

/// How many bytes at the front stand for themselves in a string. Eight at a time: most texts have nothing to escape.
fn plain(bytes: &[u8]) -> usize {
    run(bytes, |word| below(word, 0x20) | is(word, b'"') | is(word, b'\\'))
}

/// The same in ASCII, where everything else is escaped.
fn plain_ascii(bytes: &[u8]) -> usize {
    let odd =
        |word| below(word, 0x20) | is(word, b'"') | is(word, b'\\') | is(word, 0x7f) | word & (ONES << 7);
    run(bytes, odd)
}

const ONES: u64 = u64::from_le_bytes([1; 8]);

/// The highest bit of each byte that is less than `least`; others may be set behind such a byte only.
fn below(word: u64, least: u64) -> u64 {
    word.wrapping_sub(ONES * least) & !word & (ONES << 7)
}

/// The same of each byte that is this one.
fn is(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// How many bytes come before the first in which `odd` sets a bit.
fn run(bytes: &[u8], odd: impl Fn(u64) -> u64) -> usize {
    let mut at = 0;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let odd = odd(u64::from_le_bytes(*word));
        if odd != 0 {
            return at + odd.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // The rest, filled up with what is never odd.
    let rest = &bytes[at..];
    let mut word = [b' '; 8];
    word[..rest.len()].copy_from_slice(rest);
    at + (odd(u64::from_le_bytes(word)).trailing_zeros() as usize / 8).min(rest.len())
}

#[cfg(test)]
mod tests {
    use super::{plain, plain_ascii};

    #[test]
    fn every_byte_that_must_be_escaped_is_found_wherever_it_stands() {
        for length in 0..20 {
            assert_eq!(plain(&vec![b'x'; length]), length);
            for at in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![0xc3; length];
                    bytes[at] = byte;
                    let must = matches!(byte, b'"' | b'\\' | ..=0x1f);
                    let expected = if must { at } else { length };
                    assert_eq!(plain(&bytes), expected, "{byte:#x} at {at} of {length}");
                    let mut bytes = vec![b'~'; length];
                    bytes[at] = byte;
                    let expected = if must || byte >= 0x7f { at } else { length };
                    assert_eq!(plain_ascii(&bytes), expected, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }
}

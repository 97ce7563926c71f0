//! Escaping of JSON strings.

/// Appends `text` in quotes, with everything except printable ASCII escaped, as `json.dumps` does.
///
/// ```
/// let mut out = Vec::new();
/// qontract_python_json::write_str("é\"", &mut out);
/// assert_eq!(out, br#""\u00e9\"""#);
/// ```
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let run = ascii_prefix(&bytes[at..]);
        out.extend_from_slice(&bytes[at..at + run]);
        at += run;
        let Some(character) = text[at..].chars().next() else { break };
        match short_escape(bytes[at]) {
            Some(escape) => out.extend_from_slice(escape),
            None => write_unicode_escape(character, out),
        }
        at += character.len_utf8();
    }
    out.push(b'"');
}

/// Appends an escape such as `\u00e9` for every UTF-16 unit of `character`.
pub fn write_unicode_escape(character: char, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        let nibble = |shift: u16| DIGITS[usize::from(*unit >> shift & 15)];
        out.extend_from_slice(&[b'\\', b'u', nibble(12), nibble(8), nibble(4), nibble(0)]);
    }
}

/// The two-character escape of `byte`, if JSON has one that both dialects use.
pub fn short_escape(byte: u8) -> Option<&'static [u8; 2]> {
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

/// Number of leading bytes that need no escape in a JSON string. Checks eight bytes at a time, because most
/// strings need no escapes.
#[inline]
pub fn plain_prefix(bytes: &[u8]) -> usize {
    prefix_len(bytes, |word| bytes_below(word, 0x20) | bytes_equal(word, b'"') | bytes_equal(word, b'\\'))
}

/// Number of leading bytes that need no escape if everything except printable ASCII is escaped.
#[inline]
pub fn ascii_prefix(bytes: &[u8]) -> usize {
    let odd = |word| {
        bytes_below(word, 0x20)
            | bytes_equal(word, b'"')
            | bytes_equal(word, b'\\')
            | bytes_equal(word, 0x7f)
            | word & (ONES << 7)
    };
    prefix_len(bytes, odd)
}

const ONES: u64 = u64::from_le_bytes([1; 8]);

/// Sets the highest bit of each byte less than `least`. Other bits may be set only after such a byte.
fn bytes_below(word: u64, least: u64) -> u64 {
    word.wrapping_sub(ONES * least) & !word & (ONES << 7)
}

/// Sets the highest bit of each byte equal to `byte`. Other bits may be set only after such a byte.
fn bytes_equal(word: u64, byte: u8) -> u64 {
    bytes_below(word ^ (ONES * u64::from(byte)), 1)
}

/// Number of bytes before the first byte in which `odd` sets a bit.
#[inline]
fn prefix_len(bytes: &[u8], odd: impl Fn(u64) -> u64) -> usize {
    let mut at = 0;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let odd = odd(u64::from_le_bytes(*word));
        if odd != 0 {
            return at + odd.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // The remaining bytes are padded with a byte that needs no escape.
    let rest = &bytes[at..];
    let mut word = [b' '; 8];
    word[..rest.len()].copy_from_slice(rest);
    at + (odd(u64::from_le_bytes(word)).trailing_zeros() as usize / 8).min(rest.len())
}

#[cfg(test)]
mod tests {
    use super::{ascii_prefix, plain_prefix};

    #[test]
    fn every_byte_that_must_be_escaped_is_found_at_every_position() {
        for length in 0..20 {
            assert_eq!(plain_prefix(&vec![b'x'; length]), length);
            for at in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![0xc3; length];
                    bytes[at] = byte;
                    let must = matches!(byte, b'"' | b'\\' | ..=0x1f);
                    let expected = if must { at } else { length };
                    assert_eq!(plain_prefix(&bytes), expected, "{byte:#x} at {at} of {length}");
                    let mut bytes = vec![b'~'; length];
                    bytes[at] = byte;
                    let expected = if must || byte >= 0x7f { at } else { length };
                    assert_eq!(ascii_prefix(&bytes), expected, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }
}

//! Which texts are looked at.

/// Whether `text` has only characters that may stand anywhere in a line: no control characters but tabs and line
/// feeds, no byte order marks.
pub(super) fn is_legible(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Without a way out within a chunk, many bytes are looked at in one go.
    let odd = |byte: u8| (byte < b' ' && byte != b'\n' && byte != b'\t') || byte >= 0x7f;
    let ascii = bytes.chunks(64).all(|chunk| !chunk.iter().fold(false, |any, byte| any | odd(*byte)));
    ascii
        || text.chars().all(|character| match character {
            '\n' | '\t' | ' '..='~' => true,
            '\u{feff}' => false,
            '\u{a0}'..='\u{fffd}' | '\u{10000}'.. => true,
            _ => false,
        })
}

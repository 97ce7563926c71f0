//! Python's `textwrap.wrap` for ASCII text, without breaks at hyphens; whitespace is not replaced.

/// Wraps text into lines of at most `width` characters, between words.
pub(crate) fn wrap(text: &str, width: usize, break_long_words: bool) -> Vec<String> {
    let mut chunks = chunks(text);
    chunks.reverse();
    let mut lines: Vec<String> = Vec::new();
    while let Some(next) = chunks.last() {
        if is_blank(next) && !lines.is_empty() {
            chunks.pop();
            if chunks.is_empty() {
                break;
            }
        }
        let mut line: Vec<String> = Vec::new();
        let mut length = 0;
        while let Some(chunk) = chunks.pop_if(|chunk| length + chunk.len() <= width) {
            length += chunk.len();
            line.push(chunk);
        }
        if let Some(chunk) = chunks.last_mut()
            && chunk.len() > width
        {
            if break_long_words {
                let rest = chunk.split_off(width - length.min(width - 1));
                line.push(std::mem::replace(chunk, rest));
            } else if line.is_empty() {
                line.extend(chunks.pop());
            }
        }
        line.pop_if(|chunk| is_blank(chunk));
        if !line.is_empty() {
            lines.push(line.concat());
        }
    }
    lines
}

fn is_blank(chunk: &str) -> bool {
    chunk.trim_matches(is_space).is_empty()
}

/// The characters that are whitespace to `textwrap`.
fn is_space(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\x0b' | '\x0c' | '\r' | ' ')
}

/// Splits text into alternating words and whitespace.
fn chunks(text: &str) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let mut blank = None;
    for character in text.chars() {
        let is_space = is_space(character);
        match chunks.last_mut() {
            Some(chunk) if blank == Some(is_space) => chunk.push(character),
            _ => chunks.push(character.to_string()),
        }
        blank = Some(is_space);
    }
    chunks
}

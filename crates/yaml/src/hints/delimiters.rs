//! Finds brackets and quotes that are not closed.

use super::{Line, lines};

/// An opening bracket or quote.
#[derive(Clone, Copy, Debug)]
struct Opening {
    at: usize,
    letter: char,
    /// The indentation of the line with the bracket or quote.
    indent: usize,
}

/// The innermost bracket or quote that is not closed before a line that is not part of its value.
pub fn find(text: &str) -> Option<(usize, char)> {
    let mut scanner = Scanner { text, open: Vec::new(), quote: None, block: None };
    for line in lines(text) {
        if let Some(opening) = scanner.open.last().copied().or(scanner.quote)
            && ends_value(&line, scanner.outermost())
        {
            let found = scanner.quote.unwrap_or(opening);
            return Some((found.at, found.letter));
        }
        scanner.line(&line)?;
    }
    let found = scanner.quote.or(scanner.open.last().copied())?;
    Some((found.at, found.letter))
}

/// Whether a line is not part of a value whose first line is indented by `indent`. Such a line is another key
/// or item, so it does not close the value.
fn ends_value(line: &Line<'_>, indent: usize) -> bool {
    let count = |letters: [char; 2]| line.text.matches(letters).count();
    let is_item = line.text.trim_start().starts_with("- ");
    let is_entry = is_item || line.colon().is_some();
    !line.is_empty() && line.indent() <= indent && is_entry && count(['}', ']']) <= count(['{', '['])
}

struct Scanner<'a> {
    text: &'a str,
    open: Vec<Opening>,
    quote: Option<Opening>,
    /// The indentation of the line that starts a block scalar.
    block: Option<usize>,
}

impl Scanner<'_> {
    /// The indentation of the line on which the value starts.
    fn outermost(&self) -> usize {
        self.open.first().or(self.quote.as_ref()).map_or(0, |opening| opening.indent)
    }

    /// Scans a line. Returns `None` if brackets do not match, because the parser itself reports that error.
    fn line(&mut self, line: &Line<'_>) -> Option<()> {
        let inside = !self.open.is_empty() || self.quote.is_some();
        if let Some(indent) = self.block {
            if line.text.trim().is_empty() || line.indent() > indent {
                return Some(());
            }
            self.block = None;
        }
        if line.is_empty() && self.quote.is_none() {
            return Some(());
        }
        let mut at = if inside { 0 } else { line.content() };
        // Whether a value may start at this position: a bracket or quote elsewhere is part of a plain scalar.
        let mut begins = !inside || self.quote.is_none();
        while let Some(letter) = line.text[at..].chars().next() {
            let opening = Opening { at: line.start + at, letter, indent: line.indent() };
            let next = line.text[at + letter.len_utf8()..].chars().next();
            if let Some(quote) = self.quote {
                match letter {
                    '\\' if quote.letter == '"' => at += next.map_or(0, char::len_utf8),
                    '\'' if quote.letter == '\'' && next == Some('\'') => at += 1,
                    _ if letter == quote.letter => (self.quote, begins) = (None, false),
                    _ => {}
                }
            } else {
                match letter {
                    ' ' => {}
                    '#' if at == 0 || line.text[..at].ends_with(' ') => break,
                    '"' | '\'' if begins => self.quote = Some(opening),
                    '{' | '[' if begins || !self.open.is_empty() => {
                        self.open.push(opening);
                        begins = true;
                    }
                    '}' | ']' if !self.open.is_empty() => {
                        let matching = if letter == '}' { '{' } else { '[' };
                        self.open.pop().filter(|opening| opening.letter == matching)?;
                        begins = false;
                    }
                    ',' if !self.open.is_empty() => begins = true,
                    ':' if next.is_none_or(|next| next == ' ') => begins = true,
                    '|' | '>' if begins && self.open.is_empty() => {
                        self.block = Some(line.indent());
                        break;
                    }
                    // An anchor or a tag precedes a value.
                    '&' | '!' if begins => {
                        let word = line.text[at..].find(' ').unwrap_or(line.text.len() - at);
                        at += word;
                        continue;
                    }
                    _ => begins = false,
                }
            }
            at += letter.len_utf8();
        }
        debug_assert!(line.start <= self.text.len());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    fn check(text: &str, expect: Option<(usize, char)>) {
        assert_eq!(find(text), expect, "{text}");
    }

    #[test]
    fn a_bracket_is_open_until_the_next_entry() {
        check("a: {b: 1\nc: d\n", Some((3, '{')));
        check("a: [1, 2\nc: d\nx: [1]\n", Some((3, '[')));
        check("a: {b: [1, 2\nc: d\n", Some((7, '[')));
        check("- [a\n- b\n", Some((2, '[')));
        check("a: {b: 1,\n  c: 2\nd: 3\n", Some((3, '{')));
        check("a: [", Some((3, '[')));
    }

    #[test]
    fn a_quote_is_open_until_the_next_entry() {
        check("a: \"b\nc: d\n", Some((3, '"')));
        check("a: 'b\nc: d\n", Some((3, '\'')));
        check("a: 'it''s'\nc: d\n", None);
        check("a: \"\\\"\"\nc: d\n", None);
        check("a: [\"b\nc: d\n", Some((4, '"')));
    }

    #[test]
    fn closed_delimiters_and_text_are_accepted() {
        check("a: {b: [1, 2], c: {}}\nd: e\n", None);
        check("a: {\n  b: 1\n}\nc: d\n", None);
        check("a: {b: 1,\nc: 2}\n", None);
        check("a: foo{bar\nb: it's\nc: d\n", None);
        check("a: |\n  {\n  \"\nb: c\n", None);
        check("a: >-\n  [\n\n  x\nb: c\n", None);
        check("# {\na: b # [\nc: d\n", None);
        check("a: &x [1]\nb: !t {c: d}\n", None);
        check("a: [it's, b]\nc: d\n", None);
        check("a: [1}\nb: c\n", None);
        check("", None);
    }
}

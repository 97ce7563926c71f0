//! Compatibility checker for YAML 1.1, the language of the data, which is parsed with a YAML 1.2 parser.
//!
//! The parser does not report where the two versions differ. The checker follows the scalars of the parser
//! through the source and inspects the text between them. It corrects a difference or refuses the construct.

use qontract_diagnostics::{Diagnostic, Span};

use crate::Syntax;
use crate::characters;
use crate::events::Style;

/// Checks the scalars of one text, in order.
pub struct CompatChecker<'t> {
    source: &'t str,
    syntax: Syntax,
    /// The offset up to which the source was checked.
    seen: usize,
    /// The scalar before `seen`: its style, and whether it spans several lines.
    last: Option<(Style, bool)>,
    /// Number of open brackets.
    flow_depth: usize,
    /// Whether anything other than whitespace and comments was found.
    content: bool,
}

/// The result of [`CompatChecker::gap`].
#[derive(Default)]
struct Gap {
    /// Offset of a `|` or `>`.
    block_header: Option<usize>,
}

impl<'t> CompatChecker<'t> {
    /// Creates a checker at the start of `source`.
    pub fn new(source: &'t str, syntax: Syntax) -> Self {
        let byte_order_mark = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { source, syntax, seen: byte_order_mark, last: None, flow_depth: 0, content: false }
    }

    /// Checks a scalar and the text before it. Returns the bytes of the scalar, including its header.
    pub fn scalar(&mut self, span: Span, style: Style) -> Result<Span, Box<Diagnostic>> {
        let (start, end) = (span.start as usize, span.end as usize);
        if start < self.seen || (start == end && style != Style::Block) {
            return Ok(span);
        }
        let gap = self.gap(start)?;
        self.seen = end;
        self.last = Some((style, self.source[start..end].contains('\n')));
        self.content = true;
        match style {
            Style::Plain => {
                let written = &self.source[start..end];
                if self.flow_depth > 0 && (written.starts_with(['?', ':']) || written.contains(":?")) {
                    let what =
                        "between brackets this starts a key or a value in YAML 1.1, and a string in YAML 1.2";
                    return Err(ambiguous(span, what, "put the value into quotes"));
                }
                self.tab_after_line_break(start, end)?;
                Ok(span)
            }
            Style::Quoted => self.surrogates(span).map(|()| span),
            Style::Block => {
                let header = gap.block_header.unwrap_or(start);
                self.block(header, end)?;
                Ok(written_block(self.source, header, end))
            }
        }
    }

    /// Checks the text after the last scalar.
    pub fn end(&mut self) -> Result<(), Box<Diagnostic>> {
        self.gap(self.source.len()).map(drop)
    }

    /// Checks the source up to `to`, which contains indicators, whitespace and comments, but no scalars.
    fn gap(&mut self, to: usize) -> Result<Gap, Box<Diagnostic>> {
        let mut found = Gap::default();
        let Some(gap) = self.source.get(self.seen..to) else { return Ok(found) };
        self.key_in_brackets(gap)?;
        if matches!(self.last, Some((Style::Plain, _))) {
            let blanks = gap.len() - gap.trim_start().len();
            self.tab_after_line_break(self.seen, self.seen + blanks)?;
        }
        let mut comment = false;
        let mut anchor = None;
        for (at, byte) in gap.bytes().enumerate() {
            let offset = self.seen + at;
            if comment && byte != b'\n' {
                continue;
            }
            match byte {
                b'\n' => {
                    comment = false;
                    if let Some(anchor) = anchor.filter(|_| self.flow_depth > 0) {
                        let span = Span::new(anchor, anchor + 1);
                        let what = "between brackets an anchor must be on the line of its value";
                        return Err(ambiguous(span, what, "put them on one line"));
                    }
                }
                b'&' => anchor = Some(offset),
                b'#' => {
                    comment = true;
                    continue;
                }
                b'[' | b'{' => self.flow_depth += 1,
                b']' | b'}' => self.flow_depth = self.flow_depth.saturating_sub(1),
                b'|' | b'>' => found.block_header = Some(offset),
                b'\t' if self.flow_depth == 0 && !self.tab_is_plain_space(offset) => {
                    let span = Span::new(offset, offset + 1);
                    return Err(ambiguous(span, "a tab where YAML 1.1 requires spaces", "use spaces"));
                }
                b'.' if !self.content && self.source[offset..].starts_with("...") => {
                    let span = Span::new(offset, offset + 3);
                    return Err(ambiguous(span, "`...` ends a document that has not started", "remove it"));
                }
                _ => {}
            }
            self.content |= !byte.is_ascii_whitespace();
        }
        Ok(found)
    }

    /// Between brackets, the colon of a key must be on the line of the key and be followed by a space.
    fn key_in_brackets(&self, gap: &str) -> Result<(), Box<Diagnostic>> {
        let (1.., Some((style, several_lines))) = (self.flow_depth, self.last) else { return Ok(()) };
        let mut colon = 0;
        loop {
            colon += gap[colon..].len() - gap[colon..].trim_start().len();
            if !gap[colon..].starts_with('#') {
                break;
            }
            colon += gap[colon..].find('\n').unwrap_or(gap.len() - colon);
        }
        if !gap[colon..].starts_with(':') {
            return Ok(());
        }
        let at = Span::new(self.seen + colon, self.seen + colon + 1);
        if several_lines || gap[..colon].contains('\n') {
            return Err(ambiguous(at, "the key and its colon are not on one line", "put them on one line"));
        }
        if style == Style::Plain && gap[colon + 1..].starts_with([',', '[', ']', '{', '}']) {
            return Err(ambiguous(at, "a colon between brackets needs a space after it", "write `: `"));
        }
        Ok(())
    }

    /// Refuses a tab that starts a line within or after plain text.
    fn tab_after_line_break(&self, start: usize, end: usize) -> Result<(), Box<Diagnostic>> {
        let text = &self.source[start..end];
        for (newline, _) in text.match_indices('\n') {
            let line = &text[newline + 1..];
            let spaces = line.len() - line.trim_start_matches(' ').len();
            if line[spaces..].starts_with('\t') {
                let offset = start + newline + 1 + spaces;
                return Err(ambiguous(
                    Span::new(offset, offset + 1),
                    "a tab where YAML 1.1 requires spaces",
                    "use spaces",
                ));
            }
        }
        Ok(())
    }

    /// Refuses escaped surrogates, which only JSON combines into a character.
    fn surrogates(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        let written = &self.source[span.range()];
        if self.syntax == Syntax::Json || !written.starts_with('"') {
            return Ok(());
        }
        let mut bytes = written.bytes().enumerate();
        while let Some((at, byte)) = bytes.next() {
            if byte != b'\\' {
                continue;
            }
            let escape = written.as_bytes().get(at + 1..at + 4);
            if matches!(escape, Some([b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F'])) {
                let at = span.start as usize + at;
                let what = "half of a surrogate pair, which YAML 1.1 refuses";
                return Err(ambiguous(
                    Span::new(at, at + 6),
                    what,
                    "write the character itself, or `\\U` and eight digits",
                ));
            }
            bytes.next();
        }
        Ok(())
    }

    /// Whether the whitespace around `offset` is only a separator: it is neither indentation nor after a bare
    /// indicator.
    fn tab_is_plain_space(&self, offset: usize) -> bool {
        let line = self.source[..offset].rsplit('\n').next().unwrap_or_default();
        let line = line.trim_start_matches('\u{feff}').trim_end_matches([' ', '\t']);
        match line.strip_suffix(':') {
            // The whitespace may follow the colon of a key, but not a bare colon.
            Some(key) => !key.trim_start().is_empty() && !key.ends_with([' ', '\t']),
            None => !line.trim_start().is_empty() && !line.ends_with(['-', '?', '|', '>']),
        }
    }

    /// Refuses tabs in the indentation of the block scalar whose header is at `header`.
    fn block(&self, header: usize, end: usize) -> Result<(), Box<Diagnostic>> {
        let mut lines = self.source[header..end].split('\n');
        let first = lines.next().unwrap_or_default();
        let explicit = first.bytes().take(3).any(|byte| byte.is_ascii_digit());
        let mut indent = explicit.then_some(usize::MAX);
        let mut offset = header + first.len() + 1;
        for line in lines {
            let text = line.trim_start_matches(' ');
            let spaces = line.len() - text.len();
            if text.starts_with('\t') && indent.is_none_or(|indent| spaces < indent) {
                let at = Span::new(offset + spaces, offset + spaces + 1);
                let what = "a tab where the indentation of the block scalar is expected";
                return Err(ambiguous(at, what, "start the first line with another character"));
            }
            if indent.is_none() && !text.trim_end_matches('\r').is_empty() {
                indent = Some(spaces);
            }
            offset += line.len() + 1;
        }
        Ok(())
    }
}

/// The bytes of a scalar of a compatible text, including its header: equal to the result of
/// [`CompatChecker::scalar`].
pub fn compatible_span(span: Span, style: Style, source: &str) -> Span {
    let (start, end) = (span.start as usize, span.end as usize);
    match style {
        Style::Plain | Style::Quoted => span,
        // Between the header and the text there are only spaces and a chomping indicator.
        Style::Block => written_block(source, source[..start].rfind(['|', '>']).unwrap_or(start), end),
    }
}

/// The bytes of a block scalar from its header to the end of its text.
fn written_block(source: &str, header: usize, end: usize) -> Span {
    let written = source[header..end].trim_end_matches(['\n', '\r', ' ', '\t']);
    Span::new(header, header + written.len())
}

/// The value of a block scalar in YAML 1.1: without a final newline if the file has none.
///
/// **Invariant:** a block scalar that ends with the file, without a newline, has no final newline in its
/// value.
pub fn block_text<'a>(text: &'a str, span: Span, source: &str) -> Result<&'a str, Box<Diagnostic>> {
    let unfinished = span.end as usize >= source.len() && !source.ends_with('\n');
    if !unfinished || !text.ends_with('\n') {
        return Ok(text);
    }
    if source.rsplit('\n').next().is_some_and(|line| line.trim().is_empty()) {
        let at = Span::new(source.len(), source.len());
        return Err(ambiguous(
            at,
            "the file ends in whitespace within a block scalar",
            "end the file with a newline",
        ));
    }
    Ok(&text[..text.len() - 1])
}

fn ambiguous(span: Span, what: &str, hint: &str) -> Box<Diagnostic> {
    Box::new(characters::ambiguous(span, what, hint))
}

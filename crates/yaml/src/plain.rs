//! Plain block YAML, which nearly all datafiles are, read in one pass over the bytes.
//!
//! It knows block maps and lists, scalars on one line, flow collections on one line, blocks of text and comments. A
//! text with anything else (anchors, tags, several documents, text over several lines, tabs, mistakes) is none of its
//! business: it gives up, and the parser behind [`crate::granit`] reads the text from the start.
//!
//! **Invariant:** if it takes a text, its events and their bytes are those of granit, and granit finds no error.

mod blocks;
mod flow;
mod scalars;
mod text;

#[cfg(test)]
mod compare;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use qontract_diagnostics::{Diagnostic, Span};

use crate::events::{Event, EventSource, Properties, Style};

/// The events of a text that was read to its end.
pub struct Plain<'a> {
    text: &'a str,
    steps: std::vec::IntoIter<Step>,
    made: std::vec::IntoIter<String>,
}

/// One event, small: most scalars are a part of the text.
#[derive(Clone, Copy)]
struct Step {
    kind: Kind,
    span: Span,
}

#[derive(Clone, Copy)]
enum Kind {
    DocumentStart,
    MapStart,
    MapEnd,
    ListStart,
    ListEnd,
    /// A scalar that is what its bytes say.
    Plain,
    /// A scalar that is what stands between its quotes.
    Quoted,
    /// A scalar whose text was made, in the order of the scalars.
    Made(Style),
    End,
}

/// The events of `text`, or `None` if it holds anything that is not plain.
pub fn read(text: &str) -> Option<Plain<'_>> {
    if !text::is_legible(text) {
        return None;
    }
    let mut reader = Reader::new(text);
    reader.document()?;
    Some(Plain { text, steps: reader.steps.into_iter(), made: reader.made.into_iter() })
}

impl<'a> EventSource<'a> for Plain<'a> {
    fn next_event(&mut self) -> Result<(Event<'a>, Span), Box<Diagnostic>> {
        let end = Span::new(self.text.len(), self.text.len());
        let Step { kind, span } = self.steps.next().unwrap_or(Step { kind: Kind::End, span: end });
        let scalar =
            |text: Cow<'a, str>, style| Event::Scalar { text, style, properties: Properties::default() };
        let event = match kind {
            Kind::DocumentStart => Event::DocumentStart,
            Kind::MapStart => Event::MapStart(Properties::default()),
            Kind::MapEnd => Event::MapEnd,
            Kind::ListStart => Event::ListStart(Properties::default()),
            Kind::ListEnd => Event::ListEnd,
            // What was left out is written as granit writes it.
            Kind::Plain if span.start == span.end => scalar(Cow::Borrowed("~"), Style::Plain),
            Kind::Plain => scalar(Cow::Borrowed(&self.text[span.range()]), Style::Plain),
            Kind::Quoted => {
                let inside = span.start as usize + 1..span.end as usize - 1;
                scalar(Cow::Borrowed(&self.text[inside]), Style::Quoted)
            }
            Kind::Made(style) => scalar(Cow::Owned(self.made.next().unwrap_or_default()), style),
            Kind::End => Event::End,
        };
        Ok((event, span))
    }
}

/// A reader within a text.
struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The next byte.
    at: usize,
    steps: Vec<Step>,
    made: Vec<String>,
    /// The open block collections, the innermost last.
    open: Vec<Open>,
    /// Where the value of the last key or dash would be if it were left out; `None` if it was there.
    wait: Option<usize>,
}

/// A block collection that is not finished.
#[derive(Clone, Copy)]
struct Open {
    column: usize,
    kind: Collection,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Collection {
    Map,
    List,
    /// A list as deep as the key it is the value of.
    FlatList,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        // About an event for every twelve bytes.
        let steps = Vec::with_capacity(text.len() / 12 + 16);
        let open = Vec::with_capacity(8);
        Self { text, bytes: text.as_bytes(), at: 0, steps, made: Vec::new(), open, wait: None }
    }

    /// The byte at `at`; the end of the text ends its last line.
    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    #[inline]
    fn emit(&mut self, kind: Kind, start: usize, end: usize) {
        self.steps.push(Step { kind, span: Span::new(start, end) });
    }

    /// The first byte from `at` on that is no space.
    #[inline]
    fn after_spaces(&self, mut at: usize) -> usize {
        while self.byte(at) == b' ' {
            at += 1;
        }
        at
    }

    /// The end of the line that `at` is in.
    #[inline]
    fn line_end(&self, at: usize) -> usize {
        self.bytes[at..].iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |length| at + length)
    }

    /// Goes to the next line; nothing but blanks and a comment may follow.
    fn finish_line(&mut self, at: usize) -> Option<()> {
        let mut end = self.after_spaces(at);
        if self.byte(end) == b'#' && end > at {
            end = self.line_end(end);
        }
        self.next_line(end)
    }

    /// Goes to the line after the line end at `end`.
    fn next_line(&mut self, end: usize) -> Option<()> {
        if self.byte(end) != b'\n' {
            return None;
        }
        self.at = (end + 1).min(self.bytes.len());
        Some(())
    }
}

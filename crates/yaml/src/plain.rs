//! Plain block YAML, which nearly all datafiles are, read in one pass over the bytes.
//!
//! It knows block maps and lists, scalars and flow collections on one line, blocks of text, comments, and anchors and
//! aliases of values. A text with anything else (tags, several documents, scalars over several lines, tabs, mistakes)
//! is none of its business: it gives up, and the parser behind [`crate::granit`] reads the text from the start.
//!
//! **Invariant:** if it takes a text, its events and their bytes are those of granit, and granit finds no error.
//!
//! **Invariant:** if it takes a text, [`crate::dialect`] has nothing to refuse in it.

mod anchors;
mod block;
mod blocks;
mod flow;
mod scalars;

#[cfg(any(test, fuzzing))]
pub mod compare;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod given_up;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use qontract_diagnostics::{Diagnostic, Span};

use crate::characters;
use crate::events::{AnchorId, Event, EventSource, Properties, Style};

/// The events of a text that was read to its end.
pub struct Plain<'a> {
    text: &'a str,
    steps: std::vec::IntoIter<Step>,
    made: std::vec::IntoIter<String>,
    aliases: std::vec::IntoIter<usize>,
    /// How many anchors were passed.
    anchors: usize,
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
    /// The name of the node before.
    Anchor,
    /// An alias, in the order of the aliases.
    Alias,
    End,
}

/// The events of `text`, or `None` if it holds anything that is not plain.
pub fn read(text: &str) -> Option<Plain<'_>> {
    if !characters::are_legible(text) {
        return None;
    }
    let mut reader = Reader::new(text);
    reader.document()?;
    let Reader { steps, made, aliases, .. } = reader;
    let (steps, made, aliases) = (steps.into_iter(), made.into_iter(), aliases.into_iter());
    Some(Plain { text, steps, made, aliases, anchors: 0 })
}

impl<'a> Plain<'a> {
    /// What the node before the next step carries.
    fn properties(&self) -> Properties {
        let named = matches!(self.steps.as_slice().first(), Some(Step { kind: Kind::Anchor, .. }));
        Properties { anchor: named.then_some(AnchorId(self.anchors + 1)), tag: None }
    }

    fn scalar(&self, text: impl Into<Cow<'a, str>>, style: Style) -> Event<'a> {
        Event::Scalar { text: text.into(), style, properties: self.properties() }
    }
}

impl<'a> EventSource<'a> for Plain<'a> {
    fn next_event(&mut self) -> Result<(Event<'a>, Span), Box<Diagnostic>> {
        let end = Span::new(self.text.len(), self.text.len());
        let Step { kind, span } = self.steps.next().unwrap_or(Step { kind: Kind::End, span: end });
        let (start, end) = (span.start as usize, span.end as usize);
        let event = match kind {
            Kind::DocumentStart => Event::DocumentStart,
            Kind::MapStart => Event::MapStart(self.properties()),
            Kind::MapEnd => Event::MapEnd,
            Kind::ListStart => Event::ListStart(self.properties()),
            Kind::ListEnd => Event::ListEnd,
            // What was left out is written as granit writes it.
            Kind::Plain if start == end => self.scalar("~", Style::Plain),
            Kind::Plain => self.scalar(&self.text[start..end], Style::Plain),
            Kind::Quoted => self.scalar(&self.text[start + 1..end - 1], Style::Quoted),
            Kind::Made(style) => {
                let text = self.made.next().unwrap_or_default();
                self.scalar(text, style)
            }
            Kind::Anchor => {
                self.anchors += 1;
                Event::AnchorName(self.text[start + 1..end].to_owned())
            }
            Kind::Alias => Event::Alias(AnchorId(self.aliases.next().unwrap_or_default())),
            Kind::End => Event::End,
        };
        Ok((event, span))
    }

    fn is_settled(&self) -> bool {
        true
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
    /// What aliases stand for, counted in anchors.
    aliases: Vec<usize>,
    /// The names of all anchors so far.
    anchors: Vec<&'a str>,
    /// The bytes of an anchor whose node comes next.
    anchor: Option<(usize, usize)>,
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
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            steps,
            made: Vec::new(),
            aliases: Vec::new(),
            anchors: Vec::new(),
            anchor: None,
            open,
            wait: None,
        }
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

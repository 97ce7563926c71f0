//! Fast parser for simple block YAML, in which nearly all datafiles are written. It makes one pass over the
//! bytes.
//!
//! It supports block maps and lists, scalars and flow collections on one line, block scalars, comments, and
//! anchors and aliases of values. At any other construct (tags, several documents, multi-line scalars, tabs,
//! errors), it stops, and the fallback parser ([`crate::fallback`]) parses the text from the start.
//!
//! **Invariant:** if the fast parser accepts a file, its events and their spans are those of granit, and
//! granit finds no error.
//!
//! **Invariant:** if the fast parser accepts a file, the compatibility checker ([`crate::yaml11_compat`])
//! refuses nothing in the file.

mod anchors;
mod block_collection;
mod block_scalar;
mod flow;
mod scalars;

#[cfg(any(test, fuzzing))]
pub mod compare;
#[cfg(test)]
mod fallback_cases;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use qontract_diagnostics::{Diagnostic, Span};

use crate::characters;
use crate::events::{AnchorId, Event, EventSource, NodeProperties, Style};

/// The events of a completely parsed text.
pub struct FastEvents<'a> {
    text: &'a str,
    steps: std::vec::IntoIter<FastEvent>,
    decoded: std::vec::IntoIter<String>,
    aliases: std::vec::IntoIter<usize>,
    /// Number of anchors emitted so far.
    anchors: usize,
}

/// A compact event. Most scalars are stored as a range of the text.
#[derive(Clone, Copy)]
struct FastEvent {
    kind: FastEventKind,
    span: Span,
}

#[derive(Clone, Copy)]
enum FastEventKind {
    DocumentStart,
    MapStart,
    MapEnd,
    ListStart,
    ListEnd,
    /// A scalar whose value is its bytes.
    Plain,
    /// A scalar whose value is the text between its quotes.
    Quoted,
    /// A scalar whose value was decoded; values are in the order of the scalars.
    Decoded(Style),
    /// The anchor name of the previous node.
    Anchor,
    /// An alias; its target is in `aliases`, in the order of the aliases.
    Alias,
    End,
}

/// The events of `text`, or `None` if it needs the fallback parser.
pub fn parse(text: &str) -> Option<FastEvents<'_>> {
    if !characters::is_valid_charset(text) {
        return None;
    }
    let mut reader = FastParser::new(text);
    reader.document()?;
    let FastParser { steps, decoded: made, aliases, .. } = reader;
    let (steps, made, aliases) = (steps.into_iter(), made.into_iter(), aliases.into_iter());
    Some(FastEvents { text, steps, decoded: made, aliases, anchors: 0 })
}

impl<'a> FastEvents<'a> {
    /// The properties of the node before the next event.
    fn properties(&self) -> NodeProperties {
        let named =
            matches!(self.steps.as_slice().first(), Some(FastEvent { kind: FastEventKind::Anchor, .. }));
        NodeProperties { anchor: named.then_some(AnchorId(self.anchors + 1)), tag: None }
    }

    fn scalar(&self, text: impl Into<Cow<'a, str>>, style: Style) -> Event<'a> {
        Event::Scalar { text: text.into(), style, properties: self.properties() }
    }
}

impl<'a> EventSource<'a> for FastEvents<'a> {
    fn next_event(&mut self) -> Result<(Event<'a>, Span), Box<Diagnostic>> {
        let end = Span::new(self.text.len(), self.text.len());
        let FastEvent { kind, span } =
            self.steps.next().unwrap_or(FastEvent { kind: FastEventKind::End, span: end });
        let (start, end) = (span.start as usize, span.end as usize);
        let event = match kind {
            FastEventKind::DocumentStart => Event::DocumentStart,
            FastEventKind::MapStart => Event::MapStart(self.properties()),
            FastEventKind::MapEnd => Event::MapEnd,
            FastEventKind::ListStart => Event::ListStart(self.properties()),
            FastEventKind::ListEnd => Event::ListEnd,
            // A missing value is `~`, as in granit.
            FastEventKind::Plain if start == end => self.scalar("~", Style::Plain),
            FastEventKind::Plain => self.scalar(&self.text[start..end], Style::Plain),
            FastEventKind::Quoted => self.scalar(&self.text[start + 1..end - 1], Style::Quoted),
            FastEventKind::Decoded(style) => {
                let text = self.decoded.next().unwrap_or_default();
                self.scalar(text, style)
            }
            FastEventKind::Anchor => {
                self.anchors += 1;
                Event::AnchorName(self.text[start + 1..end].to_owned())
            }
            FastEventKind::Alias => Event::Alias(AnchorId(self.aliases.next().unwrap_or_default())),
            FastEventKind::End => Event::End,
        };
        Ok((event, span))
    }

    fn is_compatible(&self) -> bool {
        true
    }
}

/// The parser state.
struct FastParser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The offset of the next byte.
    at: usize,
    steps: Vec<FastEvent>,
    decoded: Vec<String>,
    /// The targets of aliases, as anchor numbers.
    aliases: Vec<usize>,
    /// The names of all anchors so far.
    anchors: Vec<&'a str>,
    /// The range of an anchor whose node comes next.
    anchor: Option<(usize, usize)>,
    /// The open block collections, the innermost last.
    open: Vec<OpenCollection>,
    /// Position at which the value of the last key or dash is missing; `None` if the value is present.
    pending_value: Option<usize>,
}

/// A block collection that is not complete.
#[derive(Clone, Copy)]
struct OpenCollection {
    column: usize,
    kind: Collection,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Collection {
    Map,
    List,
    /// A list with the same indentation as the key to which it belongs.
    FlatList,
}

impl<'a> FastParser<'a> {
    fn new(text: &'a str) -> Self {
        // The capacity is one event per twelve bytes.
        let steps = Vec::with_capacity(text.len() / 12 + 16);
        let open = Vec::with_capacity(8);
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            steps,
            decoded: Vec::new(),
            aliases: Vec::new(),
            anchors: Vec::new(),
            anchor: None,
            open,
            pending_value: None,
        }
    }

    /// The byte at `at`; a newline at the end of the text.
    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    #[inline]
    fn emit(&mut self, kind: FastEventKind, start: usize, end: usize) {
        self.steps.push(FastEvent { kind, span: Span::new(start, end) });
    }

    /// Offset of the first byte at or after `at` that is not a space.
    #[inline]
    fn after_spaces(&self, mut at: usize) -> usize {
        while self.byte(at) == b' ' {
            at += 1;
        }
        at
    }

    /// The end of the line that contains `at`.
    #[inline]
    fn line_end(&self, at: usize) -> usize {
        self.bytes[at..].iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |length| at + length)
    }

    /// Moves to the next line; only spaces and a comment may follow.
    fn finish_line(&mut self, at: usize) -> Option<()> {
        let mut end = self.after_spaces(at);
        if self.byte(end) == b'#' && end > at {
            end = self.line_end(end);
        }
        self.next_line(end)
    }

    /// Moves to the line after the line end at `end`.
    fn next_line(&mut self, end: usize) -> Option<()> {
        if self.byte(end) != b'\n' {
            return None;
        }
        self.at = (end + 1).min(self.bytes.len());
        Some(())
    }
}

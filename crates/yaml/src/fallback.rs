//! Fallback parser for every text that the fast parser does not accept. It uses granit, a YAML 1.2 event
//! parser that can be as lenient about indentation as libyaml.

use granit_parser::{
    ErrorKind, Event as GranitEvent, Parser, ScalarStyle, Span as GranitSpan, StrInput, Tag,
};
use qontract_diagnostics::{Diagnostic, Span, code};

use crate::events::{AnchorId, Event, EventSource, NodeProperties, Style};

/// The granit parser on one text.
pub struct FallbackParser<'a> {
    parser: Parser<'a, StrInput<'a>>,
    length: usize,
}

impl<'a> FallbackParser<'a> {
    /// Creates a parser for `text`.
    pub fn new(text: &'a str) -> Self {
        let options = granit_parser::options! {
            disallow_directives: true,
            emit_anchor_events: true,
            flow_nesting_limit: 1_000,
            block_nesting_limit: 1_000,
        };
        Self { parser: Parser::new_from_str_with_options(text, options), length: text.len() }
    }
}

impl<'a> EventSource<'a> for FallbackParser<'a> {
    fn next_event(&mut self) -> Result<(Event<'a>, Span), Box<Diagnostic>> {
        loop {
            let Some(next) = self.parser.next_event() else {
                return Ok((Event::End, Span::new(self.length, self.length)));
            };
            let (event, span) = next.map_err(|error| {
                let at = error.marker().byte_offset().unwrap_or(self.length).min(self.length);
                let code = match error.kind() {
                    ErrorKind::RecursionLimitExceeded => code::YAML_DEPTH,
                    _ => code::YAML_SYNTAX,
                };
                Box::new(Diagnostic::new(code, error.info()).at(Span::new(at, at + 1)))
            })?;
            if let Some(event) = translate(event) {
                return Ok((event, bytes(span)));
            }
        }
    }
}

fn bytes(span: GranitSpan) -> Span {
    span.byte_range().map_or_else(Span::default, |range| Span::new(range.start, range.end))
}

fn translate(event: GranitEvent<'_>) -> Option<Event<'_>> {
    Some(match event {
        GranitEvent::DocumentStart(..) => Event::DocumentStart,
        GranitEvent::StreamEnd => Event::End,
        GranitEvent::Alias(id) => Event::Alias(AnchorId(id)),
        GranitEvent::Anchor(_, name) => Event::AnchorName(name.into_owned()),
        GranitEvent::Scalar(text, style, anchor, tag) => {
            let properties = properties(anchor, tag.as_deref());
            let style = match style {
                ScalarStyle::Plain => Style::Plain,
                ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
            };
            Event::Scalar { text, style, properties }
        }
        GranitEvent::SequenceStart(_, anchor, tag) => Event::ListStart(properties(anchor, tag.as_deref())),
        GranitEvent::SequenceEnd => Event::ListEnd,
        GranitEvent::MappingStart(_, anchor, tag) => Event::MapStart(properties(anchor, tag.as_deref())),
        GranitEvent::MappingEnd => Event::MapEnd,
        // The start of the stream and the end of a document have no content, and new kinds of events would be
        // metadata.
        _ => return None,
    })
}

fn properties(anchor: usize, tag: Option<&Tag>) -> NodeProperties {
    NodeProperties { anchor: (anchor != 0).then_some(AnchorId(anchor)), tag: tag.map(Tag::original) }
}

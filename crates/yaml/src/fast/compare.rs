//! Compares the fast parser with the fallback parser.

use qontract_diagnostics::Span;

use crate::Syntax;
use crate::events::{Event, EventSource, Style};
use crate::fallback::FallbackParser;
use crate::yaml11_compat::{self, CompatChecker};

/// All events of a source, or `None` if the source finds an error.
fn events<'a>(mut source: impl EventSource<'a>) -> Option<Vec<(Event<'a>, Span)>> {
    let mut events = Vec::new();
    loop {
        let (event, span) = source.next_event().ok()?;
        let last = event == Event::End;
        events.push((event, span));
        if last {
            return Some(events);
        }
    }
}

/// Whether the fast parser accepts `text`; an error if its events differ from those of granit.
pub fn takes(text: &str) -> Result<bool, String> {
    let Some(plain) = super::parse(text) else { return Ok(false) };
    let plain = events(plain).ok_or("the fast parser reports no errors")?;
    let Some(granit) = events(FallbackParser::new(text)) else {
        return Err(format!("{text:?} is an error in granit, but accepted by the fast parser: {plain:?}"));
    };
    if plain == granit {
        return check_compatible(text, &plain).map(|()| true);
    }
    let first = plain.iter().zip(&granit).position(|(plain, granit)| plain != granit);
    let first = first.unwrap_or(plain.len().min(granit.len()));
    let (plain, granit) = (plain.get(first), granit.get(first));
    Err(format!("{text:?}: event {first}\n  plain:  {plain:?}\n  granit: {granit:?}"))
}

/// Checks that the compatibility checker has nothing to refuse or correct in the events of `text`.
fn check_compatible(text: &str, events: &[(Event<'_>, Span)]) -> Result<(), String> {
    let mut watch = CompatChecker::new(text, Syntax::Yaml);
    for (event, span) in events {
        let Event::Scalar { text: scalar, style, .. } = event else { continue };
        let written = watch.scalar(*span, *style).map_err(|refused| format!("{text:?}: {refused:?}"))?;
        if written != yaml11_compat::compatible_span(*span, *style, text) {
            return Err(format!("{text:?}: {event:?} is written at {written:?}"));
        }
        if *style == Style::Block && yaml11_compat::block_text(scalar, *span, text).ok() != Some(&**scalar) {
            return Err(format!("{text:?}: {event:?} ends as in YAML 1.2"));
        }
    }
    watch.end().map_err(|refused| format!("{text:?}: {refused:?}"))
}

//! The events of a YAML text, and the trait that its parsers implement.

use std::borrow::Cow;

use qontract_diagnostics::{Diagnostic, Span};

/// Identifies an anchor of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnchorId(pub usize);

/// The properties of a node besides its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProperties {
    /// The anchor, if it has one.
    pub anchor: Option<AnchorId>,
    /// The tag as written, if it has one.
    pub tag: Option<String>,
}

/// The style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Unquoted: the only style that is resolved to numbers, booleans and null.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// Below `|` or `>`.
    Block,
}

/// A parse event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A document begins.
    DocumentStart,
    /// The text ends.
    End,
    /// The anchor name of the previous node.
    AnchorName(String),
    /// An alias: a reference to the value of an anchor.
    Alias(AnchorId),
    /// A scalar.
    Scalar { text: Cow<'a, str>, style: Style, properties: NodeProperties },
    /// A list begins.
    ListStart(NodeProperties),
    /// The innermost list ends.
    ListEnd,
    /// A map begins; keys and values alternate.
    MapStart(NodeProperties),
    /// The innermost map ends.
    MapEnd,
}

/// A parser, which reads a text and returns its events.
pub trait EventSource<'a> {
    /// The next event and its bytes. The function is not called again after [`Event::End`].
    fn next_event(&mut self) -> Result<(Event<'a>, Span), Box<Diagnostic>>;

    /// Whether the text certainly has no construct on which YAML 1.1 and 1.2 differ.
    fn is_compatible(&self) -> bool {
        false
    }
}

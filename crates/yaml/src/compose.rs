//! Builds the tree from events: handles anchors, aliases, merge keys and limits, and reports findings about
//! them.

use std::collections::HashMap;
use std::sync::OnceLock;

use qontract_diagnostics::{Diagnostic, Span, code};

use crate::events::{AnchorId, Event, EventSource, NodeProperties, Style};
use crate::limits::Limits;
use crate::merge::{self, Key, RawEntry};
use crate::scalar::{self, Scalar};
use crate::tree::{ArenaRange, Document, NodeId, Slot};
use crate::yaml11_compat::{self, CompatChecker};
use crate::{ParsedYaml, Syntax};

/// Builds the tree of the one document in `events`.
pub fn compose<'a>(
    mut events: impl EventSource<'a>,
    text: &str,
    syntax: Syntax,
    limits: &Limits,
) -> ParsedYaml {
    let watch = (!events.is_compatible()).then(|| CompatChecker::new(text, syntax));
    let mut composer = Composer::new(text, watch, syntax, limits);
    let end = loop {
        match events.next_event() {
            Ok((Event::End, _)) => break composer.checker.as_mut().map_or(Ok(()), CompatChecker::end),
            Ok((event, span)) => {
                if let Err(finding) = composer.handle_event(event, span) {
                    break Err(finding);
                }
            }
            Err(finding) => break Err(finding),
        }
    };
    if let Err(finding) = end {
        composer.findings.push(*finding);
    }
    let Composer { document, mut findings, .. } = composer;
    // The number of findings is limited, because a hostile file must not exhaust memory. The limit is high
    // enough to show a mistake that occurs everywhere.
    let first_error = findings.iter().position(Diagnostic::is_error);
    if let Some(error) = first_error.filter(|error| *error >= MAX_FINDINGS) {
        findings.swap(error, MAX_FINDINGS - 1);
    }
    findings.truncate(MAX_FINDINGS);
    let whole = document.root.is_some() && !findings.iter().any(Diagnostic::is_error);
    ParsedYaml { document: whole.then_some(document), findings }
}

/// Maximum number of findings about one file.
const MAX_FINDINGS: usize = 1_000;

/// The size of a value with all aliases expanded.
#[derive(Clone, Copy, Default)]
struct ExpandedSize {
    values: u64,
    text: u64,
    depth: u16,
}

/// A list or map that is not complete.
struct Frame {
    kind: FrameKind,
    start: Span,
    anchor: Option<AnchorId>,
    /// Index of the frame's first child on the stack of pending children.
    base: usize,
}

enum FrameKind {
    List,
    /// A map, with the key of the next value.
    Map(Option<(Key, Span)>),
}

/// The value of an anchor, which is available only once it is complete.
enum AnchorState {
    Open,
    Complete(NodeId),
}

struct Composer<'t> {
    source: &'t str,
    /// `None` for files without differences between YAML 1.1 and 1.2.
    checker: Option<CompatChecker<'t>>,
    syntax: Syntax,
    limits: &'t Limits,
    document: Document,
    weights: Vec<ExpandedSize>,
    findings: Vec<Diagnostic>,
    frames: Vec<Frame>,
    items: Vec<NodeId>,
    entries: Vec<RawEntry>,
    anchors: HashMap<AnchorId, AnchorState>,
    anchor_names: HashMap<String, Span>,
    started: bool,
}

/// A finding that ends parsing, because the rest of the file cannot be interpreted.
type FatalFinding = Box<Diagnostic>;

impl<'t> Composer<'t> {
    fn new(source: &'t str, checker: Option<CompatChecker<'t>>, syntax: Syntax, limits: &'t Limits) -> Self {
        // The capacity is one value per twenty bytes, so most files need no reallocation.
        let values = source.len() / 20 + 8;
        let document = Document {
            slots: Vec::with_capacity(values),
            spans: Vec::with_capacity(values),
            items: Vec::with_capacity(values / 8),
            entries: Vec::with_capacity(values),
            text: String::with_capacity(source.len()),
            root: None,
            index: OnceLock::new(),
        };
        Self {
            source,
            checker,
            syntax,
            limits,
            document,
            weights: Vec::with_capacity(values),
            findings: Vec::new(),
            frames: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            anchors: HashMap::new(),
            anchor_names: HashMap::new(),
            started: false,
        }
    }

    fn handle_event(&mut self, event: Event<'_>, span: Span) -> Result<(), FatalFinding> {
        match event {
            Event::DocumentStart if self.started => {
                let finding = Diagnostic::new(code::YAML_DOCUMENTS, "a second document starts here").at(span);
                Err(Box::new(finding.hint("a datafile is one document: give the second one its own file")))
            }
            Event::DocumentStart => {
                self.started = true;
                Ok(())
            }
            Event::End => Ok(()),
            Event::AnchorName(name) => {
                self.name_anchor(name, span);
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Scalar { text, style, properties } => self.scalar(&text, style, &properties, span),
            Event::ListStart(properties) => self.open(FrameKind::List, &properties, span),
            Event::MapStart(properties) => self.open(FrameKind::Map(None), &properties, span),
            Event::ListEnd | Event::MapEnd => self.close(span),
        }
    }

    fn name_anchor(&mut self, name: String, span: Span) {
        let usual = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        let after = self.source.as_bytes().get(span.end as usize);
        if !usual || after.is_some_and(|byte| !byte.is_ascii_whitespace()) {
            let finding = Diagnostic::new(
                code::YAML_AMBIGUOUS,
                format!("YAML parsers disagree on where `&{name}` ends"),
            );
            let hint = "name anchors with letters, digits, `_` and `-`, and put a space after them";
            self.findings.push(finding.at(span).hint(hint));
        }
        if let Some(first) = self.anchor_names.get(&name) {
            let finding = Diagnostic::new(
                code::YAML_DUPLICATE_ANCHOR,
                format!("the anchor `&{name}` is defined twice"),
            );
            self.findings.push(finding.at(span).note_at("first defined here", *first));
        } else {
            self.anchor_names.insert(name, span);
        }
    }

    fn refuse_tag(&mut self, properties: &NodeProperties, span: Span) {
        let Some(tag) = &properties.tag else { return };
        let finding = Diagnostic::new(code::YAML_TAG, format!("the tag `{tag}` is not allowed")).at(span);
        self.findings.push(finding.hint("write the value itself; quote strings that look like numbers"));
    }

    fn alias(&mut self, anchor: AnchorId, span: Span) -> Result<(), FatalFinding> {
        let Some(AnchorState::Complete(node)) = self.anchors.get(&anchor) else {
            let finding = Diagnostic::new(code::YAML_CYCLE, "the alias refers to a value that contains it");
            return Err(Box::new(finding.at(span)));
        };
        let node = *node;
        if self.expects_key() {
            let key = match self.document.slots[node.0 as usize] {
                Slot::Str(stretch) => Key::Str(stretch),
                _ => self.refuse_key(span),
            };
            self.set_key(key, span);
            return Ok(());
        }
        self.attach_to_parent(node)
    }

    fn expects_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { kind: FrameKind::Map(None), .. }))
    }

    fn set_key(&mut self, key: Key, span: Span) {
        if let Some(Frame { kind: FrameKind::Map(pending), .. }) = self.frames.last_mut() {
            *pending = Some((key, span));
        }
    }

    fn refuse_key(&mut self, span: Span) -> Key {
        let written = self.source.get(span.range()).unwrap_or_default();
        let message = if written.is_empty() || written.len() > 40 || written.contains('\n') {
            "the key is not a string".to_owned()
        } else {
            format!("the key `{written}` is not a string")
        };
        let finding = Diagnostic::new(code::YAML_KEY, message).at(span);
        self.findings.push(finding.hint("put the key into quotes"));
        Key::Refused
    }

    fn scalar(
        &mut self,
        text: &str,
        style: Style,
        properties: &NodeProperties,
        span: Span,
    ) -> Result<(), FatalFinding> {
        let text =
            if style == Style::Block { yaml11_compat::block_text(text, span, self.source)? } else { text };
        let span = match &mut self.checker {
            Some(watch) => watch.scalar(span, style)?,
            None => yaml11_compat::compatible_span(span, style, self.source),
        };
        self.refuse_tag(properties, span);
        let scalar = match (style, self.syntax) {
            (Style::Plain, Syntax::Yaml) => scalar::resolve(text),
            (Style::Plain, Syntax::Json) => scalar::resolve_json(text)
                .ok_or_else(|| Box::new(Diagnostic::new(code::YAML_SYNTAX, "this is not JSON").at(span)))?,
            (Style::Quoted | Style::Block, _) => Scalar::Str,
        };
        if self.expects_key() {
            let key = match scalar {
                Scalar::Str | Scalar::Default => Key::Str(self.store_text(text)),
                Scalar::Merge if properties.anchor.is_none() => Key::Merge,
                _ => self.refuse_key(span),
            };
            if let (Some(anchor), Key::Str(stretch)) = (properties.anchor, key) {
                let node = self.add(Slot::Str(stretch), span, text_size(text));
                self.anchors.insert(anchor, AnchorState::Complete(node));
            }
            self.set_key(key, span);
            return Ok(());
        }
        let slot = match scalar {
            Scalar::Null => Slot::Null,
            Scalar::Bool(value) => Slot::Bool(value),
            Scalar::Int(value) => Slot::Int(value),
            Scalar::BigInt(digits) => Slot::BigInt(self.store_text(&digits)),
            Scalar::Float(value) => Slot::Float(value),
            Scalar::Str => Slot::Str(self.store_text(text)),
            Scalar::Date | Scalar::Merge | Scalar::Default | Scalar::NoValue => {
                self.refuse_scalar(text, &scalar, span);
                Slot::Null
            }
        };
        let node = self.add(slot, span, text_size(text));
        if let Some(anchor) = properties.anchor {
            self.anchors.insert(anchor, AnchorState::Complete(node));
        }
        self.attach_to_parent(node)
    }

    fn refuse_scalar(&mut self, text: &str, scalar: &Scalar, span: Span) {
        let shown =
            if text.len() > 60 { &format!("{}…", text.chars().take(60).collect::<String>()) } else { text };
        let (code, message) = match scalar {
            Scalar::Date => (code::YAML_DATE, format!("`{shown}` is a date in YAML 1.1")),
            Scalar::Merge => (code::YAML_MERGE, "`<<` is used where a value is expected".to_owned()),
            Scalar::Default => (code::YAML_AMBIGUOUS, "`=` is a special value in YAML 1.1".to_owned()),
            _ => (code::YAML_NUMBER, format!("`{shown}` looks like a number, but has no value")),
        };
        self.findings.push(Diagnostic::new(code, message).at(span).hint(format!("write \"{shown}\"")));
    }

    fn store_text(&mut self, text: &str) -> ArenaRange {
        let start = narrow(self.document.text.len());
        self.document.text.push_str(text);
        ArenaRange { start, end: narrow(self.document.text.len()) }
    }

    fn add(&mut self, slot: Slot, span: Span, weight: ExpandedSize) -> NodeId {
        let id = NodeId(narrow(self.document.slots.len()));
        self.document.slots.push(slot);
        self.document.spans.push(span);
        self.weights.push(weight);
        id
    }

    fn open(&mut self, kind: FrameKind, properties: &NodeProperties, span: Span) -> Result<(), FatalFinding> {
        self.refuse_tag(properties, span);
        if self.expects_key() {
            self.refuse_key(span);
        }
        if self.frames.len() >= usize::from(self.limits.depth) {
            return Err(self.too_deep(span));
        }
        if let Some(anchor) = properties.anchor {
            self.anchors.insert(anchor, AnchorState::Open);
        }
        let base = match kind {
            FrameKind::List => self.items.len(),
            FrameKind::Map(_) => self.entries.len(),
        };
        self.frames.push(Frame { kind, start: span, anchor: properties.anchor, base });
        Ok(())
    }

    fn close(&mut self, end: Span) -> Result<(), FatalFinding> {
        let frame = self.frames.pop().expect("the parser closes what it opened");
        let (slot, weight, last) = match frame.kind {
            FrameKind::List => self.close_list(frame.base),
            FrameKind::Map(_) => {
                self.check_merge(frame.base, frame.start)?;
                self.close_map(frame.base)
            }
        };
        // A flow collection ends with its bracket, a block collection with its last value.
        let stop = if end.end > end.start { end.end } else { last.map_or(frame.start.end, |last| last.end) };
        let span = Span { start: frame.start.start, end: stop.max(frame.start.start) };
        self.check_weight(weight, span)?;
        let node = self.add(slot, span, weight);
        if let Some(anchor) = frame.anchor {
            self.anchors.insert(anchor, AnchorState::Complete(node));
        }
        self.attach_to_parent(node)
    }

    fn close_list(&mut self, base: usize) -> (Slot, ExpandedSize, Option<Span>) {
        let mut weight = ExpandedSize { values: 1, text: 0, depth: 1 };
        for node in &self.items[base..] {
            weight = weight.with(self.weights[node.0 as usize]);
        }
        let last = self.items[base..].last().map(|node| self.document.spans[node.0 as usize]);
        let start = narrow(self.document.items.len());
        self.document.items.extend(self.items.drain(base..));
        (Slot::List(ArenaRange { start, end: narrow(self.document.items.len()) }), weight, last)
    }

    /// Counts the entries that a merge key copies before they are copied, because a few lines can require
    /// billions of entries.
    fn check_merge(&self, base: usize, span: Span) -> Result<(), FatalFinding> {
        let raw = &self.entries[base..];
        if !raw.iter().any(|entry| matches!(entry.key, Key::Merge)) {
            return Ok(());
        }
        let copied: u64 = raw.iter().map(|entry| merge::size(entry, &self.document)).sum();
        let values = copied.saturating_add(self.document.entries.len() as u64);
        self.check_weight(ExpandedSize { values, ..ExpandedSize::default() }, span)
    }

    fn close_map(&mut self, base: usize) -> (Slot, ExpandedSize, Option<Span>) {
        let raw = &self.entries[base..];
        let last = raw.last().map(|entry| self.document.spans[entry.value.0 as usize].max(entry.key_span));
        let start = self.document.entries.len();
        if merge::is_simple(raw, &self.document) {
            self.document.entries.extend(raw.iter().filter_map(RawEntry::own));
        } else {
            let entries = merge::entries(raw, &self.document, &mut self.findings);
            self.document.entries.extend(entries);
        }
        let mut weight = ExpandedSize { values: 1, text: 0, depth: 1 };
        for entry in &self.document.entries[start..] {
            weight = weight.with(self.weights[entry.value.0 as usize]);
            weight.text += u64::from(entry.key.end - entry.key.start);
        }
        self.entries.truncate(base);
        let stretch = ArenaRange { start: narrow(start), end: narrow(self.document.entries.len()) };
        (Slot::Map(stretch), weight, last)
    }

    fn check_weight(&self, weight: ExpandedSize, span: Span) -> Result<(), FatalFinding> {
        if weight.depth > self.limits.depth {
            return Err(self.too_deep(span));
        }
        if weight.values > self.limits.values || weight.text > self.limits.text {
            let message = format!(
                "with aliases expanded, this is more than {} values or {} MiB of strings",
                self.limits.values,
                self.limits.text >> 20
            );
            return Err(Box::new(Diagnostic::new(code::YAML_EXPANSION, message).at(span)));
        }
        Ok(())
    }

    fn too_deep(&self, span: Span) -> FatalFinding {
        let message = format!("nested more than {} levels deep", self.limits.depth);
        Box::new(
            Diagnostic::new(code::YAML_DEPTH, message)
                .at(Span::new(span.start as usize, span.start as usize + 1)),
        )
    }

    /// Adds a complete value to its parent list or map.
    fn attach_to_parent(&mut self, node: NodeId) -> Result<(), FatalFinding> {
        let span = self.document.spans[node.0 as usize];
        match self.frames.last_mut() {
            None => {
                self.check_weight(self.weights[node.0 as usize], span)?;
                self.document.root = Some(node);
            }
            Some(Frame { kind: FrameKind::List, .. }) => self.items.push(node),
            Some(Frame { kind: FrameKind::Map(pending), .. }) => match pending.take() {
                Some((key, key_span)) => self.entries.push(RawEntry { key, key_span, value: node }),
                // A list or map as a key was already reported when it was opened.
                None => *pending = Some((Key::Refused, span)),
            },
        }
        Ok(())
    }
}

impl ExpandedSize {
    fn with(self, child: ExpandedSize) -> ExpandedSize {
        ExpandedSize {
            values: self.values.saturating_add(child.values),
            text: self.text.saturating_add(child.text),
            depth: self.depth.max(child.depth.saturating_add(1)),
        }
    }
}

fn text_size(text: &str) -> ExpandedSize {
    ExpandedSize { values: 1, text: text.len() as u64, depth: 0 }
}

/// Converts a size to 32 bits, which are enough for accepted files.
fn narrow(size: usize) -> u32 {
    u32::try_from(size).expect("files are limited to far less than 4 GiB")
}

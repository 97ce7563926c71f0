//! The tree of one document: values with byte spans, in the order of the file, stored in one arena.
//!
//! An alias refers to the node of its anchor and is not a copy: equal [`NodeId`]s mean the same value. Merge
//! keys are already applied.

mod index;

use std::fmt;
use std::sync::OnceLock;

use qontract_diagnostics::Span;

pub(crate) use index::MapIndex;

/// Identifies a node of its document. Positions with the same id have one value, to which aliases refer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl From<u32> for NodeId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<NodeId> for u32 {
    fn from(id: NodeId) -> Self {
        id.0
    }
}

/// One YAML document.
#[derive(Default)]
pub struct Document {
    pub(crate) slots: Vec<Slot>,
    pub(crate) spans: Vec<Span>,
    pub(crate) items: Vec<NodeId>,
    pub(crate) entries: Vec<EntrySlot>,
    /// All strings of the document, concatenated.
    pub(crate) text: String,
    pub(crate) root: Option<NodeId>,
    /// The index of large maps, built when an entry of such a map is first looked up.
    pub(crate) index: OnceLock<MapIndex>,
}

/// A range of one of the document's vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArenaRange {
    pub start: u32,
    pub end: u32,
}

impl ArenaRange {
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value as stored in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Null,
    Bool(bool),
    Int(i64),
    BigInt(ArenaRange),
    Float(f64),
    Str(ArenaRange),
    List(ArenaRange),
    Map(ArenaRange),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySlot {
    pub key: ArenaRange,
    pub key_span: Span,
    pub value: NodeId,
}

impl Document {
    /// The value of the whole document.
    pub fn root(&self) -> Node<'_> {
        Node { document: self, id: self.root.expect("a finished document has a root") }
    }

    /// Number of distinct values in the document.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the document has no value; never true for a document that [`crate::parse`] returns.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            Some(_) => self.root().fmt(f),
            None => f.write_str("(nothing)"),
        }
    }
}

/// A value of a document.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    document: &'a Document,
    id: NodeId,
}

/// The content of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A larger integer, as decimal digits.
    BigInt(&'a str),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Str(&'a str),
    /// A list.
    List(List<'a>),
    /// A map, in the order of the file.
    Map(Map<'a>),
}

impl<'a> Node<'a> {
    /// The node with this index in the arena.
    pub(crate) fn at(document: &'a Document, index: usize) -> Self {
        Self { document, id: NodeId(u32::try_from(index).expect("a node of the document")) }
    }

    /// The identifier in the document.
    pub fn id(self) -> NodeId {
        self.id
    }

    /// The bytes of the value; for an alias, the bytes of its anchor's value.
    pub fn span(self) -> Span {
        self.document.spans[self.id.0 as usize]
    }

    /// The content.
    pub fn value(self) -> Value<'a> {
        let text = |stretch: ArenaRange| &self.document.text[stretch.range()];
        match self.document.slots[self.id.0 as usize] {
            Slot::Null => Value::Null,
            Slot::Bool(value) => Value::Bool(value),
            Slot::Int(value) => Value::Int(value),
            Slot::BigInt(stretch) => Value::BigInt(text(stretch)),
            Slot::Float(value) => Value::Float(value),
            Slot::Str(stretch) => Value::Str(text(stretch)),
            Slot::List(stretch) => Value::List(List { document: self.document, stretch }),
            Slot::Map(stretch) => Value::Map(Map { document: self.document, stretch }),
        }
    }

    /// The node at a JSON pointer below this node, or the nearest existing node above it.
    ///
    /// ```
    /// use qontract_yaml::{Limits, parse};
    /// let document = parse(b"a:\n- b: 1\n", &Limits::default()).document.unwrap();
    /// assert_eq!(document.root().locate("/a/0/b").span.start, 8);
    /// assert_eq!(document.root().locate("/a/0/c").span.start, 5);
    /// ```
    pub fn locate(self, pointer: &str) -> LocatedNode<'a> {
        let mut at = LocatedNode { node: self, span: self.span(), key_span: None };
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match at.node.value() {
                Value::Map(map) => map.entry(&token).map(|entry| (entry.value, Some(entry.key_span))),
                Value::List(list) => {
                    token.parse().ok().and_then(|index: usize| list.get(index)).map(|item| (item, None))
                }
                _ => None,
            };
            let Some((node, key_span)) = next else { break };
            at = LocatedNode { node, span: node.span(), key_span };
        }
        at
    }
}

/// The target of a JSON pointer.
#[derive(Clone, Copy, Debug)]
pub struct LocatedNode<'a> {
    /// The value.
    pub node: Node<'a>,
    /// The bytes of the value.
    pub span: Span,
    /// The bytes of the key, if the value is in a map.
    pub key_span: Option<Span>,
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Value::List(list) => f.debug_list().entries(list.iter()).finish(),
            Value::Map(map) => {
                f.debug_map().entries(map.iter().map(|entry| (entry.key, entry.value))).finish()
            }
            scalar => scalar.fmt(f),
        }
    }
}

/// The values of a list.
#[derive(Clone, Copy)]
pub struct List<'a> {
    document: &'a Document,
    stretch: ArenaRange,
}

impl<'a> List<'a> {
    /// The values in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Node<'a>> {
        let document = self.document;
        document.items[self.stretch.range()].iter().map(move |id| Node { document, id: *id })
    }

    /// The value at `index`.
    pub fn get(self, index: usize) -> Option<Node<'a>> {
        let id = *self.document.items[self.stretch.range()].get(index)?;
        Some(Node { document: self.document, id })
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for List<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().map(Node::value).eq(other.iter().map(Node::value))
    }
}

/// The entries of a map.
#[derive(Clone, Copy)]
pub struct Map<'a> {
    document: &'a Document,
    stretch: ArenaRange,
}

/// A key and its value.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a str,
    /// The bytes of the key.
    pub key_span: Span,
    /// The value.
    pub value: Node<'a>,
}

impl<'a> Entry<'a> {
    fn at(document: &'a Document, slot: &EntrySlot) -> Self {
        let key = &document.text[slot.key.range()];
        Self { key, key_span: slot.key_span, value: Node { document, id: slot.value } }
    }
}

impl<'a> Map<'a> {
    /// The entries in the order of the file, with merged entries first and without duplicate keys.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Entry<'a>> {
        let document = self.document;
        document.entries[self.stretch.range()].iter().map(move |slot| Entry::at(document, slot))
    }

    /// The entry of `key`.
    pub fn entry(self, key: &str) -> Option<Entry<'a>> {
        if self.stretch.range().len() < MapIndex::MIN_ENTRIES {
            return self.iter().find(|entry| entry.key == key);
        }
        let index = self.document.index.get_or_init(|| MapIndex::new(self.document));
        let place = index.find(self.document, self.stretch, key)?;
        Some(Entry::at(self.document, &self.document.entries[place]))
    }

    /// The value of `key`.
    pub fn get(self, key: &str) -> Option<Node<'a>> {
        self.entry(key).map(|entry| entry.value)
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|entry| (entry.key, entry.value))).finish()
    }
}

impl PartialEq for Map<'_> {
    fn eq(&self, other: &Self) -> bool {
        let pairs = |map: &Self| map.iter().map(|entry| (entry.key, entry.value.value())).collect::<Vec<_>>();
        pairs(self) == pairs(other)
    }
}

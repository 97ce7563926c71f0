//! Shape prediction for the JSON parser: most maps have the same keys as an earlier map, in the same order.
//!
//! The shapes form a tree of keys, in the order in which they occurred. While parsing a map, the parser
//! follows the tree. If the next key equals the predicted one (one byte comparison), it is not parsed; at the
//! end of the map, the tree provides the interned key set without a lookup.

use crate::keys::KeySet;

/// The index of a node of the tree.
pub type ShapeId = usize;

/// Maximum number of nodes. Maps with other keys are parsed without prediction.
const MAX_SHAPES: usize = 4096;
/// Longer keys are probably names of individual objects, which no other map has.
const MAX_KEY_BYTES: usize = 64;
/// Number of roots. Deeper levels share the roots of outer levels.
const LEVELS: usize = 16;

/// The tree. Maps of different levels rarely have the same keys, so each level has its own root.
#[derive(Default)]
pub struct ShapeTree {
    nodes: Vec<ShapeNode>,
}

#[derive(Default)]
struct ShapeNode {
    /// The key that leads to this node.
    key: Box<str>,
    /// The key in quotes with the colon; empty if it needs escapes.
    encoded: Box<str>,
    /// The parent; a root is its own parent.
    parent: ShapeId,
    /// The children, sorted by key.
    children: Vec<ShapeId>,
    /// The child that was used last; the node itself if there is none.
    last_child: ShapeId,
    /// The key set of the path from the root, computed on first use.
    keys: Option<KeySet>,
}

impl ShapeTree {
    /// Whether no other shape can be added.
    pub fn is_full(&self) -> bool {
        self.nodes.len() >= MAX_SHAPES
    }

    /// The root for maps on a level.
    pub fn root(&mut self, level: usize) -> ShapeId {
        if self.nodes.is_empty() {
            let root = |from| ShapeNode { parent: from, last_child: from, ..ShapeNode::default() };
            self.nodes = (0..LEVELS).map(root).collect();
        }
        level % LEVELS
    }

    /// Predicts that `text` starts with the key that followed this node last time. If it does, returns the
    /// node of the key, and the length of the key with its colon.
    pub fn predict(&self, at: ShapeId, text: &[u8]) -> Option<(ShapeId, usize)> {
        let last = self.nodes[at].last_child;
        let written = self.nodes[last].encoded.as_bytes();
        (last != at && !written.is_empty() && text.starts_with(written)).then_some((last, written.len()))
    }

    /// The child for `key`, added if it is new. `None` if the keys are not sorted, the key is too long, or
    /// the tree is full.
    pub fn child(&mut self, at: ShapeId, key: &str) -> Option<ShapeId> {
        let place = match self.nodes[at].children.binary_search_by(|place| (*self.nodes[*place].key).cmp(key))
        {
            Ok(found) => self.nodes[at].children[found],
            Err(found) => {
                let ascends = at < LEVELS || *self.nodes[at].key < *key;
                if !ascends || key.len() > MAX_KEY_BYTES || self.nodes.len() >= MAX_SHAPES {
                    return None;
                }
                let written = if qontract_python_json::escape::plain_prefix(key.as_bytes()) == key.len() {
                    format!("\"{key}\":")
                } else {
                    String::new()
                };
                let place = self.nodes.len();
                let (key, written) = (key.into(), written.into());
                self.nodes.push(ShapeNode {
                    key,
                    encoded: written,
                    parent: at,
                    last_child: place,
                    ..ShapeNode::default()
                });
                self.nodes[at].children.insert(found, place);
                place
            }
        };
        self.nodes[at].last_child = place;
        Some(place)
    }

    /// The key set of the path to a node.
    pub fn keys(&mut self, at: ShapeId) -> &KeySet {
        let keys = self.nodes[at].keys.take().unwrap_or_else(|| KeySet::of(self.path(at).into_iter()));
        self.nodes[at].keys.insert(keys)
    }

    /// The keys on the path to a node, sorted.
    pub fn path(&self, mut at: ShapeId) -> Vec<&str> {
        let mut path = Vec::new();
        while at >= LEVELS {
            path.push(&*self.nodes[at].key);
            at = self.nodes[at].parent;
        }
        path.reverse();
        path
    }
}

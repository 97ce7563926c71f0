//! Shape prediction for the JSON parser: most maps have the same keys as an earlier one, in the same order.
//!
//! The shapes form a tree of keys, in the order in which they occurred. While parsing a map, the parser
//! follows the tree. If the next key is the one that came last time, which one byte comparison shows, it is
//! not parsed; at the end of the map, its interned key set is known without a lookup.

use crate::keys::Keys;

/// The index of a node of the tree.
pub type Place = usize;

/// Maximum number of nodes. Maps with other keys are parsed without prediction.
const MOST: usize = 4096;
/// Longer keys are probably names of individual things, which no other map has.
const LONGEST: usize = 64;
/// Number of roots. Deeper levels share roots with outer ones.
const LEVELS: usize = 16;

/// The tree. Maps of different levels rarely have the same keys, so each level has its own root.
#[derive(Default)]
pub struct Shapes {
    places: Vec<Shape>,
}

#[derive(Default)]
struct Shape {
    /// The key that leads to this node.
    key: Box<str>,
    /// The key in quotes with the colon; empty if it needs escapes.
    written: Box<str>,
    /// The parent; a root is its own parent.
    from: Place,
    /// The children, sorted by key.
    next: Vec<Place>,
    /// The child that was taken last; the node itself if none was.
    last: Place,
    /// The key set of the path from the root, computed on first use.
    keys: Option<Keys>,
}

impl Shapes {
    /// Whether no other shape can be added.
    pub fn is_full(&self) -> bool {
        self.places.len() >= MOST
    }

    /// The root for maps on a level.
    pub fn root(&mut self, level: usize) -> Place {
        if self.places.is_empty() {
            let root = |from| Shape { from, last: from, ..Shape::default() };
            self.places = (0..LEVELS).map(root).collect();
        }
        level % LEVELS
    }

    /// Predicts that `text` starts with the key that came last time. Returns its node and the length of the
    /// key with its colon if that is so.
    pub fn guess(&self, at: Place, text: &[u8]) -> Option<(Place, usize)> {
        let last = self.places[at].last;
        let written = self.places[last].written.as_bytes();
        (last != at && !written.is_empty() && text.starts_with(written)).then_some((last, written.len()))
    }

    /// The child for `key`, added if it is new. `None` if the keys are not sorted, the key is too long, or
    /// the tree is full.
    pub fn next(&mut self, at: Place, key: &str) -> Option<Place> {
        let place = match self.places[at].next.binary_search_by(|place| (*self.places[*place].key).cmp(key)) {
            Ok(found) => self.places[at].next[found],
            Err(found) => {
                let ascends = at < LEVELS || *self.places[at].key < *key;
                if !ascends || key.len() > LONGEST || self.places.len() >= MOST {
                    return None;
                }
                let written = if qontract_python_json::escape::plain_prefix(key.as_bytes()) == key.len() {
                    format!("\"{key}\":")
                } else {
                    String::new()
                };
                let place = self.places.len();
                let (key, written) = (key.into(), written.into());
                self.places.push(Shape { key, written, from: at, last: place, ..Shape::default() });
                self.places[at].next.insert(found, place);
                place
            }
        };
        self.places[at].last = place;
        Some(place)
    }

    /// The key set of the path to a node.
    pub fn keys(&mut self, at: Place) -> &Keys {
        let keys = self.places[at].keys.take().unwrap_or_else(|| Keys::of(self.path(at).into_iter()));
        self.places[at].keys.insert(keys)
    }

    /// The keys on the path to a node, sorted.
    pub fn path(&self, mut at: Place) -> Vec<&str> {
        let mut path = Vec::new();
        while at >= LEVELS {
            path.push(&*self.places[at].key);
            at = self.places[at].from;
        }
        path.reverse();
        path
    }
}

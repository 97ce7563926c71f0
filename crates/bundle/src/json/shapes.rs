//! What the maps of a text look like: most have the keys of one before, in the same order.
//!
//! A tree of keys, in the order in which they came. Who reads a map walks along it: whether the next key is the one that came the
//! last time is seen without reading it, and at the end the keys are known without looking for them.

use crate::keys::Keys;

/// Where in the tree somebody is.
pub type Place = usize;

/// More is not remembered: maps of other keys are read all the same.
const MOST: usize = 4096;
/// Longer keys are names of something, which no other map has.
const LONGEST: usize = 64;
/// Maps further inside are taken for alike.
const LEVELS: usize = 16;

/// The tree. Maps of different levels are rarely alike, so each level has its own root.
#[derive(Default)]
pub struct Shapes {
    places: Vec<Shape>,
}

#[derive(Default)]
struct Shape {
    /// The key that leads here.
    key: Box<str>,
    /// How it is written, with the colon, if it is written as it is.
    written: Box<str>,
    /// Where it came from; roots come from themselves.
    from: Place,
    /// The keys that came next, ascending.
    next: Vec<Place>,
    /// Which of them came the last time.
    last: Place,
    /// All keys up to here.
    keys: Option<Keys>,
}

impl Shapes {
    /// Whether no other map will be remembered.
    pub fn is_full(&self) -> bool {
        self.places.len() >= MOST
    }

    /// Where maps begin on a level.
    pub fn root(&mut self, level: usize) -> Place {
        if self.places.is_empty() {
            let root = |from| Shape { from, last: from, ..Shape::default() };
            self.places = (0..LEVELS).map(root).collect();
        }
        level % LEVELS
    }

    /// Where the key leads that `text` begins with, and behind how many bytes its value is, if it is the key that came the last time.
    pub fn guess(&self, at: Place, text: &[u8]) -> Option<(Place, usize)> {
        let last = self.places[at].last;
        let written = self.places[last].written.as_bytes();
        (last != at && !written.is_empty() && text.starts_with(written)).then_some((last, written.len()))
    }

    /// Where `key` leads; nowhere, if keys do not ascend or there are too many.
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

    /// All keys up to a place.
    pub fn keys(&mut self, at: Place) -> &Keys {
        let keys = self.places[at].keys.take().unwrap_or_else(|| Keys::of(self.path(at).into_iter()));
        self.places[at].keys.insert(keys)
    }

    /// The keys up to a place, ascending.
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

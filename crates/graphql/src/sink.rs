//! Sinks for responses. If a value becomes null because of an error inside it, the output that was written
//! for the value is discarded.

use std::ops::Range;

use qontract_bundle::{Value, json::JavaScriptWriter};

/// A writer of values that can be rewound to a mark.
pub trait Sink {
    /// A position to rewind to.
    type Mark: Copy;
    /// The current position.
    fn mark(&self) -> Self::Mark;
    /// Discards all output since the mark, which must be at the same or an outer level.
    fn rewind(&mut self, mark: Self::Mark);
    /// Approximate number of bytes written.
    fn size(&self) -> usize;
    /// The offset of the next value; `None` if values cannot be [repeated](Sink::repeat) by their range.
    fn offset(&self) -> Option<usize> {
        None
    }
    /// Writes the value in this range again. Called only if [`offset`](Sink::offset) returns offsets.
    fn repeat(&mut self, _written: Range<usize>) {}
    /// Writes a string that is already encoded as JSON. Called only if [`offset`](Sink::offset) returns
    /// offsets.
    fn encoded(&mut self, _text: &[u8]) {}
    /// Writes `null`.
    fn null(&mut self);
    /// Writes `true` or `false`.
    fn flag(&mut self, value: bool);
    /// Writes an integer.
    fn int(&mut self, value: i32);
    /// Writes a floating-point number.
    fn float(&mut self, value: f64);
    /// Writes a string.
    fn text(&mut self, value: &str);
    /// Begins an object.
    fn begin_object(&mut self);
    /// Begins a field of an object. `encoded` is the name as a JSON string, followed by a colon.
    fn key(&mut self, name: &str, encoded: &[u8]);
    /// Ends an object.
    fn end_object(&mut self);
    /// Begins a list.
    fn begin_list(&mut self);
    /// Begins an element of a list.
    fn element(&mut self);
    /// Ends a list.
    fn end_list(&mut self);
}

/// A sink that writes JSON.
#[derive(Debug, Default)]
pub struct JsonBytes(pub Vec<u8>);

impl JsonBytes {
    fn comma_unless_after(&mut self, begin: u8) {
        if self.0.last() != Some(&begin) {
            self.0.push(b',');
        }
    }
}

impl Sink for JsonBytes {
    type Mark = usize;

    fn mark(&self) -> usize {
        self.0.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    fn size(&self) -> usize {
        self.0.len()
    }

    fn offset(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn repeat(&mut self, written: Range<usize>) {
        self.0.extend_from_within(written);
    }

    fn encoded(&mut self, text: &[u8]) {
        self.0.extend_from_slice(text);
    }

    fn null(&mut self) {
        self.0.extend_from_slice(b"null");
    }

    fn flag(&mut self, value: bool) {
        self.0.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn int(&mut self, value: i32) {
        JavaScriptWriter(&mut self.0).value(&Value::Int(value.into()));
    }

    fn float(&mut self, value: f64) {
        JavaScriptWriter(&mut self.0).value(&Value::Float(value));
    }

    fn text(&mut self, value: &str) {
        JavaScriptWriter(&mut self.0).str(value);
    }

    fn begin_object(&mut self) {
        self.0.push(b'{');
    }

    fn key(&mut self, _: &str, encoded: &[u8]) {
        self.comma_unless_after(b'{');
        self.0.extend_from_slice(encoded);
    }

    fn end_object(&mut self) {
        self.0.push(b'}');
    }

    fn begin_list(&mut self) {
        self.0.push(b'[');
    }

    fn element(&mut self) {
        self.comma_unless_after(b'[');
    }

    fn end_list(&mut self) {
        self.0.push(b']');
    }
}

/// A sink that counts the approximate size of the output and discards it, for callers that need only the
/// errors of a response and the schemas that it reads.
#[derive(Debug, Default)]
pub struct Discard {
    size: usize,
}

impl Sink for Discard {
    type Mark = usize;

    fn mark(&self) -> usize {
        self.size
    }

    fn rewind(&mut self, mark: usize) {
        self.size = mark;
    }

    fn size(&self) -> usize {
        self.size
    }

    fn offset(&self) -> Option<usize> {
        Some(self.size)
    }

    fn repeat(&mut self, written: Range<usize>) {
        self.size += written.len();
    }

    fn encoded(&mut self, text: &[u8]) {
        self.size += text.len();
    }

    fn null(&mut self) {
        self.size += 4;
    }

    fn flag(&mut self, _: bool) {
        self.size += 4;
    }

    fn int(&mut self, _: i32) {
        self.size += 1;
    }

    fn float(&mut self, _: f64) {
        self.size += 3;
    }

    fn text(&mut self, value: &str) {
        self.size += value.len() + 2;
    }

    fn begin_object(&mut self) {
        self.size += 1;
    }

    fn key(&mut self, _: &str, encoded: &[u8]) {
        self.size += encoded.len() + 1;
    }

    fn end_object(&mut self) {
        self.size += 1;
    }

    fn begin_list(&mut self) {
        self.size += 1;
    }

    fn element(&mut self) {
        self.size += 1;
    }

    fn end_list(&mut self) {
        self.size += 1;
    }
}

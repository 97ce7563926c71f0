//! Splits the text of a bundle into the texts of its documents while it is read.
//!
//! A bundle is a hundred megabytes of small documents. Batches of them are parsed in parallel while the next
//! ones are read, so that the whole text is never in memory at once, and splitting and parsing overlap.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;
use std::str::Utf8Error;

use parking_lot::Mutex;

use crate::digest::{Hasher, Sha256};
use crate::json::{Fault, Reader};

use super::LoadError;

/// A part of a bundle that maps paths to documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Data,
    Resources,
    Schemas,
}

impl Part {
    /// Its key in the bundle.
    pub fn name(self) -> &'static str {
        match self {
            Part::Data => "data",
            Part::Resources => "resources",
            Part::Schemas => "schemas",
        }
    }
}

/// A text and the pieces in it.
pub struct Batch {
    pub text: String,
    pub pieces: Vec<Piece>,
}

/// A piece of the text of a bundle.
pub enum Piece {
    /// The start of a part. It replaces an earlier part of the same name, as in every JSON parser.
    Opened(Part),
    /// A document of a part: its path and the range of its text.
    Document(Part, String, Range<usize>),
    /// Another field of the bundle: its key and the range of its text.
    Other(String, Range<usize>),
}

/// The position between two tokens of the bundle.
#[derive(Clone, Copy)]
enum Place {
    Start,
    /// In the bundle, before its first field or after a field.
    Top {
        is_first: bool,
    },
    /// In a part, before its first document or after a document.
    In {
        part: Part,
        is_first: bool,
    },
    End,
}

/// Streaming splitter.
pub struct Cutter<'r> {
    source: &'r mut dyn Read,
    /// Approximate number of bytes per batch.
    size: usize,
    hasher: Hasher,
    /// Bytes that were read and are not in a batch yet.
    buffer: Vec<u8>,
    /// Buffers of finished batches, to reuse.
    used: &'r Mutex<Vec<Vec<u8>>>,
    /// Number of bytes handed out in batches.
    given: usize,
    place: Place,
    has_ended: bool,
}

impl<'r> Cutter<'r> {
    /// Splits everything from `source` into batches of about `size` bytes.
    pub fn new(source: &'r mut dyn Read, size: usize, used: &'r Mutex<Vec<Vec<u8>>>) -> Self {
        let (hasher, buffer) = (Hasher::default(), Vec::new());
        Self { source, size, hasher, buffer, used, given: 0, place: Place::Start, has_ended: false }
    }

    /// Whether the source is read to its end.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Number of bytes handed out in batches.
    pub fn given(&self) -> usize {
        self.given
    }

    /// The digest of all bytes read.
    pub fn sha(self) -> Sha256 {
        self.hasher.finish()
    }

    /// The next batch.
    pub fn next(&mut self) -> Result<Option<Batch>, LoadError> {
        while !self.has_ended {
            self.fill().map_err(LoadError::Source)?;
            let mut pieces = Vec::new();
            let end = self.cut(&mut pieces)?;
            if !pieces.is_empty() {
                return Ok(Some(Batch { text: self.give(end)?, pieces }));
            }
            self.buffer.drain(..end);
            self.given += end;
        }
        match self.place {
            Place::End => Ok(None),
            _ => Err(self.fault(self.buffer.len(), "the text ends within a value")),
        }
    }

    /// Reads more of the source: at least as many bytes as are buffered, so that a large document is not
    /// scanned too often.
    fn fill(&mut self) -> io::Result<()> {
        let (old, more) = (self.buffer.len(), self.size.max(self.buffer.len()));
        let read = self.source.take(more as u64).read_to_end(&mut self.buffer)?;
        self.has_ended = read < more;
        self.hasher.update(&self.buffer[old..]);
        Ok(())
    }

    /// Finds the complete pieces in the buffer. Returns where they end.
    fn cut(&mut self, pieces: &mut Vec<Piece>) -> Result<usize, LoadError> {
        let text = match str::from_utf8(&self.buffer) {
            Ok(text) => text,
            // The rest of the character may follow.
            Err(error) if error.error_len().is_none() && !self.has_ended => {
                str::from_utf8(&self.buffer[..error.valid_up_to()]).map_err(|error| self.encoding(error))?
            }
            Err(error) => return Err(self.encoding(error)),
        };
        let mut reader = Reader::new(text);
        let mut end = 0;
        loop {
            match step(&mut reader, self.place) {
                Ok((place, piece)) => {
                    pieces.extend(piece);
                    self.place = place;
                    end = reader.offset();
                    if matches!(place, Place::End) && end == text.len() {
                        return Ok(end);
                    }
                }
                // The rest of the piece may follow.
                Err(fault) if fault.offset >= text.len() && !self.has_ended => return Ok(end),
                Err(fault) => return Err(self.fault(fault.offset, fault.what)),
            }
        }
    }

    /// Hands out the text up to `end`.
    fn give(&mut self, end: usize) -> Result<String, LoadError> {
        let mut rest = super::pop(self.used).unwrap_or_default();
        rest.clear();
        rest.reserve(self.size + self.buffer.len() - end);
        rest.extend_from_slice(&self.buffer[end..]);
        let mut given = std::mem::replace(&mut self.buffer, rest);
        given.truncate(end);
        let text = String::from_utf8(given).map_err(|error| self.encoding(error.utf8_error()))?;
        self.given += end;
        Ok(text)
    }

    fn encoding(&self, error: Utf8Error) -> LoadError {
        LoadError::Encoding { offset: self.given + error.valid_up_to() }
    }

    fn fault(&self, offset: usize, what: &'static str) -> LoadError {
        LoadError::Json(Fault { offset: self.given + offset, what })
    }
}

/// The next key. It is decoded only when it is complete: an incomplete escape is not an error while more text
/// may follow.
fn key(reader: &mut Reader<'_>) -> Result<String, Fault> {
    reader.blanks();
    if reader.peek() != Some(b'"') {
        return Err(reader.fault("expected a string"));
    }
    let place = reader.skip_range()?;
    let decoded = Reader::new(&reader.text()[place.clone()]).string().map(Cow::into_owned);
    decoded.map_err(|fault| Fault { offset: place.start + fault.offset, ..fault })
}

/// Reads to the next position between tokens. Returns it, and the piece in between.
fn step(reader: &mut Reader<'_>, place: Place) -> Result<(Place, Option<Piece>), Fault> {
    let is_first = match place {
        Place::Start => {
            reader.expect(b'{', "expected an object")?;
            return Ok((Place::Top { is_first: true }, None));
        }
        Place::End => return reader.end().map(|()| (Place::End, None)),
        Place::Top { is_first } | Place::In { is_first, .. } => is_first,
    };
    if reader.take(b'}') {
        let is_outside = matches!(place, Place::Top { .. });
        return Ok((if is_outside { Place::End } else { Place::Top { is_first: false } }, None));
    }
    if !is_first {
        reader.expect(b',', "expected `,` or `}`")?;
    }
    let key = key(reader)?;
    reader.expect(b':', "expected `:`")?;
    if let Place::In { part, .. } = place {
        let text = reader.skip_range()?;
        return Ok((Place::In { part, is_first: false }, Some(Piece::Document(part, key, text))));
    }
    let part = [Part::Data, Part::Resources, Part::Schemas].into_iter().find(|part| part.name() == key);
    let Some(part) = part else {
        let text = reader.skip_range()?;
        return Ok((Place::Top { is_first: false }, Some(Piece::Other(key, text))));
    };
    reader.expect(b'{', "expected an object")?;
    Ok((Place::In { part, is_first: true }, Some(Piece::Opened(part))))
}

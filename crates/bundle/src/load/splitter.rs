//! Splits the JSON text of a bundle into its documents while the text is read.
//!
//! A large bundle has a hundred megabytes of small documents. Batches of documents are parsed in parallel
//! while the next batches are read, so that the whole text is never in memory at once, and splitting and
//! parsing overlap.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;
use std::str::Utf8Error;

use parking_lot::Mutex;

use crate::digest::{Hasher, Sha256};
use crate::json::{JsonError, JsonParser};

use super::LoadError;

/// A part of a bundle that maps paths to documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundlePart {
    Data,
    Resources,
    Schemas,
}

impl BundlePart {
    /// The key in the bundle.
    pub fn name(self) -> &'static str {
        match self {
            BundlePart::Data => "data",
            BundlePart::Resources => "resources",
            BundlePart::Schemas => "schemas",
        }
    }
}

/// A batch of the JSON text, and its pieces.
pub struct Batch {
    pub text: String,
    pub pieces: Vec<Piece>,
}

/// A piece of the text of a bundle.
pub enum Piece {
    /// The start of a part. It replaces an earlier part of the same name, as in every JSON parser.
    Opened(BundlePart),
    /// A document of a part: its path and the range of its text.
    Document(BundlePart, String, Range<usize>),
    /// Another field of the bundle: its key and the range of its text.
    Other(String, Range<usize>),
}

/// The position between two tokens of the bundle.
#[derive(Clone, Copy)]
enum SplitState {
    Start,
    /// In the object of the bundle, before its first field or after a field.
    Top {
        is_first: bool,
    },
    /// In a part, before its first document or after a document.
    In {
        part: BundlePart,
        is_first: bool,
    },
    End,
}

/// Streaming splitter.
pub struct DocumentSplitter<'r> {
    source: &'r mut dyn Read,
    /// Approximate number of bytes per batch.
    size: usize,
    hasher: Hasher,
    /// Bytes that were read and are not in a batch yet.
    buffer: Vec<u8>,
    /// Buffers of finished batches, to reuse.
    spare_buffers: &'r Mutex<Vec<Vec<u8>>>,
    /// Number of bytes returned in batches.
    consumed: usize,
    state: SplitState,
    has_ended: bool,
}

impl<'r> DocumentSplitter<'r> {
    /// Splits everything from `source` into batches of about `size` bytes.
    pub fn new(source: &'r mut dyn Read, size: usize, spare_buffers: &'r Mutex<Vec<Vec<u8>>>) -> Self {
        let (hasher, buffer) = (Hasher::default(), Vec::new());
        Self {
            source,
            size,
            hasher,
            buffer,
            spare_buffers,
            consumed: 0,
            state: SplitState::Start,
            has_ended: false,
        }
    }

    /// Whether the source has been read to its end.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Number of bytes returned in batches.
    pub fn consumed(&self) -> usize {
        self.consumed
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
            let end = self.split(&mut pieces)?;
            if !pieces.is_empty() {
                return Ok(Some(Batch { text: self.take_text(end)?, pieces }));
            }
            self.buffer.drain(..end);
            self.consumed += end;
        }
        match self.state {
            SplitState::End => Ok(None),
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

    /// Finds the complete pieces in the buffer. Returns the offset of their end.
    fn split(&mut self, pieces: &mut Vec<Piece>) -> Result<usize, LoadError> {
        let text = match str::from_utf8(&self.buffer) {
            Ok(text) => text,
            // The text may end within a character.
            Err(error) if error.error_len().is_none() && !self.has_ended => {
                str::from_utf8(&self.buffer[..error.valid_up_to()]).map_err(|error| self.encoding(error))?
            }
            Err(error) => return Err(self.encoding(error)),
        };
        let mut reader = JsonParser::new(text);
        let mut end = 0;
        loop {
            match step(&mut reader, self.state) {
                Ok((place, piece)) => {
                    pieces.extend(piece);
                    self.state = place;
                    end = reader.offset();
                    if matches!(place, SplitState::End) && end == text.len() {
                        return Ok(end);
                    }
                }
                // The text may end within a piece.
                Err(fault) if fault.offset >= text.len() && !self.has_ended => return Ok(end),
                Err(fault) => return Err(self.fault(fault.offset, fault.message)),
            }
        }
    }

    /// Removes the text up to `end` from the buffer and returns it.
    fn take_text(&mut self, end: usize) -> Result<String, LoadError> {
        let mut rest = super::pop(self.spare_buffers).unwrap_or_default();
        rest.clear();
        rest.reserve(self.size + self.buffer.len() - end);
        rest.extend_from_slice(&self.buffer[end..]);
        let mut given = std::mem::replace(&mut self.buffer, rest);
        given.truncate(end);
        let text = String::from_utf8(given).map_err(|error| self.encoding(error.utf8_error()))?;
        self.consumed += end;
        Ok(text)
    }

    fn encoding(&self, error: Utf8Error) -> LoadError {
        LoadError::Encoding { offset: self.consumed + error.valid_up_to() }
    }

    fn fault(&self, offset: usize, what: &'static str) -> LoadError {
        LoadError::Json(JsonError { offset: self.consumed + offset, message: what })
    }
}

/// The next key. It is decoded only when it is complete: an incomplete escape is not an error while more text
/// may follow.
fn key(reader: &mut JsonParser<'_>) -> Result<String, JsonError> {
    reader.skip_blanks();
    if reader.peek() != Some(b'"') {
        return Err(reader.error("expected a string"));
    }
    let place = reader.skip_range()?;
    let decoded = JsonParser::new(&reader.text()[place.clone()]).string().map(Cow::into_owned);
    decoded.map_err(|fault| JsonError { offset: place.start + fault.offset, ..fault })
}

/// Parses up to the next position between tokens. Returns that position, and the piece before it.
fn step(reader: &mut JsonParser<'_>, place: SplitState) -> Result<(SplitState, Option<Piece>), JsonError> {
    let is_first = match place {
        SplitState::Start => {
            reader.expect(b'{', "expected an object")?;
            return Ok((SplitState::Top { is_first: true }, None));
        }
        SplitState::End => return reader.end().map(|()| (SplitState::End, None)),
        SplitState::Top { is_first } | SplitState::In { is_first, .. } => is_first,
    };
    if reader.take(b'}') {
        let is_outside = matches!(place, SplitState::Top { .. });
        return Ok((if is_outside { SplitState::End } else { SplitState::Top { is_first: false } }, None));
    }
    if !is_first {
        reader.expect(b',', "expected `,` or `}`")?;
    }
    let key = key(reader)?;
    reader.expect(b':', "expected `:`")?;
    if let SplitState::In { part, .. } = place {
        let text = reader.skip_range()?;
        return Ok((SplitState::In { part, is_first: false }, Some(Piece::Document(part, key, text))));
    }
    let part = [BundlePart::Data, BundlePart::Resources, BundlePart::Schemas]
        .into_iter()
        .find(|part| part.name() == key);
    let Some(part) = part else {
        let text = reader.skip_range()?;
        return Ok((SplitState::Top { is_first: false }, Some(Piece::Other(key, text))));
    };
    reader.expect(b'{', "expected an object")?;
    Ok((SplitState::In { part, is_first: true }, Some(Piece::Opened(part))))
}

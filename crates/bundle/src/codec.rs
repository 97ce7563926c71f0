//! Private binary encoding of numbers, digests and strings, for files that only this program reads.

use std::io;

use crate::digest::Sha256;

/// Encodes a sequence of values.
#[derive(Default)]
pub struct Encoder {
    /// The output before `bytes`, in pieces that are never copied into one buffer.
    pieces_before: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Appends a number as 8 bytes.
    pub fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends a count or an index as a variable-length number.
    pub fn count(&mut self, count: usize) {
        let mut rest = count as u64;
        while rest >= 0x80 {
            self.bytes.push(u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80);
            rest >>= 7;
        }
        self.bytes.push(u8::try_from(rest).unwrap_or_default());
    }

    /// Appends a digest.
    pub fn digest(&mut self, digest: Sha256) {
        self.bytes.extend_from_slice(digest.as_bytes());
    }

    /// Appends a string.
    pub fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Appends an optional value.
    pub fn option<T>(&mut self, one: Option<T>, pack: impl FnOnce(&mut Self, T)) {
        self.bytes.push(u8::from(one.is_some()));
        if let Some(one) = one {
            pack(self, one);
        }
    }

    /// Appends a list.
    pub fn list<T>(&mut self, all: impl ExactSizeIterator<Item = T>, mut pack: impl FnMut(&mut Self, T)) {
        self.count(all.len());
        all.for_each(|one| pack(self, one));
    }

    /// Appends the output of another encoder, with its length.
    pub fn nested(&mut self, other: &Encoder) {
        self.count(other.len());
        other.pieces().for_each(|piece| self.bytes.extend_from_slice(piece));
    }

    /// Appends a list of outputs of other encoders, without copying them.
    pub fn nested_list(&mut self, all: Vec<Encoder>) {
        self.count(all.len());
        for other in all {
            self.count(other.len());
            self.pieces_before.push(std::mem::replace(&mut self.bytes, other.bytes));
            let last = self.pieces_before.len();
            // The pieces of the other encoder follow the bytes of this encoder.
            self.pieces_before.splice(last..last, other.pieces_before);
        }
    }

    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces_before.iter().chain([&self.bytes]).map(Vec::as_slice)
    }

    fn len(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// The encoded bytes with a checksum. `by` identifies the program, because another version may use a
    /// different format.
    pub fn with_checksum(self, by: &str) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(self.len() + 64);
        // Writing to memory does not fail.
        let _ = self.write_with_checksum(by, &mut sealed);
        sealed
    }

    /// Writes the encoded bytes with a checksum; see [`with_checksum`](Self::with_checksum).
    pub fn write_with_checksum(self, by: &str, out: &mut dyn io::Write) -> io::Result<()> {
        let by = Sha256::of(by.as_bytes());
        let sum = Sha256::of_parts([by.as_bytes().as_slice()].into_iter().chain(self.pieces()));
        out.write_all(sum.as_bytes())?;
        out.write_all(by.as_bytes())?;
        self.pieces().try_for_each(|piece| out.write_all(piece))
    }
}

/// Decodes values in the order in which they were encoded. Every method returns `None` if the bytes are
/// malformed.
#[derive(Clone, Copy)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Opens sealed bytes. `None` if they are incomplete, corrupt or from another program.
    pub fn open(bytes: &'a [u8], by: &str) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<32>()?;
        if Sha256::of(rest).as_bytes() != sum {
            return None;
        }
        let mut sealed = Self { rest };
        (sealed.digest()? == Sha256::of(by.as_bytes())).then_some(sealed)
    }

    /// Whether all bytes are decoded.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*chunk)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Decodes a number.
    pub fn number(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// Decodes a count or an index.
    pub fn count(&mut self) -> Option<usize> {
        let mut count = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.chunk()?;
            count |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return usize::try_from(count).ok();
            }
        }
        None
    }

    /// Decodes a digest.
    pub fn digest(&mut self) -> Option<Sha256> {
        self.chunk().map(Sha256::from_bytes)
    }

    /// Decodes a string.
    pub fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    /// Decodes an optional value.
    pub fn option<T>(&mut self, unpack: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.chunk()? {
            [0] => Some(None),
            [1] => unpack(self).map(Some),
            _ => None,
        }
    }

    /// Decodes a list.
    pub fn list<T, L: FromIterator<T>>(
        &mut self,
        mut unpack: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<L> {
        (0..self.count()?).map(|_| unpack(self)).collect()
    }

    /// Decodes the output of another encoder.
    pub fn nested(&mut self) -> Option<Self> {
        self.bytes().map(|rest| Self { rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_data_round_trips_and_truncated_data_is_refused() {
        let mut packer = Encoder::default();
        packer.number(u64::MAX);
        let counts = [0, 0x7f, 0x80, 300, usize::MAX];
        packer.list(counts.into_iter(), Encoder::count);
        packer.option(Some("é"), Encoder::text);
        packer.option(None, Encoder::digest);
        packer.list(["a", ""].into_iter(), Encoder::text);
        let mut inner = Encoder::default();
        inner.digest(Sha256::of(b"x"));
        packer.nested(&inner);
        let (mut first, mut second) = (Encoder::default(), Encoder::default());
        first.text("in one piece");
        second.nested_list(vec![Encoder::default(), first]);
        second.text("behind");
        packer.nested_list(vec![second, Encoder::default()]);
        packer.text("last");
        let sealed = packer.with_checksum("one");
        assert!(Decoder::open(&sealed, "another").is_none());
        let mut unpacker = Decoder::open(&sealed, "one").expect("whole");
        assert_eq!(unpacker.number(), Some(u64::MAX));
        assert_eq!(unpacker.list(Decoder::count), Some(counts.to_vec()));
        assert_eq!(unpacker.option(Decoder::text), Some(Some("é")));
        assert_eq!(unpacker.option(Decoder::digest), Some(None));
        assert_eq!(unpacker.list(Decoder::text), Some(vec!["a", ""]));
        assert_eq!(unpacker.nested().and_then(|mut inner| inner.digest()), Some(Sha256::of(b"x")));
        let lists: Vec<Decoder<'_>> = unpacker.list(Decoder::nested).expect("a list");
        let [mut second, empty] = lists[..] else { panic!("two of them") };
        let inner: Vec<Decoder<'_>> = second.list(Decoder::nested).expect("a list");
        assert!(inner[0].is_empty() && empty.is_empty());
        let mut text = inner[1];
        assert_eq!(text.text(), Some("in one piece"));
        assert_eq!(second.text(), Some("behind"));
        assert_eq!(unpacker.text(), Some("last"));
        assert!(unpacker.is_empty() && unpacker.number().is_none());
        for end in 0..sealed.len() {
            assert!(Decoder::open(&sealed[..end], "one").is_none(), "{end}");
        }
    }
}

//! Streaming digest of any serialisable value.

use std::io::{self, BufWriter, Write};

use qontract_bundle::Sha256;
use serde::Serialize;
use sha2::{Digest as _, Sha256 as Hasher};

/// Size of the blocks that are hashed at once.
const BLOCK_BYTES: usize = 64 << 10;

struct HashWriter(Hasher);

impl Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The digest of the JSON text of `value`.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> Sha256 {
    let mut out = BufWriter::with_capacity(BLOCK_BYTES, HashWriter(Hasher::new()));
    serde_json::to_writer(&mut out, value).expect("states are plain data and hashing cannot fail");
    let Ok(hashing) = out.into_inner() else { unreachable!("hashing cannot fail") };
    Sha256::from_bytes(hashing.0.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::digest;
    use qontract_bundle::Sha256;

    #[test]
    fn the_digest_is_that_of_the_text() {
        let value = serde_json::json!({"a": [1, "x".repeat(200_000)], "b": null});
        assert_eq!(digest(&value), Sha256::of(&serde_json::to_vec(&value).unwrap()));
    }
}

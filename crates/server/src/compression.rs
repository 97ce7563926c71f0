//! Compresses response bodies for clients that accept compression.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Minimum size of a body that is compressed.
pub const MIN_COMPRESSED_BYTES: usize = 1024;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// The body is sent without compression.
    Identity,
    /// The coding `gzip`.
    Gzip,
    /// The coding `zstd`.
    Zstd,
}

impl Coding {
    /// The best coding that `Accept-Encoding` allows. Codings that the header does not mention are not used.
    pub fn of(accepted: &str) -> Self {
        let mut best = (0.0, Coding::Identity);
        for part in accepted.split(',') {
            let mut words = part.split(';').map(str::trim);
            let coding = match words.next() {
                Some(name) if name.eq_ignore_ascii_case("zstd") => Coding::Zstd,
                Some(name) if name.eq_ignore_ascii_case("gzip") => Coding::Gzip,
                _ => continue,
            };
            let weight = words.find_map(|word| word.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
            let Some(weight) = weight.filter(|weight: &f32| *weight > 0.0) else { continue };
            // Of two codings with equal weights, the faster one is preferred.
            if weight > best.0 || weight >= best.0 && coding == Coding::Zstd {
                best = (weight, coding);
            }
        }
        best.1
    }

    /// The value of `Content-Encoding`; `None` if the body is not compressed.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Coding::Identity => None,
            Coding::Gzip => Some("gzip"),
            Coding::Zstd => Some("zstd"),
        }
    }

    /// Encodes the bytes in this coding.
    pub fn encode(self, bytes: &Bytes) -> Bytes {
        match self {
            Coding::Identity => bytes.clone(),
            Coding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
                encoder.write_all(bytes).expect("writing to memory cannot fail");
                encoder.finish().expect("writing to memory cannot fail").into()
            }
            Coding::Zstd => zstd::bulk::compress(bytes, 1).expect("compressing in memory cannot fail").into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_best_accepted_coding_is_used() {
        for (accepted, coding) in [
            ("", Coding::Identity),
            ("identity, br", Coding::Identity),
            ("gzip, deflate", Coding::Gzip),
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("zstd;q=0.5, GZIP", Coding::Gzip),
            ("gzip;q=0", Coding::Identity),
            ("gzip;q=x", Coding::Identity),
        ] {
            assert_eq!(Coding::of(accepted), coding, "{accepted}");
        }
    }

    #[test]
    fn compressed_bodies_decompress_to_the_same_bytes() {
        let text = Bytes::from("{\"data\": 1}".repeat(1000));
        let (gzip, zstd) = (Coding::Gzip.encode(&text), Coding::Zstd.encode(&text));
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, text);
        assert_eq!(zstd::bulk::decompress(&zstd, text.len()).unwrap(), text);
        assert!(gzip.len() < text.len() / 10 && zstd.len() < text.len() / 10);
    }
}

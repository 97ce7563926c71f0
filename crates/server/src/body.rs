//! Reads and decompresses request bodies within size and time limits.

use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use qontract_bundle::Value;
use tokio::time::Instant;

use crate::graphql::header;
use crate::graphql_request::{self, Refusal};
use crate::settings::Settings;

/// Bodies of at least this size are parsed on a blocking thread.
const MIN_BACKGROUND_BYTES: usize = 64 << 10;

/// Maximum size of a refused body that is still received, as a multiple of the size limit.
const MAX_DISCARDED_FACTOR: usize = 8;

/// Reads the complete body and decompresses it. A body above the size limit is refused, and a body that arrives too
/// slowly times out.
pub async fn read(settings: &Settings, headers: &HeaderMap, mut body: Incoming) -> Result<Bytes, Refusal> {
    let too_large = Refusal::Page(StatusCode::PAYLOAD_TOO_LARGE);
    if body.size_hint().lower() > settings.max_body_bytes as u64 {
        discard(settings, body).await;
        return Err(too_large);
    }
    let begun = Instant::now();
    let mut bytes = Vec::new();
    loop {
        let deadline = begun + timeout_for(settings, bytes.len());
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return Err(Refusal::Page(StatusCode::BAD_REQUEST)),
            Err(_) => return Err(Refusal::Page(StatusCode::REQUEST_TIMEOUT)),
        };
        let Some(piece) = frame.data_ref() else { continue };
        if bytes.len() + piece.len() > settings.max_body_bytes {
            discard(settings, body).await;
            return Err(too_large);
        }
        bytes.extend_from_slice(piece);
    }
    unpack(header(headers, CONTENT_ENCODING), bytes.into(), settings.max_body_bytes)
}

/// Receives the rest of a refused body, within limits, and drops it. Most clients send the whole body before they
/// read the response. If the connection were closed earlier, such clients would get an error instead of the response.
async fn discard(settings: &Settings, mut body: Incoming) {
    let deadline = Instant::now() + settings.body_grace;
    let mut remaining = settings.max_body_bytes.saturating_mul(MAX_DISCARDED_FACTOR);
    while let Ok(Some(Ok(frame))) = tokio::time::timeout_at(deadline, body.frame()).await {
        match remaining.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(rest) => remaining = rest,
            None => return,
        }
    }
}

/// The time limit for a body after `received` bytes.
fn timeout_for(settings: &Settings, received: usize) -> Duration {
    let earned = received as u64 * 1000 / u64::from(settings.body_rate.max(1));
    settings.body_timeout.min(settings.body_grace + Duration::from_millis(earned))
}

/// Parses the body as JSON if the content type is JSON. A large body is parsed on a blocking thread.
pub async fn json(content_type: Option<&str>, bytes: Bytes) -> Result<(Bytes, Option<Value>), Refusal> {
    if bytes.len() < MIN_BACKGROUND_BYTES {
        return graphql_request::json_of(content_type, &bytes).map(|value| (bytes, value));
    }
    let content_type = content_type.map(str::to_owned);
    let reading = tokio::task::spawn_blocking(move || {
        graphql_request::json_of(content_type.as_deref(), &bytes).map(|value| (bytes, value))
    });
    reading.await.unwrap_or(Err(Refusal::Page(StatusCode::INTERNAL_SERVER_ERROR)))
}

/// Decompresses a body; `limit` applies to the decompressed size.
fn unpack(encoding: Option<&str>, bytes: Bytes, limit: usize) -> Result<Bytes, Refusal> {
    if bytes.is_empty() {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let max_read = limit as u64 + 1;
    let read = match encoding.map(|word| word.trim().to_ascii_lowercase()).as_deref() {
        None | Some("" | "identity") => return Ok(bytes),
        Some("gzip") => GzDecoder::new(&bytes[..]).take(max_read).read_to_end(&mut out),
        Some("deflate") => ZlibDecoder::new(&bytes[..]).take(max_read).read_to_end(&mut out),
        Some(_) => return Err(Refusal::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
    };
    if read.is_err() {
        return Err(Refusal::Page(StatusCode::BAD_REQUEST));
    }
    if out.len() > limit {
        return Err(Refusal::Page(StatusCode::PAYLOAD_TOO_LARGE));
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::Coding;

    #[test]
    fn the_time_limit_of_a_body_grows_with_the_bytes_received() {
        let settings = Settings {
            body_timeout: Duration::from_secs(30),
            body_grace: Duration::from_secs(5),
            body_rate: 1000,
            ..Settings::default()
        };
        let check = |received: usize, milliseconds: u64| {
            assert_eq!(timeout_for(&settings, received), Duration::from_millis(milliseconds), "{received}");
        };
        check(0, 5_000);
        check(1, 5_001);
        check(1_000, 6_000);
        check(24_999, 29_999);
        check(25_000, 30_000);
        check(1 << 20, 30_000);
    }

    #[test]
    fn compressed_bodies_are_decompressed_within_the_limit() {
        let text = Bytes::from(vec![b'x'; 1000]);
        let compressed = Coding::Gzip.encode(&text);
        assert_eq!(unpack(Some("GZip"), compressed.clone(), 1000), Ok(text.clone()));
        assert_eq!(unpack(Some("gzip"), compressed, 999), Err(Refusal::Page(StatusCode::PAYLOAD_TOO_LARGE)));
        assert_eq!(unpack(Some("gzip"), text.clone(), 1000), Err(Refusal::Page(StatusCode::BAD_REQUEST)));
        assert_eq!(
            unpack(Some("br"), text.clone(), 1000),
            Err(Refusal::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE))
        );
        assert_eq!(unpack(None, text.clone(), 1000), Ok(text));
    }
}

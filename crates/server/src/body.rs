//! The body of a request: within its limits, and unpacked.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use qontract_bundle::Value;

use crate::graphql::header;
use crate::serve::Settings;
use crate::wire::{self, Refusal};

/// Smaller bodies are read on the spot.
const LARGE: usize = 64 << 10;

/// All of it, as the client had it before it was packed.
pub async fn read(settings: &Settings, headers: &HeaderMap, body: Incoming) -> Result<Bytes, Refusal> {
    let reading = Limited::new(body, settings.body).collect();
    let bytes = match tokio::time::timeout(settings.body_time, reading).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return Err(Refusal::Page(StatusCode::PAYLOAD_TOO_LARGE));
        }
        Ok(Err(_)) => return Err(Refusal::Page(StatusCode::BAD_REQUEST)),
        Err(_) => return Err(Refusal::Page(StatusCode::REQUEST_TIMEOUT)),
    };
    unpack(header(headers, CONTENT_ENCODING), bytes, settings.body)
}

/// The JSON of a body, if it says that it is some. What is large is read beside everything else.
pub async fn json(content_type: Option<&str>, bytes: Bytes) -> Result<(Bytes, Option<Value>), Refusal> {
    if bytes.len() < LARGE {
        return wire::json_of(content_type, &bytes).map(|value| (bytes, value));
    }
    let content_type = content_type.map(str::to_owned);
    let reading = tokio::task::spawn_blocking(move || {
        wire::json_of(content_type.as_deref(), &bytes).map(|value| (bytes, value))
    });
    reading.await.unwrap_or(Err(Refusal::Page(StatusCode::INTERNAL_SERVER_ERROR)))
}

/// The body in the form that is read; the limit is on what comes out of it.
fn unpack(encoding: Option<&str>, bytes: Bytes, limit: usize) -> Result<Bytes, Refusal> {
    if bytes.is_empty() {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let most = limit as u64 + 1;
    let read = match encoding.map(|word| word.trim().to_ascii_lowercase()).as_deref() {
        None | Some("" | "identity") => return Ok(bytes),
        Some("gzip") => GzDecoder::new(&bytes[..]).take(most).read_to_end(&mut out),
        Some("deflate") => ZlibDecoder::new(&bytes[..]).take(most).read_to_end(&mut out),
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
    use crate::compress::Coding;

    #[test]
    fn what_is_packed_is_unpacked_within_its_limit() {
        let text = Bytes::from(vec![b'x'; 1000]);
        let packed = Coding::Gzip.encode(&text);
        assert_eq!(unpack(Some("GZip"), packed.clone(), 1000), Ok(text.clone()));
        assert_eq!(unpack(Some("gzip"), packed, 999), Err(Refusal::Page(StatusCode::PAYLOAD_TOO_LARGE)));
        assert_eq!(unpack(Some("gzip"), text.clone(), 1000), Err(Refusal::Page(StatusCode::BAD_REQUEST)));
        assert_eq!(
            unpack(Some("br"), text.clone(), 1000),
            Err(Refusal::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE))
        );
        assert_eq!(unpack(None, text.clone(), 1000), Ok(text));
    }
}

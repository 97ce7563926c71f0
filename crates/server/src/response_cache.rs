//! Response cache (answer cache, `--answer-cache`): caches HTTP responses by bundle and request. A bundle never
//! changes, so an entry never becomes invalid and is only evicted.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use qontract_bundle::Sha256;
use qontract_concurrency::OnceMap;
use qontract_graphql::Cache;

use crate::compression::Coding;
use crate::etag::ETag;
use crate::graphql::{EvaluatedResponse, EvaluationFailure};
use crate::reply::InFlightGuard;

/// A cached response. Its entity tag and its compressed bodies are computed only once.
#[derive(Debug)]
pub struct CachedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The uncompressed body.
    pub body: Bytes,
    tag: OnceLock<ETag>,
    gzip: OnceLock<Bytes>,
    zstd: OnceLock<Bytes>,
}

impl CachedResponse {
    /// Creates a response.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let (tag, gzip, zstd) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { status, body: body.into(), tag, gzip, zstd }
    }

    /// The entity tag, which is computed on first use.
    pub fn tag(&self) -> &ETag {
        self.tag.get_or_init(|| ETag::of(&self.body))
    }

    /// The body in this coding, which is computed on first use.
    pub fn encoded(&self, coding: Coding) -> Bytes {
        let made = match coding {
            Coding::Identity => return self.body.clone(),
            Coding::Gzip => &self.gzip,
            Coding::Zstd => &self.zstd,
        };
        made.get_or_init(|| coding.encode(&self.body)).clone()
    }
}

/// Removes most of the spare capacity of a body, because the cache counts only its length.
pub fn shrink(mut body: Vec<u8>) -> Vec<u8> {
    if body.capacity() - body.len() > body.len() / 4 {
        body.shrink_to_fit();
    }
    body
}

/// The cache key of a response: a digest of the bundle's sha and of all parts of the request that affect the
/// response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResponseKey(Sha256);

impl ResponseKey {
    /// Creates the key of a request to a bundle. Each part is hashed with its length, so that requests with different
    /// boundaries between parts have different keys.
    pub fn of(sha: Sha256, parts: &[&str]) -> Self {
        let lengths: Vec<[u8; 8]> = parts.iter().map(|part| (part.len() as u64).to_le_bytes()).collect();
        let parts =
            parts.iter().zip(&lengths).flat_map(|(part, length)| [length.as_slice(), part.as_bytes()]);
        Self(Sha256::of_parts([sha.as_bytes().as_slice()].into_iter().chain(parts)))
    }
}

/// Caches responses up to a maximum total size.
pub type ResponseCache = Cache<ResponseKey, Arc<CachedResponse>>;

/// Evaluations in progress. Each evaluation is shared by all requests for its response.
pub type Evaluations = OnceMap<ResponseKey, Result<EvaluatedResponse, EvaluationFailure>>;

/// Responses that are being sent. Requests that arrive during this time share them, even if the responses are too
/// large for the cache.
#[derive(Default)]
pub struct LiveResponses(Mutex<HashMap<ResponseKey, LiveResponse>>);

struct LiveResponse {
    response: Weak<CachedResponse>,
    flight: Weak<InFlightGuard>,
}

impl LiveResponses {
    /// The response with this key, if a client is still receiving it.
    pub fn get(&self, key: &ResponseKey) -> Option<EvaluatedResponse> {
        let live = self.0.lock();
        let LiveResponse { response, flight } = live.get(key)?;
        Some(EvaluatedResponse::shared(response.upgrade()?, flight.upgrade()))
    }

    /// Adds a response and drops the entries of responses that have been sent.
    pub fn insert(&self, key: ResponseKey, evaluated: &EvaluatedResponse) {
        let mut live = self.0.lock();
        live.retain(|_, live| live.response.strong_count() > 0);
        let response = Arc::downgrade(&evaluated.response);
        let flight = evaluated.flight.as_ref().map(Arc::downgrade).unwrap_or_default();
        live.insert(key, LiveResponse { response, flight });
    }
}

/// Caches a response, unless it is too large.
pub fn store(answers: &ResponseCache, key: ResponseKey, response: &Arc<CachedResponse>) {
    answers.insert(key, Arc::clone(response), cost(response));
}

/// The cost of a response: the size of its body, another half of this size for its compressed forms, and the
/// overhead of an entry.
fn cost(response: &CachedResponse) -> usize {
    response.body.len() + response.body.len() / 2 + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> ResponseKey {
        ResponseKey::of(Sha256::of(b"bundle"), &[text])
    }

    fn answered(bytes: usize) -> Arc<CachedResponse> {
        Arc::new(CachedResponse::new(200, vec![b'x'; bytes]))
    }

    #[test]
    fn the_cost_of_a_response_grows_with_its_size() {
        let answers = ResponseCache::new(10_000);
        store(&answers, key("large"), &answered(1_000));
        assert!(answers.get(&key("large")).is_none());
        store(&answers, key("small"), &answered(100));
        assert!(answers.get(&key("small")).is_some());
        assert_eq!(answers.cost(), 100 + 50 + 256);
    }

    #[test]
    fn a_cached_body_has_no_spare_capacity() {
        let mut body = Vec::with_capacity(1 << 20);
        body.extend_from_slice(b"{}");
        assert_eq!(shrink(body).capacity(), 2);
    }

    #[test]
    fn boundaries_between_parts_matter() {
        let sha = Sha256::of(b"bundle");
        assert_ne!(ResponseKey::of(sha, &["ab", "c"]), ResponseKey::of(sha, &["a", "bc"]));
        assert_ne!(ResponseKey::of(sha, &["a"]), ResponseKey::of(sha, &["a", ""]));
    }
}

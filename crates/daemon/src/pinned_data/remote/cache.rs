//! Response cache of a pinned bundle, for small responses. It saves requests when the templates of many namespaces
//! send equal queries. Prefetched responses of any size are kept until they are used.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_client_server::{GraphqlError, QueryAnswer};

/// Maximum size of a cached response. Larger responses belong to declared queries, which are sent only once.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Maximum size of the cache of a bundle. When it is full, further responses are not stored.
const MAX_CACHE_BYTES: usize = 32 << 20;

/// A request, as the key of the cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey {
    /// The text of the query.
    pub text: String,
    /// The name of the operation.
    pub operation: Option<String>,
    /// The variables, as JSON.
    pub variables: Option<String>,
    /// The extension, as JSON.
    pub extension: Option<String>,
}

impl RequestKey {
    fn bytes(&self) -> usize {
        let Self { text, operation, variables, extension } = self;
        [operation, variables, extension]
            .into_iter()
            .flatten()
            .fold(text.len(), |bytes, part| bytes + part.len())
    }
}

/// Responses by request. Entries are never invalidated, because a pinned bundle does not change.
#[derive(Default)]
pub struct AnswerCache(Mutex<CacheEntries>);

/// The response to a prefetched request: the data, or the errors of the query.
pub type PrefetchedAnswer = Result<Arc<QueryAnswer>, Vec<GraphqlError>>;

#[derive(Default)]
struct CacheEntries {
    answers: BTreeMap<RequestKey, Arc<QueryAnswer>>,
    bytes: usize,
    prefetched: BTreeMap<RequestKey, PrefetchedAnswer>,
}

impl AnswerCache {
    /// The cached response to a request.
    pub fn get(&self, key: &RequestKey) -> Option<Arc<QueryAnswer>> {
        self.0.lock().answers.get(key).cloned()
    }

    /// Whether the cache contains a response to the request.
    pub fn contains(&self, key: &RequestKey) -> bool {
        let entries = self.0.lock();
        entries.answers.contains_key(key) || entries.prefetched.contains_key(key)
    }

    /// Stores a prefetched response.
    pub fn store_prefetched(&self, key: RequestKey, answer: PrefetchedAnswer) {
        self.0.lock().prefetched.insert(key, answer);
    }

    /// Removes and returns a prefetched response. A small response is also stored in the cache.
    pub fn take_prefetched(&self, key: &RequestKey) -> Option<PrefetchedAnswer> {
        let answer = self.0.lock().prefetched.remove(key)?;
        if let Ok(answer) = &answer {
            self.store(key.clone(), answer);
        }
        Some(answer)
    }

    /// Stores a response, unless the response is too large or the cache is full.
    pub fn store(&self, key: RequestKey, answer: &Arc<QueryAnswer>) {
        let bytes = key.bytes() + answer.body().len();
        let mut entries = self.0.lock();
        if bytes > MAX_ANSWER_BYTES || entries.bytes + bytes > MAX_CACHE_BYTES {
            return;
        }
        if entries.answers.insert(key, Arc::clone(answer)).is_none() {
            entries.bytes += bytes;
        }
    }
}

//! Automatic persisted queries: clients send the SHA-256 of a query instead of the query itself.

use qontract_bundle::Sha256;
use qontract_graphql::Cache;

/// Maximum size of the cache, in bytes.
pub const MAX_BYTES: usize = 8 << 20;

/// Cached queries by bundle and digest.
pub type PersistedQueries = Cache<QueryKey, String>;

/// A query that a client sent for a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryKey {
    bundle: Sha256,
    /// The digest of the query, as written by the client.
    digest: String,
}

impl QueryKey {
    fn new(bundle: Sha256, digest: &str) -> Self {
        Self { bundle, digest: digest.to_owned() }
    }

    fn bytes(&self) -> usize {
        self.bundle.as_bytes().len() + self.digest.len()
    }
}

/// The query with this digest, if a client has sent it for this bundle before.
pub fn get(texts: &PersistedQueries, bundle: Sha256, digest: &str) -> Option<String> {
    texts.get(&QueryKey::new(bundle, digest))
}

/// Caches a query that a client sent for a bundle, by its digest.
pub fn insert(texts: &PersistedQueries, bundle: Sha256, digest: &str, text: &str) {
    let key = QueryKey::new(bundle, digest);
    let bytes = key.bytes() + text.len();
    texts.insert(key, text.to_owned(), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_cached_for_the_bundle_it_was_sent_for() {
        let (texts, [a, b]) = (PersistedQueries::new(MAX_BYTES), [b"a", b"b"].map(|name| Sha256::of(name)));
        assert_eq!(get(&texts, a, "digest"), None);
        insert(&texts, a, "digest", "{ a }");
        assert_eq!(get(&texts, a, "digest").as_deref(), Some("{ a }"));
        assert_eq!((get(&texts, a, "Digest"), get(&texts, b, "digest")), (None, None));
    }

    #[test]
    fn the_cost_of_a_query_is_its_size() {
        let (texts, bundle) = (PersistedQueries::new(MAX_BYTES), Sha256::of(b"a"));
        insert(&texts, bundle, "digest", &"x".repeat(1000));
        assert_eq!(texts.cost(), 32 + 6 + 1000);
    }
}

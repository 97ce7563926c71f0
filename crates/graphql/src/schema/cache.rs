//! Cache of the schema of the GraphQL types that were used last.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use qontract_bundle::{Bundle, Sha256};

use super::{Schema, SchemaError};

/// Cache of one schema, so that the types of a bundle are built once for its validation and for its engine.
///
/// **Invariant:** the cached schema is that of the types with the cached digest.
#[derive(Debug, Default)]
pub struct SchemaCache {
    last: Mutex<Option<CachedSchema>>,
    /// The number of schemas that were built.
    builds: AtomicUsize,
}

#[derive(Debug)]
struct CachedSchema {
    /// The digest of the types.
    digest: Sha256,
    schema: Arc<Schema>,
}

impl SchemaCache {
    /// The schema of the bundle, built unless the types of the bundle were the last ones. Errors are not cached. The
    /// lock is held during the build, so that concurrent callers build equal types once.
    pub fn schema_of(&self, bundle: &Bundle) -> Result<Arc<Schema>, SchemaError> {
        let types = bundle.graphql();
        let mut last = self.last.lock();
        if let Some(CachedSchema { digest, schema }) = &*last
            && *digest == types.digest
        {
            return Ok(Arc::clone(schema));
        }
        self.builds.fetch_add(1, Ordering::Relaxed);
        let schema = Arc::new(Schema::build(&types.value)?);
        *last = Some(CachedSchema { digest: types.digest, schema: Arc::clone(&schema) });
        Ok(schema)
    }

    /// The number of schemas that were built, including those that were invalid.
    pub fn builds(&self) -> usize {
        self.builds.load(Ordering::Relaxed)
    }
}

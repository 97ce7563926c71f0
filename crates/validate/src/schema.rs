//! A JSON Schema draft 6 validator that behaves like Python's jsonschema 3.2.
//!
//! **Invariant:** nothing is fetched; all schemas come from the bundle. **Invariant:** values can be checked
//! against every schema of the bundle, even a malformed one.

mod applicators;
mod assertions;
mod check;
pub mod compile;
pub mod equality;
mod format;
mod key_cache;
pub mod metaschema;
mod numbers;
pub mod ref_cycles;
pub mod reference;
mod rule;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use qontract_bundle::{Bundle, Value};

use crate::failure::{FailureKind, SchemaFailure};
use crate::pattern::PatternError;
use compile::CompiledSchemas;
use key_cache::KeyCheckCache;
use ref_cycles::RefCycle;
use reference::SchemaLocation;

/// Whether the `format` keyword is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// `format` is an annotation.
    #[default]
    Ignored,
    /// `format` is enforced.
    Enforced,
}

/// The compiled schemas of a bundle.
#[derive(Debug)]
pub struct SchemaChecker<'b> {
    bundle: &'b Bundle,
    compiled: CompiledSchemas<'b>,
}

impl<'b> SchemaChecker<'b> {
    /// A checker for the schemas of `bundle`.
    pub fn new(bundle: &'b Bundle, formats: Formats) -> Self {
        Self { bundle, compiled: CompiledSchemas::new(bundle, formats) }
    }

    /// The error of the pattern `written`, if it does not compile.
    pub fn bad_pattern(&self, written: &str) -> Option<&PatternError> {
        self.compiled.patterns.get(written)?.as_ref().err()
    }

    /// The targets of references within the schema at `path`.
    pub fn ref_targets(&self, path: &str) -> impl Iterator<Item = &SchemaLocation<'b>> {
        self.compiled.ref_targets.get(path).into_iter().flat_map(BTreeMap::values)
    }

    /// Cycles of references that never descend into a value.
    pub fn ref_cycles(&self) -> &[RefCycle] {
        &self.compiled.ref_cycles
    }

    /// The failures of `value` against the schema at `path`, or `None` if there is no such schema.
    pub fn check(&self, path: &str, value: &Value) -> Option<Vec<SchemaFailure>> {
        self.session().check_value(path, value)
    }

    /// Starts a session that checks many values with a shared cache.
    pub fn session<'v>(&self) -> CheckSession<'_, 'b, 'v> {
        CheckSession { checker: self, cache: KeyCheckCache::default(), values: PhantomData }
    }

    /// The failures of `value` against an inline `$schemaRef` of the schema at `path`.
    pub fn check_inline(&self, path: &str, schema: &'b Value, value: &Value) -> Vec<SchemaFailure> {
        if schema.as_map().is_none() {
            // The value of `$schemaRef` is not a schema, which the schema rules report.
            return Vec::new();
        }
        let document = reference::document(self.bundle, path);
        match document.and_then(|(file, _)| self.compiled.node_of(file, schema)) {
            Some(node) => check::failures(&self.compiled, node, value, &mut KeyCheckCache::default()),
            // The inline schema was not compiled, so no value is valid.
            None => {
                vec![SchemaFailure { pointer: String::new(), keyword: None, kind: FailureKind::Forbidden }]
            }
        }
    }
}

/// Checks many values. Checks that depend only on the keys of a map are cached by the address of the key set.
/// Therefore, the lifetime `'v` keeps all values alive until the session ends.
#[derive(Debug)]
pub struct CheckSession<'c, 'b, 'v> {
    checker: &'c SchemaChecker<'b>,
    cache: KeyCheckCache,
    values: PhantomData<&'v Value>,
}

impl<'v> CheckSession<'_, '_, 'v> {
    /// The failures of `value` against the schema at `path`, or `None` if there is no such schema.
    pub fn check_value(&mut self, path: &str, value: &'v Value) -> Option<Vec<SchemaFailure>> {
        let SchemaChecker { bundle, compiled } = self.checker;
        let (file, schema) = reference::document(bundle, path)?;
        let node = compiled.node_of(file, schema)?;
        Some(check::failures(compiled, node, value, &mut self.cache))
    }
}

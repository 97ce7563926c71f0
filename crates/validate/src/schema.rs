//! A JSON Schema draft 6 validator that behaves like Python's jsonschema 3.2.
//!
//! **Invariant:** nothing is fetched; all schemas come from the bundle. **Invariant:** values can be checked
//! against every schema of the bundle, even a malformed one.

mod check;
pub mod compile;
pub mod equality;
pub mod form;
mod format;
pub mod loops;
mod memo;
mod numbers;
mod own;
mod parts;
pub mod reference;
mod rule;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use qontract_bundle::{Bundle, Value};

use crate::failure::{Failure, Wrong};
use crate::pattern::BadPattern;
use compile::Compiled;
use loops::Loop;
use memo::Memo;
use reference::Place;

/// Whether the `format` keyword is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// `format` is an annotation.
    #[default]
    Ignored,
    /// `format` is enforced.
    Enforced,
}

/// The schemas of a bundle, compiled.
#[derive(Debug)]
pub struct Checker<'b> {
    bundle: &'b Bundle,
    compiled: Compiled<'b>,
}

impl<'b> Checker<'b> {
    /// A checker for the schemas of `bundle`.
    pub fn new(bundle: &'b Bundle, formats: Formats) -> Self {
        Self { bundle, compiled: Compiled::new(bundle, formats) }
    }

    /// The error of the pattern `written`, if it does not compile.
    pub fn bad_pattern(&self, written: &str) -> Option<&BadPattern> {
        self.compiled.patterns.get(written)?.as_ref().err()
    }

    /// The targets of references within the schema at `path`.
    pub fn referred(&self, path: &str) -> impl Iterator<Item = &Place<'b>> {
        self.compiled.referred.get(path).into_iter().flat_map(BTreeMap::values)
    }

    /// Cycles of references that never descend into a value.
    pub fn loops(&self) -> &[Loop] {
        &self.compiled.loops
    }

    /// The failures of `value` against the schema at `path`, or `None` if there is no such schema.
    pub fn check(&self, path: &str, value: &Value) -> Option<Vec<Failure>> {
        self.series().check(path, value)
    }

    /// Starts a session that checks many values with a shared cache.
    pub fn series<'v>(&self) -> Series<'_, 'b, 'v> {
        Series { checker: self, memo: Memo::default(), values: PhantomData }
    }

    /// The failures of `value` against an inline `$schemaRef` of the schema at `path`.
    pub fn check_inline(&self, path: &str, schema: &'b Value, value: &Value) -> Vec<Failure> {
        if schema.as_map().is_none() {
            // It is not a schema, which the schema rules report.
            return Vec::new();
        }
        let document = reference::document(self.bundle, path);
        match document.and_then(|(file, _)| self.compiled.node(file, schema)) {
            Some(node) => check::failures(&self.compiled, node, value, &mut Memo::default()),
            // Without a compiled schema, no value is valid.
            None => vec![Failure { pointer: String::new(), keyword: None, wrong: Wrong::Forbidden }],
        }
    }
}

/// Checks many values. Checks that depend only on the keys of a map are cached by the address of the key set,
/// so all values must stay alive until the session ends: `'v`.
#[derive(Debug)]
pub struct Series<'c, 'b, 'v> {
    checker: &'c Checker<'b>,
    memo: Memo,
    values: PhantomData<&'v Value>,
}

impl<'v> Series<'_, '_, 'v> {
    /// The failures of `value` against the schema at `path`, or `None` if there is no such schema.
    pub fn check(&mut self, path: &str, value: &'v Value) -> Option<Vec<Failure>> {
        let Checker { bundle, compiled } = self.checker;
        let (file, schema) = reference::document(bundle, path)?;
        let node = compiled.node(file, schema)?;
        Some(check::failures(compiled, node, value, &mut self.memo))
    }
}

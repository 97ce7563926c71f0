//! The schemas of a bundle, and values checked against them: JSON Schema draft 6, as Python's jsonschema 3.2 has it.
//!
//! **Invariant:** nothing is fetched; a schema is in the bundle or it is not there. **Invariant:** every schema of the
//! bundle can be checked by, whatever is wrong with it.

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

/// What is asked of values besides the draft's own rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// `format` says what is meant, and is not enforced.
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

    /// Why `written` is no pattern that can be looked for, if it is none.
    pub fn bad_pattern(&self, written: &str) -> Option<&BadPattern> {
        self.compiled.patterns.get(written)?.as_ref().err()
    }

    /// What is referred to in the schema at `path`.
    pub fn referred(&self, path: &str) -> impl Iterator<Item = &Place<'b>> {
        self.compiled.referred.get(path).into_iter().flat_map(BTreeMap::values)
    }

    /// References in schemas that lead back to themselves.
    pub fn loops(&self) -> &[Loop] {
        &self.compiled.loops
    }

    /// What is wrong with `value` by the schema at `path`, or `None` if there is no such schema.
    pub fn check(&self, path: &str, value: &Value) -> Option<Vec<Failure>> {
        self.series().check(path, value)
    }

    /// Checks of many values.
    pub fn series<'v>(&self) -> Series<'_, 'b, 'v> {
        Series { checker: self, memo: Memo::default(), values: PhantomData }
    }

    /// What is wrong with `value` by a `$schemaRef` of the schema at `path`.
    pub fn check_inline(&self, path: &str, schema: &'b Value, value: &Value) -> Vec<Failure> {
        if schema.as_map().is_none() {
            // That it is no schema is told there.
            return Vec::new();
        }
        let document = reference::document(self.bundle, path);
        match document.and_then(|(file, _)| self.compiled.node(file, schema)) {
            Some(node) => check::failures(&self.compiled, node, value, &mut Memo::default()),
            // What cannot be checked does not fit.
            None => vec![Failure { pointer: String::new(), keyword: None, wrong: Wrong::Forbidden }],
        }
    }
}

/// Checks of many values, which find out once what the same keys tell. All values are there until the last one is checked.
#[derive(Debug)]
pub struct Series<'c, 'b, 'v> {
    checker: &'c Checker<'b>,
    memo: Memo,
    values: PhantomData<&'v Value>,
}

impl<'v> Series<'_, '_, 'v> {
    /// What is wrong with `value` by the schema at `path`, or `None` if there is no such schema.
    pub fn check(&mut self, path: &str, value: &'v Value) -> Option<Vec<Failure>> {
        let Checker { bundle, compiled } = self.checker;
        let (file, schema) = reference::document(bundle, path)?;
        let node = compiled.node(file, schema)?;
        Some(check::failures(compiled, node, value, &mut self.memo))
    }
}

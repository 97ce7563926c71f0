//! Validates a bundle: reports every mistake once, at its location and with a hint.
//!
//! [`validate`] takes a bundle and returns findings with a file name and a JSON pointer; [`locate`] adds the
//! source spans of the pointers where the source text is available. The rules are in `rules`, one file each;
//! [`schema`] checks values against JSON schemas, and `explain` converts the failures to findings. [`peer`]
//! writes the records of `qontract-validator` from the same checks, and [`export`] writes schemas for
//! editors.
//!
//! [`validate_incremental`] reuses cached results of unchanged files.
//!
//! This crate is pure: it reads no files, and **never fetches a URL in the data**.

mod cache;
mod display;
mod explain;
pub mod export;
mod failure;
mod fast_path;
mod keywords;
mod links;
pub mod pattern;
pub mod peer;
mod rules;
pub mod schema;
mod spans;
mod tree;

use std::collections::BTreeSet;

use qontract_bundle::types::Types;
use qontract_bundle::walk::SchemaIndex;
use qontract_bundle::{Bundle, Layout, Value};
use qontract_diagnostics::Diagnostic;
use rayon::prelude::*;

use cache::ValidDigests;
use fast_path::{ValidLinks, valid_links};
use links::Link;
use schema::{Formats, SchemaChecker};

pub use cache::ValidationCache;
pub use failure::{AllowedValues, FailureKind, SchemaFailure, SchemaPlace};
pub use spans::locate;

/// Options of a validation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The file layout of the data repo, for file names in findings.
    pub layout: Layout,
    /// Whether `format` is enforced.
    pub formats: Formats,
    /// Files of the data repo that could not be read: references to them are not reported.
    pub unread: BTreeSet<String>,
    /// Whether to report only errors: slow rules that only report warnings are skipped.
    pub only_errors: bool,
}

/// The inputs that all rules share.
struct Context<'b> {
    bundle: &'b Bundle,
    types: &'b Types,
    schema_index: &'b SchemaIndex<'b, &'b Value>,
    layout: &'b Layout,
    checker: &'b SchemaChecker<'b>,
    unread: &'b BTreeSet<String>,
    /// Cached results of the last validation.
    cache: &'b ValidationCache,
}

/// The links of one datafile.
struct FileLinks<'b> {
    path: &'b str,
    links: Vec<Link<'b>>,
}

impl<'b> Context<'b> {
    fn links(&self) -> Vec<FileLinks<'b>> {
        let (bundle, schema_index, types) = (self.bundle, self.schema_index, self.types);
        let files = bundle.datafiles().par_iter();
        files
            .map(|file| FileLinks { path: &file.path, links: links::of(bundle, schema_index, types, file) })
            .collect()
    }
}

/// Indexes the schemas of a bundle for walking datafiles.
fn schema_index(bundle: &Bundle) -> SchemaIndex<'_, &Value> {
    SchemaIndex::new(bundle.schemas().iter().map(|schema| (&*schema.path, &*schema.document.value)))
}

/// All findings about a bundle, in no particular order.
pub fn validate(bundle: &Bundle, options: &Options) -> Vec<Diagnostic> {
    validate_incremental(bundle, options, &mut ValidationCache::default())
}

/// Validates incrementally: files that `cache` lists as valid are not checked again, and `cache` is updated.
///
/// The findings are the same as those of [`validate`].
pub fn validate_incremental(
    bundle: &Bundle,
    options: &Options,
    cache: &mut ValidationCache,
) -> Vec<Diagnostic> {
    cache.invalidate_for(bundle, options);
    let (findings, valid) = check(bundle, options, cache);
    cache.replace(valid);
    findings
}

/// The findings, and the results to cache.
fn check(bundle: &Bundle, options: &Options, cache: &ValidationCache) -> (Vec<Diagnostic>, ValidDigests) {
    let types = Types::read(&bundle.graphql().value);
    let checker = SchemaChecker::new(bundle, options.formats);
    let schema_index = schema_index(bundle);
    let cx = Context {
        bundle,
        types: &types,
        schema_index: &schema_index,
        layout: &options.layout,
        checker: &checker,
        unread: &options.unread,
        cache,
    };
    let mut findings = rules::schemas::check(&cx);
    let (found, mut fit) = rules::files::check(&cx);
    findings.extend(found);
    // Links are collected for findings only if the fast path reports invalid links.
    let linked = valid_links(&cx);
    let links = if linked.is_some() { Vec::new() } else { cx.links() };
    let broken = rules::references::check(&cx, &links);
    // A broken reference is reported once, by its target: schema failures at the same location are dropped.
    let places: BTreeSet<_> =
        broken.iter().map(|finding| (&finding.location.file, &finding.location.pointer)).collect();
    findings.retain(|finding| !places.contains(&(&finding.location.file, &finding.location.pointer)));
    findings.extend(broken);
    findings.extend(rules::unique::check(&cx, &links));
    let (found, fit_resources) = rules::resources::check(&cx);
    findings.extend(found);
    fit.extend(fit_resources);
    findings.extend(rules::templates::check(&cx));
    if !options.only_errors {
        findings.extend(rules::resources::unused(&cx));
    }
    findings.extend(rules::graphql::check(&cx));
    findings.extend(rules::schema_match::check(&cx));
    findings.extend(rules::synthetic::check(&cx));
    findings.extend(rules::paths::check(&cx));
    let ValidLinks { files: linked, content_targets } = linked.unwrap_or_default();
    (findings, ValidDigests { conforming: fit, linked, content_targets })
}

//! Validates a bundle: reports every mistake, each once, at its location and with a hint.
//!
//! [`validate`] takes a bundle and returns findings with a file name and a JSON pointer; [`locate`] turns
//! pointers into lines where the source text is available. The rules are in `rules`, one file each;
//! [`schema`] checks values against JSON schemas, and `explain` turns the failures into findings. [`peer`]
//! writes the records of the established validator from the same checks, and [`export`] writes schemas for
//! editors.
//!
//! Validation is incremental with [`validate_again`]: results of unchanged files come from a cache.
//!
//! This crate is pure: it reads no files, and **nothing that data names is ever fetched**.

mod explain;
pub mod export;
mod failure;
mod keywords;
mod known;
mod links;
pub mod pattern;
pub mod peer;
mod quick;
mod rules;
pub mod schema;
mod spans;
mod tree;
mod words;

use std::collections::BTreeSet;

use qontract_bundle::types::Types;
use qontract_bundle::walk::Guide;
use qontract_bundle::{Bundle, Layout, Value};
use qontract_diagnostics::Diagnostic;
use rayon::prelude::*;

use known::Right;
use links::Link;
use schema::{Checker, Formats};

pub use failure::{Allowed, Failure, Wrong};
pub use known::Known;
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
    /// Whether to report only errors: slow rules that only give warnings are skipped.
    pub only_errors: bool,
}

/// The inputs that all rules share.
struct Context<'b> {
    bundle: &'b Bundle,
    types: &'b Types,
    guide: &'b Guide<'b, &'b Value>,
    layout: &'b Layout,
    checker: &'b Checker<'b>,
    unread: &'b BTreeSet<String>,
    /// Cached results of the last validation.
    known: &'b Known,
}

/// The links of one datafile.
struct FileLinks<'b> {
    path: &'b str,
    links: Vec<Link<'b>>,
}

impl<'b> Context<'b> {
    fn links(&self) -> Vec<FileLinks<'b>> {
        let (bundle, guide, types) = (self.bundle, self.guide, self.types);
        let files = bundle.datafiles().par_iter();
        files
            .map(|file| FileLinks { path: &file.path, links: links::of(bundle, guide, types, file) })
            .collect()
    }
}

/// The schemas of a bundle as a guide for walking datafiles.
fn guide(bundle: &Bundle) -> Guide<'_, &Value> {
    Guide::new(bundle.schemas().iter().map(|schema| (&*schema.path, &*schema.document.value)))
}

/// All findings about a bundle, in no particular order.
pub fn validate(bundle: &Bundle, options: &Options) -> Vec<Diagnostic> {
    validate_again(bundle, options, &mut Known::default())
}

/// Validates incrementally: files that `cache` has as valid are not checked again, and `cache` is updated.
///
/// The findings are the same as those of [`validate`].
pub fn validate_again(bundle: &Bundle, options: &Options, cache: &mut Known) -> Vec<Diagnostic> {
    cache.stand_on(bundle, options);
    let (findings, valid) = check(bundle, options, cache);
    cache.replace(valid);
    findings
}

/// The findings, and the results to cache.
fn check(bundle: &Bundle, options: &Options, cache: &Known) -> (Vec<Diagnostic>, Right) {
    let types = Types::read(&bundle.graphql().value);
    let checker = Checker::new(bundle, options.formats);
    let guide = guide(bundle);
    let cx = Context {
        bundle,
        types: &types,
        guide: &guide,
        layout: &options.layout,
        checker: &checker,
        unread: &options.unread,
        known: cache,
    };
    let mut findings = rules::schemas::check(&cx);
    let (found, mut fit) = rules::files::check(&cx);
    findings.extend(found);
    // Links are collected for findings only if the fast path finds something wrong.
    let linked = quick::all_right(&cx);
    let links = if linked.is_some() { Vec::new() } else { cx.links() };
    let broken = rules::references::check(&cx, &links);
    // A broken reference is reported once, by its target: schema failures at the same location are dropped.
    let places: BTreeSet<_> =
        broken.iter().map(|finding| (&finding.place.file, &finding.place.pointer)).collect();
    findings.retain(|finding| !places.contains(&(&finding.place.file, &finding.place.pointer)));
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
    findings.extend(rules::match_schema::check(&cx));
    findings.extend(rules::synthetic::check(&cx));
    findings.extend(rules::paths::check(&cx));
    let (linked, wanted) = linked.unwrap_or_default();
    (findings, Right { fit, linked, wanted })
}

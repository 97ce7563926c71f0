//! A bundle, checked: every mistake at once, each told once, at its place and with a way out.
//!
//! [`validate`] takes a bundle, wherever it came from, and returns findings with the name of the file and a JSON
//! pointer; [`locate`] turns pointers into lines where the texts can be had. The rules are in `rules`, one file
//! each; what a JSON schema has against a value is found in [`schema`] and put into words in `explain`. [`peer`]
//! writes the records of the established validator from the same checks, and [`export`] writes schemas for editors.
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

/// What is asked besides the bundle.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How the files of the data repo are called.
    pub layout: Layout,
    /// Whether `format` is enforced.
    pub formats: Formats,
    /// Files of the data repo that could not be read: what refers to them is not wrong for that.
    pub unread: BTreeSet<String>,
    /// Whether only errors are wanted: what takes long and can only warn is left out then.
    pub only_errors: bool,
}

/// What every rule knows.
struct Context<'b> {
    bundle: &'b Bundle,
    types: &'b Types,
    guide: &'b Guide<'b, &'b Value>,
    layout: &'b Layout,
    checker: &'b Checker<'b>,
    unread: &'b BTreeSet<String>,
    /// What need not be looked at again.
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

/// The schemas of a bundle, to walk along.
fn guide(bundle: &Bundle) -> Guide<'_, &Value> {
    Guide::new(bundle.schemas().iter().map(|schema| (&*schema.path, &*schema.document.value)))
}

/// Everything that is wrong with a bundle, in no particular order.
pub fn validate(bundle: &Bundle, options: &Options) -> Vec<Diagnostic> {
    validate_again(bundle, options, &mut Known::default())
}

/// The same, for who knows what was right the last time, and is to know it the next time.
pub fn validate_again(bundle: &Bundle, options: &Options, known: &mut Known) -> Vec<Diagnostic> {
    known.stand_on(bundle, options);
    let (findings, right) = check(bundle, options, known);
    known.replace(right);
    findings
}

/// What is wrong, and what is right.
fn check(bundle: &Bundle, options: &Options, known: &Known) -> (Vec<Diagnostic>, Right) {
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
        known,
    };
    let mut findings = rules::schemas::check(&cx);
    let (found, mut fit) = rules::files::check(&cx);
    findings.extend(found);
    // What is wrong is told only if something is.
    let linked = quick::all_right(&cx);
    let links = if linked.is_some() { Vec::new() } else { cx.links() };
    let broken = rules::references::check(&cx, &links);
    // A reference that is wrong is told once, by what it leads to: its own form is part of that.
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

//! Reads the resources of the data repo.

use std::sync::Arc;
use std::time::SystemTime;

use qontract_diagnostics::{Diagnostic, code};
use rayon::prelude::*;

use super::datafiles::Backrefs;
use super::memory::{self, Found, Kept, Known, News, Unread};
use crate::digest::Sha256;
use crate::model::{Backref, Bundle, Resource};
use crate::repo::{File, Listing, MOST_BYTES, Sight, unreadable};

/// A resource before it is encoded.
pub struct RawResource<'a> {
    pub text: RawText<'a>,
    /// The stamp of its file, and the SHA-256 of its bytes.
    pub sight: Option<Sight>,
    pub sum: Sha256,
}

/// The source of a resource.
pub enum RawText<'a> {
    /// The cached resource, unchanged.
    Kept(&'a Arc<Resource>),
    /// A new or changed resource, without a digest yet.
    New(Resource),
}

impl RawResource<'_> {
    /// Its path.
    pub fn path(&self) -> &str {
        match &self.text {
            RawText::Kept(resource) => &resource.path,
            RawText::New(resource) => &resource.path,
        }
    }
}

/// Reads all resources.
pub fn read<'a>(
    listing: Listing,
    known: &'a Known<Resource>,
    begun: Option<SystemTime>,
    backrefs: &Backrefs<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<RawResource<'a>> {
    findings.extend(listing.findings);
    let one = |(place, file): (usize, &File)| {
        let known = known.about(place, &file.path).map(|(_, known)| known);
        let found = memory::look(file, known, begun).map_err(|unread| unread_resource(file, &unread))?;
        one(file, found, known, backrefs.get(file.path.as_str()).map_or(&[], Vec::as_slice))
    };
    let results: Vec<_> = listing.files.par_iter().enumerate().map(one).collect();
    let mut resources = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(resource) => resources.push(resource),
            Err(finding) => findings.push(*finding),
        }
    }
    resources
}

pub(super) fn one<'a>(
    file: &File,
    found: Found<Resource>,
    known: Option<&'a Kept<Resource>>,
    backrefs: &[Backref],
) -> Result<RawResource<'a>, Box<Diagnostic>> {
    let empty = Sha256::of(b"");
    let (text, sight, sum) = match (found, known) {
        (Found::New(bytes, sum, sight), _) => {
            let content = String::from_utf8(bytes).map_err(|error| {
                let message = format!("byte {} is not UTF-8", error.utf8_error().valid_up_to());
                Box::new(Diagnostic::new(code::RESOURCE_ENCODING, message).in_file(&file.name))
            })?;
            let schema = schema_of(&file.path, &content).map(Into::into);
            let (path, sha256sum) = (file.path.as_str().into(), sum.to_string().into());
            let backrefs = backrefs.to_vec();
            let resource =
                Resource { path, content: content.into(), sha256sum, schema, backrefs, digest: empty };
            (RawText::New(resource), sight, sum)
        }
        (Found::Kept(Kept { sight, sum, .. }), Some(kept)) if kept.what.backrefs == backrefs => {
            (RawText::Kept(&kept.what), sight, sum)
        }
        (Found::Kept(Kept { sight, sum, what }), _) => {
            let Resource { path, content, sha256sum, schema, .. } = &*what;
            let resource = Resource {
                path: path.clone(),
                content: content.clone(),
                sha256sum: sha256sum.clone(),
                schema: schema.clone(),
                backrefs: backrefs.to_vec(),
                digest: empty,
            };
            (RawText::New(resource), sight, sum)
        }
    };
    Ok(RawResource { text, sight, sum })
}

fn unread_resource(file: &File, unread: &Unread) -> Box<Diagnostic> {
    Box::new(match unread {
        Unread::TooLarge(size) => {
            let message = format!("the resource has {size} bytes, more than the {MOST_BYTES} allowed");
            Diagnostic::new(code::RESOURCE_SIZE, message).in_file(&file.name)
        }
        Unread::Failed(error) => unreadable(&file.name, &error.to_string()),
    })
}

/// Counts the resources that the cache could not answer.
pub fn news(resources: &[RawResource<'_>], known: &Known<Resource>, news: &mut News) {
    for (place, resource) in resources.iter().enumerate() {
        let same = matches!(resource.text, RawText::Kept(_));
        let looked = known.about(place, resource.path()).and_then(|(_, known)| known.sight);
        news.count(same, resource.sight, looked);
    }
}

/// The cache entries of the resources of a bundle, with the stamps and hashes of their files.
pub fn kept(bundle: &Bundle, looks: Vec<(Option<Sight>, Sha256)>) -> Known<Resource> {
    let resources = bundle.resources.par_iter().zip(looks);
    let kept = resources.map(|(resource, (sight, sum))| {
        (Arc::from(&*resource.path), Kept { sight, sum, what: Arc::clone(resource) })
    });
    Known::new(kept.collect())
}

/// The schema that a YAML resource names: the first line `$schema: ….yml`, bare and not indented.
fn schema_of<'a>(path: &str, content: &'a str) -> Option<&'a str> {
    let (_, ending) = path.rsplit_once('.')?;
    if !matches!(ending, "yml" | "yaml") {
        return None;
    }
    content.split('\n').filter_map(|line| line.strip_prefix("$schema: ")).find(|schema| {
        let stem = schema.strip_suffix(".yml").or_else(|| schema.strip_suffix(".yaml"));
        stem.is_some_and(|stem| !stem.is_empty())
    })
}

//! The resources of the data repo.

use std::collections::BTreeMap;

use qontract_diagnostics::{Diagnostic, code};
use rayon::prelude::*;

use crate::digest::Sha256;
use crate::model::Backref;
use crate::repo::{Bytes, File, Listing, MOST_BYTES, unreadable};

/// A resource before it is encoded.
pub struct RawResource {
    pub path: String,
    pub content: String,
    pub sha256sum: String,
    pub schema: Option<String>,
    pub backrefs: Vec<Backref>,
}

/// Reads all resources.
pub fn read(
    listing: Listing,
    backrefs: &BTreeMap<String, Vec<Backref>>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<RawResource> {
    findings.extend(listing.findings);
    let results: Vec<_> = listing.files.par_iter().map(|file| one(file, backrefs)).collect();
    let mut resources = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(resource) => resources.push(resource),
            Err(finding) => findings.push(*finding),
        }
    }
    resources
}

fn one(file: &File, backrefs: &BTreeMap<String, Vec<Backref>>) -> Result<RawResource, Box<Diagnostic>> {
    let bytes = match file.read() {
        Ok(Bytes::Whole(bytes)) => bytes.into_owned(),
        Ok(Bytes::TooLarge(size)) => {
            let message = format!("the resource has {size} bytes, more than the {MOST_BYTES} allowed");
            return Err(Box::new(Diagnostic::new(code::RESOURCE_SIZE, message).in_file(&file.name)));
        }
        Err(error) => return Err(Box::new(unreadable(&file.name, &error.to_string()))),
    };
    let sha256sum = Sha256::of(&bytes).to_string();
    let content = String::from_utf8(bytes).map_err(|error| {
        let message = format!("byte {} is not UTF-8", error.utf8_error().valid_up_to());
        Box::new(Diagnostic::new(code::RESOURCE_ENCODING, message).in_file(&file.name))
    })?;
    let schema = schema_of(&file.path, &content).map(str::to_owned);
    let backrefs = backrefs.get(&file.path).cloned().unwrap_or_default();
    Ok(RawResource { path: file.path.clone(), content, sha256sum, schema, backrefs })
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

//! Rule: no two paths differ only in case, because they would be one file on a case-insensitive file system.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use qontract_diagnostics::{Diagnostic, DiagnosticLocation, code};
use rayon::prelude::*;

use crate::Context;

/// Checks the paths of datafiles, resources and schemas.
pub fn check(cx: &Context<'_>) -> Vec<Diagnostic> {
    let data = cx.bundle.datafiles().par_iter().map(|file| cx.layout.datafile(&file.path));
    let resources = cx.bundle.resources().par_iter().map(|resource| cx.layout.resource(&resource.path));
    let schemas = cx.bundle.schemas().par_iter().map(|schema| cx.layout.schema(&schema.path));
    let names = data.chain(resources).chain(schemas);
    if are_distinct(names.clone()) {
        return Vec::new();
    }
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut findings = Vec::new();
    for name in names.collect::<Vec<_>>() {
        if let Some(first) = known.get(&name.to_lowercase()) {
            let message = format!("the path differs from `{first}` only in case");
            let other = DiagnosticLocation { file: first.clone(), ..DiagnosticLocation::default() };
            let finding = Diagnostic::new(code::PATHS_BY_CASE, message).in_file(&name);
            findings.push(finding.note_in("the other file", other).hint("rename one of them"));
        } else {
            known.insert(name.to_lowercase(), name);
        }
    }
    findings
}

/// Whether all names are certainly distinct, judged by their hashes. The caller resolves collisions.
fn are_distinct(names: impl ParallelIterator<Item = String>) -> bool {
    let state = RandomState::default();
    let mut hashes: Vec<u64> = names.map(|name| state.hash_one(name.to_lowercase())).collect();
    hashes.par_sort_unstable();
    hashes.is_sorted_by(|one, next| one < next)
}

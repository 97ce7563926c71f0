//! Paths that differ only by case: two files here, one file on a disk that does not tell case apart.

use std::collections::BTreeMap;

use qontract_diagnostics::{Diagnostic, Place, code};

use crate::Context;

/// Checks the paths of datafiles, resources and schemas.
pub fn check(cx: &Context<'_>) -> Vec<Diagnostic> {
    let data = cx.bundle.datafiles().iter().map(|file| cx.names.data(&file.path));
    let resources = cx.bundle.resources().iter().map(|resource| cx.names.resource(&resource.path));
    let schemas = cx.bundle.schemas().iter().map(|schema| cx.names.schema(&schema.path));
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut findings = Vec::new();
    for name in data.chain(resources).chain(schemas) {
        if let Some(first) = known.get(&name.to_lowercase()) {
            let message = format!("the path differs from `{first}` only by case");
            let other = Place { file: first.clone(), ..Place::default() };
            let finding = Diagnostic::new(code::PATHS_BY_CASE, message).in_file(&name);
            findings.push(finding.note_in("the other file", other).hint("rename one of them"));
        } else {
            known.insert(name.to_lowercase(), name);
        }
    }
    findings
}

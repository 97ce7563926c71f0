//! Rules: a resource that names a schema conforms to it, and every resource is used.

use std::collections::HashSet;

use qontract_bundle::{Resource, Sha256, Value};
use qontract_diagnostics::{Diagnostic, code};
use qontract_yaml::{Limits, parse};
use rayon::prelude::*;

use super::files;
use crate::Context;

/// The parsed content of a resource, or `None` if it is not plain YAML.
pub fn document(resource: &Resource) -> Option<Value> {
    let parsed = parse(resource.content.as_bytes(), &Limits::default());
    let document = parsed.document?;
    qontract_bundle::value_of(document.root())
}

/// Checks all resources that name a schema; also returns the digests of resources that conform to it.
pub fn check(cx: &Context<'_>) -> (Vec<Diagnostic>, Vec<Sha256>) {
    let named = cx.bundle.resources().par_iter().filter(|resource| resource.schema.is_some());
    files::merge(named.map(|resource| {
        let found =
            if cx.cache.conforms(resource.digest) { Vec::new() } else { check_resource(cx, resource) };
        let right = if found.is_empty() { vec![resource.digest] } else { Vec::new() };
        (found, right)
    }))
}

fn check_resource(cx: &Context<'_>, resource: &Resource) -> Vec<Diagnostic> {
    let file = cx.layout.resource(&resource.path);
    if let Some(value) = document(resource) {
        return files::check_document(cx, &mut cx.checker.session(), &file, &value);
    }
    let message = "the resource names a schema, but is not checked, because it is not plain YAML";
    let finding = Diagnostic::new(code::RESOURCE_NOT_CHECKED, message).in_file(file);
    vec![finding.hint("remove `$schema` if the file is a template")]
}

/// Reports the resources that no datafile and no other resource names.
pub fn unused(cx: &Context<'_>) -> Vec<Diagnostic> {
    // A resource that is named where the schema expects a resource has a back-reference; other resources are
    // searched for in all strings.
    let unnamed = || cx.bundle.resources().iter().filter(|resource| resource.backrefs.is_empty());
    let paths: HashSet<&str> = unnamed().map(|resource| &*resource.path).collect();
    // An unreadable file may name any of these resources.
    if paths.is_empty() || !cx.unread.is_empty() {
        return Vec::new();
    }
    let named_in_data = cx.bundle.datafiles().par_iter().map(|file| {
        let mut named = HashSet::new();
        texts(&file.document.value, &mut |text| collect_mentions(text, &paths, &mut named));
        named
    });
    let named_in_resources = cx.bundle.resources().par_iter().map(|resource| {
        let mut named = HashSet::new();
        collect_mentions(&resource.content, &paths, &mut named);
        named.remove(&*resource.path);
        named
    });
    let mut used: HashSet<&str> = named_in_data.reduce(HashSet::new, union);
    used = union(used, named_in_resources.reduce(HashSet::new, union));
    let unused = unnamed().filter(|resource| !used.contains(&*resource.path));
    let finding = |resource: &std::sync::Arc<Resource>| {
        let finding = Diagnostic::new(code::UNUSED_RESOURCE, "no datafile names this resource");
        let finding = finding.in_file(cx.layout.resource(&resource.path));
        finding.hint("remove the resource, or refer to it in a datafile")
    };
    unused.map(finding).collect()
}

fn union<'a>(a: HashSet<&'a str>, b: HashSet<&'a str>) -> HashSet<&'a str> {
    let (mut large, small) = if a.len() < b.len() { (b, a) } else { (a, b) };
    large.extend(small.iter());
    large
}

fn texts<'v>(value: &'v Value, visit: &mut impl FnMut(&'v str)) {
    match value {
        Value::Str(text) => visit(text),
        Value::List(items) => items.iter().for_each(|item| texts(item, visit)),
        Value::Map(map) => map.iter().for_each(|(_, value)| texts(value, visit)),
        _ => {}
    }
}

/// Adds the resources whose paths a string contains.
fn collect_mentions<'p>(text: &str, paths: &HashSet<&'p str>, named: &mut HashSet<&'p str>) {
    let is_path = |character: char| character.is_alphanumeric() || "/-._+@=".contains(character);
    // The whole string is looked up first, because paths may contain characters other than those below. Most
    // strings do not begin with a slash.
    if text.starts_with('/')
        && let Some(known) = paths.get(text)
    {
        named.insert(known);
    }
    for (start, _) in text.match_indices('/') {
        if text[..start].ends_with(is_path) {
            continue;
        }
        let rest = &text[start..];
        let end = rest.find(|character| !is_path(character)).unwrap_or(rest.len());
        let path = &rest[..end];
        if let Some(known) = paths.get(path).or_else(|| paths.get(path.trim_end_matches('.'))) {
            named.insert(known);
        }
    }
}

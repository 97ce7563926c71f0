//! Reports namespaces that are declared more than once, and clusters with the same server.
//!
//! `plan` and runs report duplicates for every integration and process neither of them. This check reports them
//! without a target system. The check is one pass over the clusters and one over the namespaces of a bundle.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use qontract_bundle::{Bundle, Datafile, Layout, Value};
use qontract_diagnostics::{Diagnostic, DiagnosticLocation, code};
use qontract_runtime::normalize_key;

const NAMESPACE_SCHEMA: &str = "/openshift/namespace-1.yml";
const CLUSTER_SCHEMA: &str = "/openshift/cluster-1.yml";

/// Errors about duplicate namespaces and clusters of a bundle.
pub fn check(bundle: &Bundle, layout: &Layout) -> Vec<Diagnostic> {
    let mut findings = same_server(bundle, layout);
    findings.extend(same_namespace(bundle, layout));
    findings
}

fn datafiles_of<'b>(bundle: &'b Bundle, schema: &str) -> impl Iterator<Item = &'b Datafile> {
    bundle.datafiles().iter().filter(move |file| file.document.is_of(schema))
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

fn place(layout: &Layout, path: &str, pointer: &str) -> DiagnosticLocation {
    DiagnosticLocation { file: layout.datafile(path), span: None, pointer: Some(pointer.to_owned()) }
}

/// Errors about clusters in different files that have the same `serverUrl`. Clusters without a server are not compared.
fn same_server(bundle: &Bundle, layout: &Layout) -> Vec<Diagnostic> {
    let mut first: HashMap<String, &Datafile> = HashMap::new();
    let mut findings = Vec::new();
    for file in datafiles_of(bundle, CLUSTER_SCHEMA) {
        let address = text(&file.document.value, "serverUrl").map(normalize_key).unwrap_or_default();
        if address.is_empty() {
            continue;
        }
        let other = match first.entry(address) {
            Entry::Vacant(entry) => {
                entry.insert(file);
                continue;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        let name = |file: &Datafile| text(&file.document.value, "name").unwrap_or_default().to_owned();
        let message = format!("clusters `{}` and `{}` have the same server", name(other), name(file));
        findings.push(
            Diagnostic::new(code::SAME_SERVER, message)
                .in_file(layout.datafile(&file.path))
                .at_pointer("/serverUrl")
                .note_in("the other cluster is declared here", place(layout, &other.path, "/serverUrl"))
                .hint("correct one of the addresses, or keep one of the files"),
        );
    }
    findings
}

/// The key of a namespace's shard.
#[derive(PartialEq, Eq, Hash)]
struct NamespaceKey<'b> {
    cluster: &'b str,
    name: &'b str,
}

impl<'b> NamespaceKey<'b> {
    fn of(file: &'b Datafile, bundle: &'b Bundle) -> Option<Self> {
        let value = &file.document.value;
        let cluster = bundle.datafile(text(value.get("cluster")?, "$ref")?)?;
        Some(Self { cluster: text(&cluster.value, "name")?, name: text(value, "name")? })
    }
}

/// Errors about namespaces with the same name and cluster.
fn same_namespace(bundle: &Bundle, layout: &Layout) -> Vec<Diagnostic> {
    let mut first: HashMap<NamespaceKey<'_>, &Datafile> = HashMap::new();
    let mut findings = Vec::new();
    for file in datafiles_of(bundle, NAMESPACE_SCHEMA) {
        // Dangling references and missing names are reported by other checks.
        let Some(key) = NamespaceKey::of(file, bundle) else { continue };
        let NamespaceKey { cluster, name } = key;
        let other = match first.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(file);
                continue;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        let message = format!("namespace `{name}` of cluster `{cluster}` is declared more than once");
        findings.push(
            Diagnostic::new(code::DUPLICATE_NAMESPACE, message)
                .in_file(layout.datafile(&file.path))
                .at_pointer("/name")
                .note_in("it is also declared here", place(layout, &other.path, "/name"))
                .hint("keep one of the files"),
        );
    }
    findings
}

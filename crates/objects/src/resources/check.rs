//! Validates the templates and files of namespaces before a run, from the data alone. Pure.
//!
//! Nothing is looked up: a template that needs a secret or another external value is not checked, since its
//! text may depend on the value.

use std::collections::BTreeMap;

use qontract_client_kubernetes::{Cluster, Kind};
use qontract_runtime::state::Shard;
use qontract_runtime::{Data, Fault, SourceLocation};

use super::declare::declare;
use super::entry::{DeclaredResources, InvalidEntry, ResourceEntry};
use super::provider_group::ProviderGroup;
use crate::templates::entry_error::InvalidCause;

/// The provider groups whose entries refer to resources.
const GROUPS: [ProviderGroup; 3] = [ProviderGroup::Files, ProviderGroup::Routes, ProviderGroup::Rules];

/// The list of namespaces in the query.
const NAMESPACES: &str = "namespaces_v1";

/// Maximum number of namespaces that are declared at a time.
const MAX_NAMESPACES: usize = 500;

/// A resource that does not produce an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceTextError {
    /// The path of the resource.
    pub resource: String,
    /// The line in it, counted from 1, if known.
    pub line: Option<usize>,
    /// The kind of error.
    pub kind: TextErrorKind,
    /// The message: lower case, values in backticks.
    pub message: String,
}

/// Kinds of errors in a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextErrorKind {
    /// A template that cannot be rendered, for example because a variable is not defined.
    NotRendered,
    /// A template that renders to something that is not an object.
    OutputNotAnObject,
    /// A file that is not an object.
    FileNotAnObject,
}

/// An object whose kind its namespace does not manage, so that it would be neither created nor updated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmanagedKind {
    /// The entry that refers to the object.
    pub place: SourceLocation,
    /// The kind of the object.
    pub kind: String,
    /// The kinds that the namespace manages.
    pub managed: Vec<String>,
    /// The declaration of the namespace.
    pub namespace: Option<SourceLocation>,
}

/// What is wrong with the resources of namespaces.
#[derive(Debug, Default)]
pub struct ResourceFindings {
    /// The errors, each with the provenance of the entries that refer to the resource.
    pub errors: BTreeMap<ResourceTextError, Vec<SourceLocation>>,
    /// The objects whose kinds are not managed, each entry once, by entry and kind.
    pub unmanaged: BTreeMap<(SourceLocation, String), UnmanagedKind>,
}

/// Checks the resources of namespaces, whose datafiles have these paths. They are declared in parts, so that
/// the rendered objects of all namespaces are never in memory at the same time.
pub fn check_resources(data: &Data, namespaces: &[&str]) -> Result<ResourceFindings, Fault> {
    let mut findings = ResourceFindings::default();
    for part in namespaces.chunks(MAX_NAMESPACES) {
        let part = data.restricted_to_datafiles(NAMESPACES, part.iter().copied());
        for providers in GROUPS {
            for shard in declare(providers, &part)?.shards.values() {
                findings.add(shard);
            }
        }
    }
    Ok(findings)
}

impl ResourceFindings {
    fn add(&mut self, shard: &Shard<Cluster, DeclaredResources>) {
        for (index, item) in shard.state.items.iter().enumerate() {
            let place = || shard.place(&format!("/items/{index}")).cloned();
            match item {
                ResourceEntry::Invalid(wrong) => {
                    if let Some(error) = error(wrong) {
                        self.errors.entry(error).or_default().extend(place());
                    }
                }
                ResourceEntry::Object(body) => {
                    let (Some(own), Some(place)) = (Kind::of(body), place()) else { continue };
                    let is_own = |kind: &Kind| {
                        kind.name == own.name && (kind.group.is_none() || kind.group == own.group)
                    };
                    let managed = &shard.state.kinds;
                    if managed.keys().any(is_own) {
                        continue;
                    }
                    let managed = managed.keys().map(ToString::to_string).collect();
                    let namespace = shard.place("").cloned();
                    let entry = self.unmanaged.entry((place.clone(), own.name.clone()));
                    entry.or_insert(UnmanagedKind { place, kind: own.name, managed, namespace });
                }
                // These depend on values that are not in the data.
                ResourceEntry::Template(_) | ResourceEntry::Secret(_) | ResourceEntry::Route { .. } => {}
            }
        }
    }
}

fn error(InvalidEntry { subject: what, fault, cause }: &InvalidEntry) -> Option<ResourceTextError> {
    let of = |line: Option<usize>, problem: TextErrorKind, message: &str| {
        Some(ResourceTextError { resource: what.clone(), line, kind: problem, message: message.to_owned() })
    };
    match cause {
        InvalidCause::Template { line, message } => of(*line, TextErrorKind::NotRendered, message),
        InvalidCause::Output => of(None, TextErrorKind::OutputNotAnObject, &fault.text),
        InvalidCause::File { line } => of(*line, TextErrorKind::FileNotAnObject, &fault.text),
        InvalidCause::Other => None,
    }
}

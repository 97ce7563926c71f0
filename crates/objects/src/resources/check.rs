//! Validates the templates and files of namespaces before a run, from the data alone. Pure.
//!
//! Nothing is looked up: a template that needs a secret or another external value is not checked, since its
//! text may depend on the value.

use std::collections::BTreeMap;

use qontract_client_kubernetes::Kind;
use qontract_runtime::{Data, Fault, SourceLocation};

use super::declare::declare;
use super::entry::{InvalidEntry, ResourceEntry};
use super::provider_group::ProviderGroup;
use crate::templates::entry_error::InvalidCause;

/// The provider groups whose entries refer to resources.
const GROUPS: [ProviderGroup; 3] = [ProviderGroup::Files, ProviderGroup::Routes, ProviderGroup::Rules];

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

/// All errors, each with the provenance of the entries that refer to the resource.
pub fn text_errors(data: &Data) -> Result<BTreeMap<ResourceTextError, Vec<SourceLocation>>, Fault> {
    let mut errors: BTreeMap<ResourceTextError, Vec<SourceLocation>> = BTreeMap::new();
    for providers in GROUPS {
        for shard in declare(providers, data)?.shards.values() {
            for (index, item) in shard.state.items.iter().enumerate() {
                let ResourceEntry::Invalid(wrong) = item else { continue };
                let Some(error) = error(wrong) else { continue };
                let place = shard.place(&format!("/items/{index}")).cloned();
                errors.entry(error).or_default().extend(place);
            }
        }
    }
    Ok(errors)
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

/// All objects whose kinds are not managed, each entry once.
pub fn unmanaged_kinds(data: &Data) -> Result<Vec<UnmanagedKind>, Fault> {
    let mut unmanaged = BTreeMap::new();
    for providers in GROUPS {
        for shard in declare(providers, data)?.shards.values() {
            for (index, item) in shard.state.items.iter().enumerate() {
                let ResourceEntry::Object(body) = item else { continue };
                let Some(own) = Kind::of(body) else { continue };
                let is_own =
                    |kind: &Kind| kind.name == own.name && (kind.group.is_none() || kind.group == own.group);
                let managed = &shard.state.kinds;
                let Some(place) = shard.place(&format!("/items/{index}")) else { continue };
                if managed.keys().any(is_own) {
                    continue;
                }
                let managed = managed.keys().map(ToString::to_string).collect();
                let namespace = shard.place("").cloned();
                let one = UnmanagedKind { place: place.clone(), kind: own.name, managed, namespace };
                unmanaged.entry((one.place.clone(), one.kind.clone())).or_insert(one);
            }
        }
    }
    Ok(unmanaged.into_values().collect())
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

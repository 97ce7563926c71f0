//! Validates the templates and files of namespaces before a run, from the data alone. Pure.
//!
//! Nothing is looked up: a template that needs a secret or another external value is not checked, since its
//! text may depend on the value.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::{Cluster, Kind};
use qontract_client_secrets::SecretFields;
use qontract_inventory::DesiredBody;
use qontract_runtime::state::Shard;
use qontract_runtime::{Data, Fault, SourceLocation};
use serde_json::Value;

use super::declare::declare;
use super::entry::{DeclaredResources, InvalidEntry, ResourceEntry, SecretAddress};
use super::provider_group::ProviderGroup;
use super::secret;
use crate::Declared;
use crate::templates::entry_error::InvalidCause;

/// All provider groups.
const GROUPS: [ProviderGroup; 4] =
    [ProviderGroup::Files, ProviderGroup::Secrets, ProviderGroup::Routes, ProviderGroup::Rules];

/// The declared resources of all namespaces, for validation.
pub struct DeclaredEntries(Vec<Declared<DeclaredResources>>);

impl DeclaredEntries {
    /// Declares the resources of all namespaces.
    pub fn of(data: &Data) -> Result<Self, Fault> {
        GROUPS.into_iter().map(|providers| declare(providers, data)).collect::<Result<_, _>>().map(Self)
    }

    /// The shards of all provider groups.
    fn shards(&self) -> impl Iterator<Item = &Shard<Cluster, DeclaredResources>> {
        self.0.iter().flat_map(|declared| declared.shards.values())
    }

    /// All errors in resources, each with the provenance of the entries that refer to the resource.
    pub fn text_errors(&self) -> BTreeMap<ResourceTextError, Vec<SourceLocation>> {
        let mut errors: BTreeMap<ResourceTextError, Vec<SourceLocation>> = BTreeMap::new();
        for shard in self.shards() {
            for (index, item) in shard.state.items.iter().enumerate() {
                let ResourceEntry::Invalid(wrong) = item else { continue };
                let Some(error) = error(wrong) else { continue };
                let place = shard.place(&format!("/items/{index}")).cloned();
                errors.entry(error).or_default().extend(place);
            }
        }
        errors
    }

    /// All objects whose kinds are not managed, each entry once.
    pub fn unmanaged_kinds(&self) -> Vec<UnmanagedKind> {
        let mut unmanaged = BTreeMap::new();
        for shard in self.shards() {
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
        unmanaged.into_values().collect()
    }

    /// All errors in objects, each entry once, as far as the data alone shows: a template that needs an external
    /// value is not checked.
    pub fn object_errors(&self) -> BTreeSet<ObjectError> {
        let mut errors = BTreeSet::new();
        for shard in self.shards() {
            let mut first: BTreeMap<(Kind, String), &SourceLocation> = BTreeMap::new();
            for (index, item) in shard.state.items.iter().enumerate() {
                let Some(place) = shard.place(&format!("/items/{index}")) else { continue };
                let mut report = |kind| errors.insert(ObjectError { place: place.clone(), kind });
                if let ResourceEntry::Secret(address) = item
                    && let Some(message) = name_error(address)
                {
                    report(ObjectErrorKind::Name(message));
                    continue;
                }
                let Some((kind, name)) = identity(item) else { continue };
                if let ResourceEntry::Object(body) = item {
                    for key in keys_without_text(body) {
                        let message = format!("`data.{key}` of {kind} `{name}` is not a string");
                        report(ObjectErrorKind::Value(message));
                    }
                }
                let object = format!("{kind} `{name}`");
                match first.entry((kind, name)) {
                    Entry::Vacant(entry) => drop(entry.insert(place)),
                    Entry::Occupied(entry) => {
                        let other = (*entry.get()).clone();
                        report(ObjectErrorKind::Duplicate { object, other });
                    }
                }
            }
        }
        errors
    }
}

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

/// An error in an object of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectError {
    /// The entry that declares the object.
    pub place: SourceLocation,
    /// The kind of error.
    pub kind: ObjectErrorKind,
}

/// Kinds of errors in an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectErrorKind {
    /// Another entry of the namespace declares the same object.
    Duplicate {
        /// Kind and name of the object.
        object: String,
        /// The other entry.
        other: SourceLocation,
    },
    /// Kubernetes does not accept its name; the message.
    Name(String),
    /// Kubernetes does not accept a value; the message.
    Value(String),
}

/// The kind and name of an object, as far as the data alone determines them.
fn identity(item: &ResourceEntry) -> Option<(Kind, String)> {
    match item {
        ResourceEntry::Object(body) | ResourceEntry::Route { body, .. } => {
            Some((Kind::of(body)?, body["metadata"]["name"].as_str()?.to_owned()))
        }
        ResourceEntry::Secret(address) => Some((Kind::named("Secret"), address.name.clone())),
        ResourceEntry::Template(_) | ResourceEntry::Invalid(_) => None,
    }
}

/// The error of a Secret whose name Kubernetes does not accept.
fn name_error(address: &SecretAddress) -> Option<String> {
    let body = secret::kubernetes_secret(address, &SecretFields::new()).ok()?;
    DesiredBody::new(body).err().map(|error| format!("Secret `{}`: {error}", address.name))
}

/// The keys of a ConfigMap whose values are not strings.
fn keys_without_text(body: &Value) -> Vec<&str> {
    let is_config_map = body["kind"] == "ConfigMap" && body["apiVersion"] == "v1";
    let data = body["data"].as_object().filter(|_| is_config_map);
    let wrong = data.into_iter().flatten().filter(|(_, value)| !value.is_string());
    wrong.map(|(key, _)| key.as_str()).collect()
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

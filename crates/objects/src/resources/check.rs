//! Validates the templates and files of namespaces before a run, from the data alone. Pure.
//!
//! Nothing is looked up. A template that needs a secret or another external value is not checked, because its
//! text may depend on the value.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::{Cluster, Kind};
use qontract_client_secrets::SecretFields;
use qontract_inventory::{DesiredBody, InvalidValue, invalid_values};
use qontract_runtime::state::Shard;
use qontract_runtime::{Data, Fault, SourceLocation};
use serde_json::Value;

use super::declare::declare;
use super::entry::{DeclaredResources, InvalidEntry, ResourceEntry, SecretAddress};
use super::provider_group::ProviderGroup;
use super::secret;
use crate::templates::entry_error::InvalidCause;

/// All provider groups.
const GROUPS: [ProviderGroup; 4] =
    [ProviderGroup::Files, ProviderGroup::Secrets, ProviderGroup::Routes, ProviderGroup::Rules];

/// The list of namespaces in the query.
const NAMESPACES: &str = "namespaces_v1";

/// Maximum number of namespaces in a batch.
const MAX_NAMESPACES: usize = 500;

/// A resource that does not produce an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceTextError {
    /// The path of the resource.
    pub resource: String,
    /// The line in the resource, counted from 1, if known.
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

/// The errors in the resources of namespaces that can be found from the data alone.
#[derive(Debug, Default)]
pub struct ResourceFindings {
    /// The errors, each with the provenance of the entries that refer to the resource.
    pub errors: BTreeMap<ResourceTextError, Vec<SourceLocation>>,
    /// The kinds that are not managed, by the entry that declares the object and by the name of the kind.
    pub unmanaged: BTreeMap<(SourceLocation, String), UnmanagedKind>,
    /// The errors in objects, each entry once.
    pub objects: BTreeSet<ObjectError>,
}

/// Checks the resources of the namespaces whose datafiles have these paths. The namespaces are declared in
/// batches, so that the rendered objects of all namespaces are never in memory at the same time.
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
        let mut first: BTreeMap<(Kind, String), SourceLocation> = BTreeMap::new();
        for (index, item) in shard.state.items.iter().enumerate() {
            let place = shard.place(&format!("/items/{index}")).cloned();
            if let ResourceEntry::Invalid(wrong) = item {
                if let Some(error) = error(wrong) {
                    self.errors.entry(error).or_default().extend(place);
                }
                continue;
            }
            let Some(place) = place else { continue };
            if let ResourceEntry::Object(body) = item {
                self.add_unmanaged_kind(shard, body, &place);
            }
            self.add_object_errors(item, place, &mut first);
        }
    }

    fn add_unmanaged_kind(
        &mut self,
        shard: &Shard<Cluster, DeclaredResources>,
        body: &Value,
        place: &SourceLocation,
    ) {
        let Some(own) = Kind::of(body) else { return };
        let is_own = |kind: &Kind| kind.name == own.name && (kind.group.is_none() || kind.group == own.group);
        let managed = &shard.state.kinds;
        if managed.keys().any(is_own) {
            return;
        }
        let managed = managed.keys().map(ToString::to_string).collect();
        let namespace = shard.place("").cloned();
        let entry = self.unmanaged.entry((place.clone(), own.name.clone()));
        entry.or_insert(UnmanagedKind { place: place.clone(), kind: own.name, managed, namespace });
    }

    /// Adds the errors of an object. `first` has the first entry of each object of the shard.
    fn add_object_errors(
        &mut self,
        item: &ResourceEntry,
        place: SourceLocation,
        first: &mut BTreeMap<(Kind, String), SourceLocation>,
    ) {
        let mut report = |kind| self.objects.insert(ObjectError { place: place.clone(), kind });
        if let ResourceEntry::Secret(address) = item
            && let Some(message) = name_error(address)
        {
            report(ObjectErrorKind::Name(message));
            return;
        }
        let Some((kind, name)) = identity(item) else { return };
        if let ResourceEntry::Object(body) = item {
            for InvalidValue { path, expected } in invalid_values(body) {
                report(ObjectErrorKind::Value(format!("`{path}` of {kind} `{name}` is not {expected}")));
            }
        }
        let object = format!("{kind} `{name}`");
        match first.entry((kind, name)) {
            Entry::Vacant(entry) => drop(entry.insert(place)),
            Entry::Occupied(entry) => {
                report(ObjectErrorKind::Duplicate { object, other: entry.get().clone() });
            }
        }
    }
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
    /// Kubernetes does not accept the name of the object. Holds the message.
    Name(String),
    /// Kubernetes does not accept a value of the object. Holds the message.
    Value(String),
}

/// The kind and name of an object, if the data alone determines them.
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

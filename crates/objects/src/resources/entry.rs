//! The declared state of a namespace: the managed kinds, and the objects, complete or with the inputs that a
//! later lookup needs.

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::Kind;
use qontract_runtime::{Fault, SecretLookup};
use serde::Serialize;
use serde_json::Value;

use crate::integration::DeclaredObject;
use crate::templates::deferred::{DeferredTemplate, secret_lookup};
use crate::templates::entry_error::InvalidCause;
use crate::templates::lookups::AwsAccount;

/// The declared resources of a namespace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeclaredResources {
    /// The managed kinds, as the data names them, each with the names to which it is restricted.
    pub kinds: BTreeMap<Kind, Option<BTreeSet<String>>>,
    /// The objects, in data order. The object at index 3 has its provenance under `/items/3`.
    pub items: Vec<ResourceEntry>,
}

/// One object: complete if the data alone determines it, otherwise with the inputs of a lookup.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceEntry {
    /// A complete object.
    Object(Value),
    /// A template that needs external lookups.
    Template(DeferredTemplate),
    /// A Secret, to be read from this address.
    Secret(SecretAddress),
    /// A Route, and the address of its certificate.
    Route {
        /// The object without its certificate.
        body: Value,
        /// The secret with the TLS fields.
        tls: SecretAddress,
    },
    /// An invalid entry, with the reason.
    Invalid(InvalidEntry),
}

impl ResourceEntry {
    /// The object, if its kind and name follow from the data alone.
    pub fn declared_object(&self) -> Option<DeclaredObject> {
        match self {
            ResourceEntry::Object(body) | ResourceEntry::Route { body, .. } => DeclaredObject::of(body),
            ResourceEntry::Secret(address) => {
                Some(DeclaredObject { kind: Kind::named("Secret"), name: address.name.clone() })
            }
            ResourceEntry::Template(template) => template.declared_object().and_then(DeclaredObject::of),
            ResourceEntry::Invalid(_) => None,
        }
    }

    /// The secrets that the data names for the entry.
    pub fn secret_lookups(&self) -> Vec<SecretLookup> {
        match self {
            ResourceEntry::Object(_) | ResourceEntry::Invalid(_) => Vec::new(),
            ResourceEntry::Secret(address) | ResourceEntry::Route { tls: address, .. } => {
                vec![address.lookup()]
            }
            ResourceEntry::Template(template) => {
                let own = template.source.lookups.iter().filter_map(secret_lookup);
                own.chain(template.source.accounts.values().map(AwsAccount::lookup)).collect()
            }
        }
    }
}

impl SecretAddress {
    /// The lookup of all fields of the secret.
    pub fn lookup(&self) -> SecretLookup {
        SecretLookup::all(&self.path, self.version.map(|version| version.to_string()))
    }
}

/// The address of a secret, and the object that is created from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretAddress {
    /// The path.
    pub path: String,
    /// The version.
    pub version: Option<i32>,
    /// The name of the object.
    pub name: String,
    /// The Secret type.
    pub r#type: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

/// An invalid entry.
#[derive(Clone, Debug)]
pub struct InvalidEntry {
    /// The path of the file or secret that the entry refers to.
    pub subject: String,
    /// The reason.
    pub fault: Fault,
    /// The cause, for validation before a run.
    pub cause: InvalidCause,
}

impl Serialize for InvalidEntry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}: {}", self.subject, self.fault.text))
    }
}

/// The entries of a namespace, which are its own and the shared entries, each with its JSON pointer into the
/// query result. `at` is the pointer of the namespace.
pub fn entries<L: IntoIterator>(
    at: &str,
    own: Option<L>,
    shared: impl IntoIterator<Item = L>,
) -> Vec<(String, L::Item)> {
    let own = own.map(|list| (format!("{at}/openshiftResources"), list));
    let shared = shared.into_iter().enumerate();
    let shared =
        shared.map(|(index, list)| (format!("{at}/sharedResources/{index}/openshiftResources"), list));
    let items = |(at, list): (String, L)| {
        list.into_iter().enumerate().map(move |(index, entry)| (format!("{at}/{index}"), entry))
    };
    own.into_iter().chain(shared).flat_map(items).collect()
}

#[cfg(test)]
mod tests {
    use super::entries;

    #[test]
    fn entries_are_listed_with_their_pointers() {
        let actual = entries("/n/0", Some(vec!["a", "b"]), [vec![], vec!["c"]]);
        let expect = [
            ("/n/0/openshiftResources/0", "a"),
            ("/n/0/openshiftResources/1", "b"),
            ("/n/0/sharedResources/1/openshiftResources/0", "c"),
        ];
        assert_eq!(actual, expect.map(|(at, entry)| (at.to_owned(), entry)));
        assert_eq!(entries("/n/0", None::<Vec<u8>>, []), []);
    }
}

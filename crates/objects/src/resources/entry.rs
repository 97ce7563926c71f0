//! The declared state of a namespace: its managed kinds, and its objects as far as the data alone determines
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use qontract_runtime::{Fault, SecretLookup};
use qontract_template::{Data, Dialect, LookupAnswer, TemplateLookup};
use serde::Serialize;
use serde_json::Value;

use crate::templates::lookups::AwsAccount;

/// The declared resources of a namespace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeclaredResources {
    /// The managed kinds, as the data names them, each with the names to which it is restricted.
    pub kinds: BTreeMap<String, Option<BTreeSet<String>>>,
    /// The objects, in data order. The one at index 3 has its provenance under `/items/3`.
    pub items: Vec<ResourceEntry>,
}

/// One object, as far as the data alone determines it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceEntry {
    /// A complete object.
    Object(Value),
    /// A template that needs external look-ups.
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

/// A template that needs external look-ups.
#[derive(Clone, Serialize)]
pub struct DeferredTemplate {
    /// Its path.
    pub path: String,
    /// Its source text.
    pub text: String,
    /// Its variables, and the results of its queries.
    pub inputs: String,
    /// The inputs for rendering it.
    #[serde(skip)]
    pub source: TemplateSource,
}

/// The inputs for rendering a template.
#[derive(Clone)]
pub struct TemplateSource {
    /// Its source text.
    pub text: String,
    /// Its template dialect.
    pub dialect: Dialect,
    /// Its variables.
    pub variables: Vec<(String, Data)>,
    /// Results of its queries, from declaring it. Rendering runs no other queries: the declared state would
    /// not reflect them.
    pub answers: BTreeMap<TemplateLookup, LookupAnswer>,
    /// The AWS accounts that it accesses.
    pub(crate) accounts: BTreeMap<String, AwsAccount>,
    /// The look-ups that do not depend on the values of secrets.
    pub lookups: BTreeSet<TemplateLookup>,
    /// The object that it renders to with addresses in place of external values, if it renders to one.
    pub declared: Option<Value>,
}

impl DeferredTemplate {
    /// The object that the data alone names. `None` if an external value that is not a secret may decide
    /// which object it is.
    pub fn declared_object(&self) -> Option<&Value> {
        let decides = |address: &TemplateLookup| {
            !address.is_secret() && !matches!(address, TemplateLookup::Query { .. })
        };
        if self.source.lookups.iter().any(decides) { None } else { self.source.declared.as_ref() }
    }
}

impl ResourceEntry {
    /// The secrets that the data names for it.
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

/// The secret look-up for an address; `None` if it is not the address of a secret.
pub fn secret_lookup(address: &TemplateLookup) -> Option<SecretLookup> {
    let TemplateLookup::Secret { path, key, version, .. } = address else { return None };
    Some(SecretLookup { path: path.clone(), field: Some(key.clone()), version: version.clone() })
}

impl SecretAddress {
    /// The look-up of all fields of the secret.
    pub fn lookup(&self) -> SecretLookup {
        SecretLookup::all(&self.path, self.version.map(|version| version.to_string()))
    }
}

impl fmt::Debug for DeferredTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The address of a secret, and the object that is created from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretAddress {
    /// Its path.
    pub path: String,
    /// Its version.
    pub version: Option<i32>,
    /// The name of the object.
    pub name: String,
    /// Its Secret type.
    pub r#type: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
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

/// The cause of an invalid entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidCause {
    /// The template cannot be rendered from the data.
    Template {
        /// The line in the template, counted from 1.
        line: Option<usize>,
        /// The error message.
        message: String,
    },
    /// The template does not render to an object.
    Output,
    /// The file is not an object.
    File {
        /// The line that is not YAML, counted from 1.
        line: Option<usize>,
    },
    /// Anything else, such as an error in the entry itself or an unsupported feature.
    Other,
}

/// The reason why an entry does not produce an object.
pub struct EntryError {
    /// The fault.
    pub fault: Box<Fault>,
    /// Its cause.
    pub cause: InvalidCause,
}

impl EntryError {
    /// A fault with its cause.
    pub fn new(fault: Fault, cause: InvalidCause) -> Self {
        Self { fault: Box::new(fault), cause }
    }
}

impl From<Fault> for EntryError {
    fn from(fault: Fault) -> Self {
        Self::new(fault, InvalidCause::Other)
    }
}

impl Serialize for InvalidEntry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}: {}", self.subject, self.fault.text))
    }
}

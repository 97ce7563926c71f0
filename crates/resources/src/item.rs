//! What is declared for a namespace: the kinds that are looked after, and the objects, as far as the data alone tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use qontract_runtime::Fault;
use qontract_template::{Address, Answer, Data, Dialect};
use serde::Serialize;
use serde_json::Value;

use crate::outside::Account;

/// What is declared for a namespace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Named {
    /// The kinds that are looked after, as data names them, with the names that may be looked after.
    pub kinds: BTreeMap<String, Option<BTreeSet<String>>>,
    /// The objects, in the order of the data. The place of the one at index 3 is that of `/items/3`.
    pub items: Vec<Item>,
}

/// One object, as far as the data alone tells it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Item {
    /// All of it.
    Object(Value),
    /// A template that looks outside.
    Template(Template),
    /// A secret, at its address.
    Secret(SecretAddress),
    /// A route, and where its certificate is.
    Route {
        /// The object without it.
        body: Value,
        /// The secret with the fields of TLS.
        tls: SecretAddress,
    },
    /// What cannot be meant, and why.
    Wrong(Wrong),
}

/// A template that looks outside.
#[derive(Clone, Serialize)]
pub struct Template {
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its variables, and what its queries were answered.
    pub inputs: String,
    /// What it is rendered from.
    #[serde(skip)]
    pub source: TemplateSource,
}

/// What a template is rendered from.
#[derive(Clone)]
pub struct TemplateSource {
    /// Its text.
    pub text: String,
    /// How its tags are written.
    pub dialect: Dialect,
    /// Its variables.
    pub variables: Vec<(String, Data)>,
    /// What its queries were answered when it was declared. It asks no others: the declared state would not know.
    pub answers: BTreeMap<Address, Answer>,
    /// The accounts that it looks into.
    pub(crate) accounts: BTreeMap<String, Account>,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Where a secret is, and what is made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretAddress {
    /// Its path.
    pub path: String,
    /// Its version.
    pub version: Option<i32>,
    /// The name of the object.
    pub name: String,
    /// Its type.
    pub r#type: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Why something cannot be meant.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What it is about: the path of a file, or of a secret.
    pub what: String,
    /// Why.
    pub fault: Fault,
}

impl Serialize for Wrong {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}: {}", self.what, self.fault.text))
    }
}

//! What is declared for a namespace: the kinds that are looked after, and the objects, as far as the data alone tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use qontract_runtime::{Fault, SecretLookup};
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
    /// What it looks up whatever the secrets are.
    pub asked: BTreeSet<Address>,
    /// The object that it renders to with addresses in place of what lies outside, if it renders to one.
    pub declared: Option<Value>,
}

impl Template {
    /// The object that the data alone names, unless something outside that is no secret may decide which one it is.
    pub fn known(&self) -> Option<&Value> {
        let decides = |address: &Address| !address.is_secret() && !matches!(address, Address::Query { .. });
        if self.source.asked.iter().any(decides) { None } else { self.source.declared.as_ref() }
    }
}

impl Item {
    /// The secrets that the data names for it.
    pub fn secret_lookups(&self) -> Vec<SecretLookup> {
        match self {
            Item::Object(_) | Item::Wrong(_) => Vec::new(),
            Item::Secret(address) | Item::Route { tls: address, .. } => vec![address.lookup()],
            Item::Template(template) => {
                let own = template.source.asked.iter().filter_map(lookup);
                own.chain(template.source.accounts.values().map(Account::lookup)).collect()
            }
        }
    }
}

/// The secret at an address, if it is one.
pub fn lookup(address: &Address) -> Option<SecretLookup> {
    let Address::Secret { path, key, version, .. } = address else { return None };
    Some(SecretLookup { path: path.clone(), field: Some(key.clone()), version: version.clone() })
}

impl SecretAddress {
    /// All fields of the secret.
    pub fn lookup(&self) -> SecretLookup {
        SecretLookup::all(&self.path, self.version.map(|version| version.to_string()))
    }
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
    /// What exactly, for who checks the data before a run.
    pub cause: WrongCause,
}

/// What is wrong with the text that an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongCause {
    /// The template cannot be rendered from the data.
    Template {
        /// The line in the template, counted from 1.
        line: Option<usize>,
        /// What is wrong there.
        message: String,
    },
    /// What the template renders to is not an object.
    Output,
    /// The file is not an object.
    File {
        /// The line that is not YAML, counted from 1.
        line: Option<usize>,
    },
    /// Something else: the entry itself, or something that is not supported.
    Other,
}

/// Why an entry comes to no object.
pub struct Refusal {
    /// Why.
    pub fault: Box<Fault>,
    /// What exactly.
    pub cause: WrongCause,
}

impl Refusal {
    /// A fault with its cause.
    pub fn new(fault: Fault, cause: WrongCause) -> Self {
        Self { fault: Box::new(fault), cause }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::new(fault, WrongCause::Other)
    }
}

impl Serialize for Wrong {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}: {}", self.what, self.fault.text))
    }
}

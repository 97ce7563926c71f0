//! Templates that need external lookups, in the form in which the declared state holds them: with all their
//! inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use qontract_runtime::SecretLookup;
use qontract_template::{Data, Dialect, LookupState, TemplateLookup};
use serde::Serialize;
use serde_json::Value;

use super::lookups::AwsAccount;

/// A template that needs external lookups.
#[derive(Clone, Serialize)]
pub struct DeferredTemplate {
    /// The path of the template.
    pub path: String,
    /// The source text of the template.
    pub text: String,
    /// The variables of the template, and the results of its queries.
    pub inputs: String,
    /// The inputs for rendering the template.
    #[serde(skip)]
    pub source: TemplateSource,
}

/// The inputs for rendering a template.
#[derive(Clone)]
pub struct TemplateSource {
    /// The source text of the template.
    pub text: String,
    /// The dialect of the template.
    pub dialect: Dialect,
    /// The variables of the template.
    pub variables: Vec<(String, Data)>,
    /// Results of the queries that were run when the template was declared. Rendering runs no other queries,
    /// because the declared state would not reflect them.
    pub answers: BTreeMap<TemplateLookup, LookupState>,
    /// The AWS accounts that the template accesses.
    pub(crate) accounts: BTreeMap<String, AwsAccount>,
    /// The lookups that do not depend on the values of secrets.
    pub lookups: BTreeSet<TemplateLookup>,
    /// The object to which the template renders with addresses in place of external values; `None` if the
    /// result is not an object.
    pub declared: Option<Value>,
}

impl DeferredTemplate {
    /// The object that the data alone names. `None` if an external value other than a secret may determine
    /// the identity of the object.
    pub fn declared_object(&self) -> Option<&Value> {
        let decides = |address: &TemplateLookup| {
            !address.is_secret() && !matches!(address, TemplateLookup::Query { .. })
        };
        if self.source.lookups.iter().any(decides) { None } else { self.source.declared.as_ref() }
    }
}

impl fmt::Debug for DeferredTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The secret lookup for an address; `None` if it is not the address of a secret.
pub fn secret_lookup(address: &TemplateLookup) -> Option<SecretLookup> {
    let TemplateLookup::Secret { path, key, version, .. } = address else { return None };
    Some(SecretLookup { path: path.clone(), field: Some(key.clone()), version: version.clone() })
}

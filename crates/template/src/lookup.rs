//! External lookups of a template. This crate only describes lookups; the caller makes them.

use std::collections::BTreeMap;
use std::fmt;

use crate::data::Data;

/// An external lookup that a template function names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TemplateLookup {
    /// `vault(path, key, version, allow_not_found)`: a field of a secret.
    Secret {
        /// The secret's path.
        path: String,
        /// The field.
        key: String,
        /// The version; `None` for the latest.
        version: Option<String>,
        /// Whether a missing secret yields `none` instead of a fault.
        allow_not_found: bool,
    },
    /// `github(repo, path, ref)`: the text of a file.
    GithubFile {
        /// `owner/name`.
        repo: String,
        /// The file's path.
        path: String,
        /// A branch, tag or commit.
        reference: String,
    },
    /// `query(path, **variables)`: the first field of the result of a GraphQL query. The resource with the
    /// query is itself a template, rendered leniently with the variables.
    Query {
        /// The resource's path.
        path: String,
        /// The variables, each as JSON.
        variables: BTreeMap<String, String>,
    },
    /// `url(url)`: whether the URL responds.
    Url {
        /// The URL.
        url: String,
    },
    /// `s3(account, bucket, path, region)`: the text of an object.
    S3Object {
        /// The account's name.
        account: String,
        /// The bucket.
        bucket: String,
        /// The object's key.
        path: String,
        /// The region, if it is not the default region of the account.
        region: Option<String>,
    },
    /// `s3_ls(account, bucket, path, region)`: the keys under a path.
    S3List {
        /// The account's name.
        account: String,
        /// The bucket.
        bucket: String,
        /// The path.
        path: String,
        /// The region, if it is not the default region of the account.
        region: Option<String>,
    },
    /// `yesterday()`: the day before today in UTC, as `2024-02-29`.
    Yesterday,
}

impl TemplateLookup {
    /// Whether the value is secret.
    pub fn is_secret(&self) -> bool {
        matches!(self, TemplateLookup::Secret { .. })
    }

    /// Whether the lookup sends a request to an external system other than the secret store.
    pub fn is_external(&self) -> bool {
        match self {
            TemplateLookup::Url { .. }
            | TemplateLookup::GithubFile { .. }
            | TemplateLookup::S3Object { .. }
            | TemplateLookup::S3List { .. } => true,
            TemplateLookup::Secret { .. } | TemplateLookup::Query { .. } | TemplateLookup::Yesterday => false,
        }
    }
}

/// The description that replaces the value in declared state.
impl fmt::Display for TemplateLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region =
            |region: &Option<String>| region.as_ref().map_or(String::new(), |region| format!(" in {region}"));
        match self {
            TemplateLookup::Secret { path, key, version, allow_not_found } => {
                write!(f, "vault({path}#{key}")?;
                if let Some(version) = version {
                    write!(f, "@{version}")?;
                }
                f.write_str(if *allow_not_found { "?)" } else { ")" })
            }
            TemplateLookup::GithubFile { repo, path, reference } => {
                write!(f, "github({repo}/{path}@{reference})")
            }
            TemplateLookup::Query { path, variables } => {
                write!(f, "query({path}")?;
                variables.iter().try_for_each(|(name, value)| write!(f, ", {name}={value}"))?;
                f.write_str(")")
            }
            TemplateLookup::Url { url } => write!(f, "url({url})"),
            TemplateLookup::S3Object { account, bucket, path, region: at } => {
                write!(f, "s3({account}/{bucket}/{path}{})", region(at))
            }
            TemplateLookup::S3List { account, bucket, path, region: at } => {
                write!(f, "s3_ls({account}/{bucket}/{path}{})", region(at))
            }
            TemplateLookup::Yesterday => f.write_str("yesterday()"),
        }
    }
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum LookupState {
    /// The lookup succeeded with this value.
    Ready(Data),
    /// The lookup was not made yet: rendering stops, and reports it as needed.
    Pending,
    /// The lookup failed.
    Failed(String),
}

/// Provides the results of lookups.
pub trait LookupSource {
    /// The result of the lookup `address`.
    fn answer(&self, address: &TemplateLookup) -> LookupState;

    /// Whether lookups of secrets return the values of the secrets. If not, rendered text is not sensitive,
    /// and faults are reported in full.
    fn reveals_secrets(&self) -> bool {
        true
    }
}

/// The results of lookups that were made before.
impl LookupSource for BTreeMap<TemplateLookup, LookupState> {
    fn answer(&self, address: &TemplateLookup) -> LookupState {
        self.get(address).cloned().unwrap_or(LookupState::Pending)
    }
}

/// Lookups in declared state: each is replaced by its description, and nothing external is read. The inner
/// source resolves queries, because they read only the data.
#[derive(Debug)]
pub struct DeclaredLookups<Q>(pub Q);

impl<Q: LookupSource> LookupSource for DeclaredLookups<Q> {
    fn answer(&self, address: &TemplateLookup) -> LookupState {
        match address {
            TemplateLookup::Query { .. } => self.0.answer(address),
            TemplateLookup::Secret { .. }
            | TemplateLookup::GithubFile { .. }
            | TemplateLookup::Url { .. }
            | TemplateLookup::S3Object { .. }
            | TemplateLookup::S3List { .. }
            | TemplateLookup::Yesterday => LookupState::Ready(Data::Text(address.to_string())),
        }
    }

    fn reveals_secrets(&self) -> bool {
        false
    }
}

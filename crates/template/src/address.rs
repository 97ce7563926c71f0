//! What lies outside of a template: named here, looked up by whoever renders.

use std::collections::BTreeMap;
use std::fmt;

use crate::data::Data;

/// The address of something outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// `vault(path, key, version, allow_not_found)`: a field of a secret.
    Secret {
        /// The secret's path.
        path: String,
        /// The field.
        key: String,
        /// The version, if not the latest.
        version: Option<String>,
        /// Whether a secret that is not there is `none`, not a fault.
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
    /// `query(path, **variables)`: the first field of the answer to a query that a resource holds. The resource is itself a
    /// template, rendered leniently with the variables.
    Query {
        /// The resource's path.
        path: String,
        /// The variables, each as JSON.
        variables: BTreeMap<String, String>,
    },
    /// `url(address)`: whether the address answers.
    Url {
        /// The address.
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
        /// The region, if not the account's.
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
        /// The region, if not the account's.
        region: Option<String>,
    },
    /// `yesterday()`: the day before today in UTC, as `2024-02-29`.
    Yesterday,
}

impl Address {
    /// Whether what lies there is secret.
    pub fn is_secret(&self) -> bool {
        matches!(self, Address::Secret { .. })
    }

    /// Whether a look-up sends a request to a system outside that is not the store of secrets.
    pub fn is_outward(&self) -> bool {
        match self {
            Address::Url { .. }
            | Address::GithubFile { .. }
            | Address::S3Object { .. }
            | Address::S3List { .. } => true,
            Address::Secret { .. } | Address::Query { .. } | Address::Yesterday => false,
        }
    }
}

/// The form that stands for the value in declared state.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region =
            |region: &Option<String>| region.as_ref().map_or(String::new(), |region| format!(" in {region}"));
        match self {
            Address::Secret { path, key, version, allow_not_found } => {
                write!(f, "vault({path}#{key}")?;
                if let Some(version) = version {
                    write!(f, "@{version}")?;
                }
                f.write_str(if *allow_not_found { "?)" } else { ")" })
            }
            Address::GithubFile { repo, path, reference } => write!(f, "github({repo}/{path}@{reference})"),
            Address::Query { path, variables } => {
                write!(f, "query({path}")?;
                variables.iter().try_for_each(|(name, value)| write!(f, ", {name}={value}"))?;
                f.write_str(")")
            }
            Address::Url { url } => write!(f, "url({url})"),
            Address::S3Object { account, bucket, path, region: at } => {
                write!(f, "s3({account}/{bucket}/{path}{})", region(at))
            }
            Address::S3List { account, bucket, path, region: at } => {
                write!(f, "s3_ls({account}/{bucket}/{path}{})", region(at))
            }
            Address::Yesterday => f.write_str("yesterday()"),
        }
    }
}

/// What is known about an address.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It was looked up, and this is there.
    Known(Data),
    /// It was not looked up yet: the rendering stops, and asks for it.
    Unknown,
    /// It was looked up, and it failed.
    Failed(String),
}

/// Who answers for what lies outside.
pub trait Lookups {
    /// What is known about `address`.
    fn answer(&self, address: &Address) -> Answer;

    /// Whether the answers about secrets are their values. If they are not, nothing that is rendered is sensitive, and faults
    /// are reported in full.
    fn reveals_secrets(&self) -> bool {
        true
    }
}

/// Look-ups that were made before.
impl Lookups for BTreeMap<Address, Answer> {
    fn answer(&self, address: &Address) -> Answer {
        self.get(address).cloned().unwrap_or(Answer::Unknown)
    }
}

/// In declared state each look-up is its own address: nothing outside is read. A query reads the data alone, so that
/// `queries` answers it.
#[derive(Debug)]
pub struct Declared<Q>(pub Q);

impl<Q: Lookups> Lookups for Declared<Q> {
    fn answer(&self, address: &Address) -> Answer {
        match address {
            Address::Query { .. } => self.0.answer(address),
            Address::Secret { .. }
            | Address::GithubFile { .. }
            | Address::Url { .. }
            | Address::S3Object { .. }
            | Address::S3List { .. }
            | Address::Yesterday => Answer::Known(Data::Text(address.to_string())),
        }
    }

    fn reveals_secrets(&self) -> bool {
        false
    }
}

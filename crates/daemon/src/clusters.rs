//! The clusters, namespaces and AWS accounts of the data.

use qontract_client_kubernetes::{Cluster, TokenRef};
use qontract_diagnostics::suggest::nearest;
use qontract_runtime::{BundleReader, DataError, QueryRequest};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct ClustersAnswer {
    clusters_v1: Option<Vec<ClusterRow>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterRow {
    name: String,
    server_url: String,
    automation_token: Option<TokenRow>,
}

#[derive(Deserialize)]
struct TokenRow {
    path: String,
    field: String,
    version: Option<i32>,
}

#[derive(Deserialize)]
struct NamespacesAnswer {
    namespaces_v1: Option<Vec<NamespaceRow>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamespaceRow {
    name: String,
    cluster: ClusterNameRow,
    managed_resource_types: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ClusterNameRow {
    name: String,
}

#[derive(Deserialize)]
struct AccountsAnswer {
    awsaccounts_v1: Option<Vec<AccountRow>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccountRow {
    name: String,
    resources_default_region: String,
    automation_token: TokenRow,
}

/// An AWS account of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataAccount {
    /// The name of the account.
    pub name: String,
    /// The default region of the account.
    pub region: String,
    /// The path of the secret that contains the account's access key.
    pub secret: String,
    /// The version of that secret.
    pub version: Option<u64>,
}

/// A namespace of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataNamespace {
    /// The cluster that contains the namespace.
    pub cluster: String,
    /// The name of the namespace.
    pub name: String,
    /// The kinds that `openshift-resources` manages in the namespace.
    pub kinds: Vec<String>,
}

/// The clusters of the data, by name.
pub fn all(source: &dyn BundleReader) -> Result<Vec<Cluster>, DataError> {
    let text = "{ clusters_v1 { name serverUrl automationToken { path field version } } }";
    let rows = query::<ClustersAnswer>(source, text)?.clusters_v1.unwrap_or_default();
    let token = |TokenRow { path, field, version }| TokenRef { path, field, version };
    let cluster = |row: ClusterRow| Cluster {
        name: row.name,
        server: row.server_url,
        token: row.automation_token.map(token),
    };
    let mut clusters: Vec<Cluster> = rows.into_iter().map(cluster).collect();
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(clusters)
}

/// The namespaces of the data, by cluster and name.
pub fn namespaces(source: &dyn BundleReader) -> Result<Vec<DataNamespace>, DataError> {
    let text = "{ namespaces_v1 { name cluster { name } managedResourceTypes } }";
    let rows = query::<NamespacesAnswer>(source, text)?.namespaces_v1.unwrap_or_default();
    let namespace = |row: NamespaceRow| DataNamespace {
        cluster: row.cluster.name,
        name: row.name,
        kinds: row.managed_resource_types.unwrap_or_default(),
    };
    let mut namespaces: Vec<DataNamespace> = rows.into_iter().map(namespace).collect();
    namespaces.sort_by(|a, b| (&a.cluster, &a.name).cmp(&(&b.cluster, &b.name)));
    Ok(namespaces)
}

/// The AWS accounts of the data.
pub fn accounts(source: &dyn BundleReader) -> Result<Vec<DataAccount>, DataError> {
    let text = "{ awsaccounts_v1 { name resourcesDefaultRegion automationToken { path field version } } }";
    let rows = query::<AccountsAnswer>(source, text)?.awsaccounts_v1.unwrap_or_default();
    let account = |row: AccountRow| DataAccount {
        name: row.name,
        region: row.resources_default_region,
        secret: row.automation_token.path,
        version: row.automation_token.version.map(|version| version.unsigned_abs().into()),
    };
    Ok(rows.into_iter().map(account).collect())
}

/// The names of the clusters of the data; empty if its GraphQL types have no clusters.
pub fn names(source: &dyn BundleReader) -> Vec<String> {
    all(source).unwrap_or_default().into_iter().map(|cluster| cluster.name).collect()
}

/// Warnings about configured clusters that are not in the data.
pub fn unknown_cluster_warnings<'n>(
    configured: impl IntoIterator<Item = &'n String>,
    names: &[String],
) -> Vec<String> {
    let unknown = configured.into_iter().filter(|name| !names.contains(name));
    let text = |name: &String| {
        let what = format!("`[kubernetes.clusters.{name}]`: the data has no cluster `{name}`");
        match nearest(name, names.iter().map(String::as_str)) {
            Some(meant) => format!("{what}; did you mean `{meant}`?"),
            None => what,
        }
    };
    unknown.map(text).collect()
}

/// Maximum number of listed names; the rest is only counted.
const MAX_LISTED: usize = 8;

/// `clusters a, b`; empty without clusters.
pub fn format_list(names: &[String]) -> String {
    let first = names.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match (names.len(), names.len().saturating_sub(MAX_LISTED)) {
        (0, _) => String::new(),
        (1, _) => format!("cluster {first}"),
        (_, 0) => format!("clusters {first}"),
        (_, more) => format!("clusters {first} and {more} more"),
    }
}

fn query<T: DeserializeOwned>(source: &dyn BundleReader, text: &str) -> Result<T, DataError> {
    let answered = source.answer(QueryRequest { text, ..QueryRequest::default() })?;
    T::deserialize(answered.data)
        .map_err(|error| DataError::Refused { query: format!("`{text}`"), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("c{number}")).collect()
    }

    #[test]
    fn clusters_are_listed_up_to_a_limit() {
        assert_eq!(format_list(&names(0)), "");
        assert_eq!(format_list(&names(1)), "cluster c1");
        assert_eq!(format_list(&names(8)), "clusters c1, c2, c3, c4, c5, c6, c7, c8");
        assert_eq!(format_list(&names(10)), "clusters c1, c2, c3, c4, c5, c6, c7, c8 and 2 more");
    }

    #[test]
    fn a_cluster_that_the_data_does_not_have_is_reported_with_the_nearest() {
        let names = ["cliffs-stage".to_owned()];
        let configured = ["cliffs-stage", "clifs-stage", "harbor"].map(str::to_owned);
        assert_eq!(
            unknown_cluster_warnings(&configured, &names),
            [
                "`[kubernetes.clusters.clifs-stage]`: the data has no cluster `clifs-stage`; did you mean `cliffs-stage`?",
                "`[kubernetes.clusters.harbor]`: the data has no cluster `harbor`",
            ]
        );
    }
}

//! The variables of templates: those of an entry, in data order, and the entry itself with its namespace.

use qontract_template::Data;
use serde_json::Value;

use super::query::Namespace;
use crate::fragments::TemplateNamespace;
use crate::templates::variables::json;

/// The variables of an entry: its own, and `resource`, which is the entry with its namespace. An error if
/// `variables` is not a map.
pub fn entry_variables(
    own: Option<&str>,
    entry: &[(&str, Data)],
    namespace: &Namespace,
) -> Result<Vec<(String, Data)>, String> {
    let mut variables = match json(own)? {
        Data::Map(entries) => entries,
        Data::Null => Vec::new(),
        Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::Text(_) | Data::List(_) => {
            return Err("`variables` is not a map".to_owned());
        }
    };
    let mut resource: Vec<(String, Data)> =
        entry.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    resource.push(("namespace".to_owned(), namespace_value(namespace)?));
    variables.retain(|(name, _)| name != "resource");
    variables.push(("resource".to_owned(), Data::Map(resource)));
    Ok(variables)
}

/// The variable `namespace` of templates.
fn namespace_value(namespace: &Namespace) -> Result<Data, String> {
    let TemplateNamespace { path, name, labels, description, cluster_admin, app, environment, .. } =
        &namespace.template_namespace;
    let cluster = &namespace.cluster.template_cluster;
    let map = |entries: Vec<(&str, Data)>| {
        Data::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let optional = |text: &Option<String>| text.as_deref().map_or(Data::Null, Data::text);
    let truth = |value: Option<bool>| value.map_or(Data::Null, Data::Bool);
    Ok(map(vec![
        ("path", Data::text(path)),
        ("name", Data::text(name)),
        ("labels", optional(labels)),
        ("description", Data::text(description)),
        ("clusterAdmin", truth(*cluster_admin)),
        ("managedResourceTypes", Data::from(&Value::from(namespace.managed_resource_types.clone()))),
        (
            "app",
            map(vec![
                ("path", Data::text(&app.path)),
                ("name", Data::text(&app.name)),
                ("labels", optional(&app.labels)),
            ]),
        ),
        (
            "environment",
            map(vec![
                ("name", Data::text(&environment.name)),
                ("labels", Data::text(&environment.labels)),
                ("parameters", json(environment.parameters.as_deref())?),
                ("servicePhase", Data::text(&environment.service_phase)),
            ]),
        ),
        (
            "cluster",
            map(vec![
                ("path", Data::text(&cluster.path)),
                ("name", Data::text(&cluster.name)),
                ("labels", optional(&cluster.labels)),
                ("serverUrl", Data::text(&cluster.server_url)),
                ("consoleUrl", Data::text(&cluster.console_url)),
                ("prometheusUrl", Data::text(&cluster.prometheus_url)),
                ("alertmanagerUrl", optional(&cluster.alertmanager_url)),
                ("elbFQDN", Data::text(&cluster.elb_fqdn)),
                ("internal", truth(cluster.internal)),
            ]),
        ),
    ]))
}

//! Declares the objects of namespaces from the data.

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::Kind;
use qontract_runtime::{Data as Source, Fault, ResourceBatch};
use qontract_template::{Data, Dialect, entry_dialect as dialect};

use super::entry::{DeclaredResources, InvalidEntry, ResourceEntry, SecretAddress, entries};
use super::provider_group::ProviderGroup;
use super::query::{
    self, Namespace, NamespaceOpenshiftResource as Entry, NamespaceOpenshiftResourcePrometheusRule,
    NamespaceOpenshiftResourceResource, NamespaceOpenshiftResourceResourceTemplate,
    NamespaceOpenshiftResourceRoute, NamespaceOpenshiftResourceVaultSecret, Resource,
};
use super::{rule, variables};
use crate::Declared;
use crate::fragments::{ClusterAccess, NamespaceTarget};
use crate::namespaces::{LocatedNamespace, LocatedState, ShardBuilder};
use crate::templates::deferred::TemplateSource;
use crate::templates::entry_error::{EntryError, InvalidCause};
use crate::templates::render::Rendering;
use crate::templates::{parse, render};

/// Declares the namespaces with the objects that an integration manages there.
pub fn declare(providers: ProviderGroup, data: &Source) -> Result<Declared<DeclaredResources>, Fault> {
    let answer = data.query::<query::Resources>()?;
    let settings = answer.data.app_interface_settings_v1.unwrap_or_default();
    let repository = settings.into_iter().next().map(|settings| settings.repo_url);
    let namespaces = answer.data.namespaces_v1.unwrap_or_default();
    let texts =
        data.resources(namespaces.iter().flat_map(|namespace| paths(providers, namespace)).collect())?;
    let mut shards = ShardBuilder::new(providers.name());
    for (index, mut namespace) in namespaces.into_iter().enumerate() {
        let pointer = format!("/namespaces_v1/{index}");
        let shared = namespace.shared_resources.take().into_iter().flatten();
        let shared = shared.map(|shared| shared.openshift_resources);
        let entries = entries(&pointer, namespace.openshift_resources.take(), shared);
        let is_managed = namespace.managed_resource_types.as_ref().is_some_and(|types| !types.is_empty());
        if !is_managed && entries.is_empty() {
            continue;
        }
        let located = LocatedNamespace::new(target(&namespace), &answer.places, &pointer);
        // The objects of this namespace are removed together with the namespace.
        if located.target.is_marked_for_deletion() {
            shards.skip_deleted(located);
            continue;
        }
        let (mut items, mut places) = (Vec::new(), BTreeMap::new());
        let types = located.place.as_ref().map(|place| place.below("/managedResourceTypes"));
        places.extend(types.map(|place| ("/kinds".to_owned(), place)));
        for (at, entry) in entries {
            let repository = repository.as_deref();
            let work = EntryContext { providers, data, texts: &texts, repository, namespace: &namespace };
            let Some(item) = work.item(entry) else { continue };
            if let Some(place) = answer.places.of(&at) {
                places.insert(format!("/items/{}", items.len()), place);
            }
            items.push(item);
        }
        let state = kinds(providers, &namespace)
            .map(|kinds| LocatedState { state: DeclaredResources { kinds, items }, places });
        shards.add(located, state.map_err(Fault::author));
    }
    Ok(shards.finish())
}

/// Converts a namespace of the query result.
fn target(namespace: &Namespace) -> NamespaceTarget {
    let (own, cluster) = (&namespace.template_namespace, &namespace.cluster);
    NamespaceTarget {
        name: own.name.clone(),
        delete: own.delete,
        managed_by_external: namespace.managed_by_external,
        cluster_admin: own.cluster_admin,
        cluster: ClusterAccess {
            name: cluster.template_cluster.name.clone(),
            server_url: cluster.template_cluster.server_url.clone(),
            internal: cluster.template_cluster.internal,
            automation_token: cluster.automation_token.clone(),
            cluster_admin_automation_token: cluster.cluster_admin_automation_token.clone(),
            disabled_integrations: cluster.disabled_integrations.clone(),
        },
    }
}

/// Paths of the resources that are read for a namespace.
fn paths(providers: ProviderGroup, namespace: &Namespace) -> Vec<String> {
    if namespace.template_namespace.delete == Some(true) {
        return Vec::new();
    }
    let shared = namespace.shared_resources.iter().flatten().map(|shared| &shared.openshift_resources);
    let entries = namespace.openshift_resources.iter().chain(shared).flatten();
    let resources = entries.filter_map(|entry| match (providers, entry) {
        (ProviderGroup::Files, Entry::Resource(entry)) => entry.path.as_ref(),
        (ProviderGroup::Files, Entry::ResourceTemplate(entry)) => entry.path.as_ref(),
        (ProviderGroup::Routes, Entry::Route(entry)) => entry.path.as_ref(),
        (ProviderGroup::Rules, Entry::PrometheusRule(entry)) => entry.path.as_ref(),
        _ => None,
    });
    resources.map(|resource| resource.path.clone()).collect()
}

/// The kinds that are managed in a namespace, each with the names to which it is restricted.
fn kinds(
    providers: ProviderGroup,
    namespace: &Namespace,
) -> Result<BTreeMap<Kind, Option<BTreeSet<String>>>, String> {
    let overrides: BTreeMap<&str, &str> = namespace
        .managed_resource_type_overrides
        .iter()
        .flatten()
        .filter_map(|one| Some((one.resource.as_deref()?, one.r#override.as_deref()?)))
        .collect();
    let parse = |kind: &str| kind.parse::<Kind>().map_err(|_| format!("`{kind}` is not a valid kind"));
    let mut kinds: BTreeMap<Kind, Option<BTreeSet<String>>> = BTreeMap::new();
    let managed = namespace.managed_resource_types.iter().flatten().map(String::as_str);
    for kind in managed.filter(|_| providers == ProviderGroup::Files).chain(providers.kinds().iter().copied())
    {
        kinds.insert(parse(overrides.get(kind).copied().unwrap_or(kind))?, None);
    }
    for names in namespace.managed_resource_names.iter().flatten() {
        let kind = overrides.get(names.resource.as_str()).copied().unwrap_or(&names.resource);
        let named = parse(kind)?;
        let mut is_managed = false;
        for (managed, listed) in &mut kinds {
            if is_same(managed, &named) {
                listed.get_or_insert_default().extend(names.resource_names.iter().cloned());
                is_managed = true;
            }
        }
        if !is_managed && providers == ProviderGroup::Files {
            return Err(format!(
                "`managedResourceNames` names {kind}, which is not in `managedResourceTypes`"
            ));
        }
    }
    Ok(kinds)
}

/// Whether two names denote the same kind; a missing group matches any group.
fn is_same(one: &Kind, other: &Kind) -> bool {
    one.name == other.name && (one.group.is_none() || other.group.is_none() || one.group == other.group)
}

/// A resource file that was read.
struct ResourceFile {
    path: String,
    content: String,
}

impl ResourceFile {
    /// Parses the object in the file.
    fn object(&self) -> Result<serde_json::Value, EntryError> {
        let Self { path, content } = self;
        parse::object(path, content, false).map_err(|fault| {
            let cause = InvalidCause::File { line: parse::error_line(content) };
            EntryError::new(fault, cause)
        })
    }
}

/// The context in which the entries of one namespace are declared.
struct EntryContext<'d> {
    providers: ProviderGroup,
    data: &'d Source,
    texts: &'d ResourceBatch,
    repository: Option<&'d str>,
    namespace: &'d Namespace,
}

impl EntryContext<'_> {
    /// Declares an entry, if this integration handles its provider.
    fn item(&self, entry: Entry) -> Option<ResourceEntry> {
        let (what, made) = match (self.providers, entry) {
            (ProviderGroup::Files, Entry::Resource(entry)) => (path(entry.path.as_ref()), self.file(entry)),
            (ProviderGroup::Files, Entry::ResourceTemplate(entry)) => {
                (path(entry.path.as_ref()), self.template(entry))
            }
            (ProviderGroup::Secrets, Entry::VaultSecret(entry)) => {
                (entry.secret.clone(), secret(entry).map_err(EntryError::from))
            }
            (ProviderGroup::Routes, Entry::Route(entry)) => (path(entry.path.as_ref()), self.route(entry)),
            (ProviderGroup::Rules, Entry::PrometheusRule(entry)) => {
                (path(entry.path.as_ref()), self.rule(entry))
            }
            // Only the integration that handles files reports this error.
            (ProviderGroup::Files, Entry::Other) => {
                let text = "its `provider` is not supported: the RHCS certificate service has no client yet";
                ("openshiftResources".to_owned(), Err(Fault::author(text).into()))
            }
            (_, _) => return None,
        };
        Some(made.unwrap_or_else(|EntryError { fault, cause }| {
            ResourceEntry::Invalid(InvalidEntry { subject: what, fault: *fault, cause })
        }))
    }

    /// Reads a resource. An integration reads only the resources that it uses.
    fn text(&self, resource: Option<Resource>) -> Result<ResourceFile, Fault> {
        let path = resource.ok_or_else(|| Fault::author("the resource that it names does not exist"))?.path;
        let content = self.texts.get(&path)?;
        let content =
            content.ok_or_else(|| Fault::author(format!("the resource `{path}` does not exist")))?;
        Ok(ResourceFile { path, content })
    }

    fn route(&self, entry: NamespaceOpenshiftResourceRoute) -> Result<ResourceEntry, EntryError> {
        let body = self.text(entry.path)?.object()?;
        Ok(match entry.vault_tls_secret_path {
            None => ResourceEntry::Object(body),
            Some(path) => {
                let tls = SecretAddress {
                    path,
                    version: entry.vault_tls_secret_version,
                    ..SecretAddress::default()
                };
                ResourceEntry::Route { body, tls }
            }
        })
    }

    fn file(&self, entry: NamespaceOpenshiftResourceResource) -> Result<ResourceEntry, EntryError> {
        reject_alertmanager_check(entry.validate_alertmanager_config)?;
        let file = self.text(entry.path)?;
        let body = file.object()?;
        if entry.validate_json == Some(true) {
            parse::check_json_values(&file.path, &body)
                .map_err(|fault| EntryError::new(fault, InvalidCause::File { line: None }))?;
        }
        Ok(ResourceEntry::Object(body))
    }

    fn template(
        &self,
        entry: NamespaceOpenshiftResourceResourceTemplate,
    ) -> Result<ResourceEntry, EntryError> {
        reject_alertmanager_check(entry.validate_alertmanager_config)?;
        let dialect = dialect(&entry.provider, entry.r#type.as_deref()).map_err(Fault::author)?;
        let resource = self.text(entry.path)?;
        let about = [("provider", Data::text(entry.provider)), ("path", Data::text(&resource.path))];
        self.render(resource, dialect, entry.variables.as_deref(), &about)
    }

    fn rule(&self, entry: NamespaceOpenshiftResourcePrometheusRule) -> Result<ResourceEntry, EntryError> {
        let resource = self.text(entry.path)?;
        let path = resource.path.clone();
        let dialect = dialect(&entry.provider, entry.r#type.as_deref()).map_err(Fault::author)?;
        let about = [("provider", Data::text(entry.provider)), ("path", Data::text(&path))];
        match self.render(resource, dialect, entry.variables.as_deref(), &about)? {
            ResourceEntry::Object(body) => {
                Ok(ResourceEntry::Object(rule::with_source_urls(body, self.repository, &path)))
            }
            _ => Err(Fault::author(format!(
                "`{path}` makes external lookups, which are not allowed in a rule"
            ))
            .into()),
        }
    }

    /// The object in a resource; a resource with a dialect is rendered as a template first.
    fn render(
        &self,
        file: ResourceFile,
        dialect: Option<Dialect>,
        own: Option<&str>,
        about: &[(&str, Data)],
    ) -> Result<ResourceEntry, EntryError> {
        let Some(dialect) = dialect else {
            return Ok(ResourceEntry::Object(file.object()?));
        };
        let ResourceFile { path, content } = file;
        let variables = variables::entry_variables(own, about, self.namespace).map_err(Fault::author)?;
        let source = TemplateSource {
            text: content,
            dialect,
            variables,
            answers: BTreeMap::new(),
            accounts: BTreeMap::new(),
            lookups: BTreeSet::new(),
            declared: None,
        };
        Ok(match render::render_declared(&path, source, self.data)? {
            Rendering::Text(text) => ResourceEntry::Object(
                parse::object(&path, &text, false)
                    .map_err(|fault| EntryError::new(fault, InvalidCause::Output))?,
            ),
            Rendering::Deferred(template) => ResourceEntry::Template(*template),
        })
    }
}

fn secret(entry: NamespaceOpenshiftResourceVaultSecret) -> Result<ResourceEntry, Fault> {
    reject_alertmanager_check(entry.validate_alertmanager_config)?;
    let last = entry.secret.rsplit('/').next().unwrap_or_default().to_owned();
    let texts = |what: &str, json: Option<&str>| {
        let map: Result<Option<BTreeMap<String, String>>, _> = serde_json::from_str(json.unwrap_or("null"));
        map.map(Option::unwrap_or_default)
            .map_err(|_| Fault::author(format!("`{what}` is not a map of strings")))
    };
    Ok(ResourceEntry::Secret(SecretAddress {
        name: entry.name.unwrap_or(last),
        version: Some(entry.version),
        r#type: entry.r#type.unwrap_or_else(|| "Opaque".to_owned()),
        labels: texts("labels", entry.labels.as_deref())?,
        annotations: texts("annotations", entry.annotations.as_deref())?,
        path: entry.secret,
    }))
}

fn path(resource: Option<&Resource>) -> String {
    resource.map_or_else(String::new, |resource| resource.path.clone())
}

/// Rejects an entry that requests a check that is not supported.
fn reject_alertmanager_check(is_requested: Option<bool>) -> Result<(), Fault> {
    match is_requested {
        Some(true) => {
            Err(Fault::author("`validate_alertmanager_config` is not supported: it needs `amtool`")
                .hint("remove it, and run `amtool` where the configuration is written"))
        }
        Some(false) | None => Ok(()),
    }
}

//! What the data says of the objects of namespaces.

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::Kind;
use qontract_objects::{Declared, Ground, Grounded as _, Grounds, reads_namespaces};
use qontract_runtime::{Data as Source, Fault, ResourceBatch};
use qontract_template::{Data, Dialect, entry_dialect as dialect};

use crate::family::Family;
use crate::item::{Item, Named, Refusal, SecretAddress, TemplateSource, Wrong, WrongCause};
use crate::preview::entries;
use crate::query::{
    self, Namespace, NamespaceOpenshiftResource as Entry, NamespaceOpenshiftResourcePrometheusRule,
    NamespaceOpenshiftResourceResource, NamespaceOpenshiftResourceResourceTemplate,
    NamespaceOpenshiftResourceRoute, NamespaceOpenshiftResourceVaultSecret, Resource,
};
use crate::render::Told;
use crate::{parse, render, rule, variables};

reads_namespaces!(query);

/// The namespaces with what a room keeps there.
pub fn declare(family: Family, data: &Source) -> Result<Declared<Named>, Fault> {
    let answer = data.query::<query::Resources>()?;
    let settings = answer.data.app_interface_settings_v1.unwrap_or_default();
    let repository = settings.into_iter().next().map(|settings| settings.repo_url);
    let namespaces = answer.data.namespaces_v1.unwrap_or_default();
    let texts = data.resources(namespaces.iter().flat_map(|namespace| paths(family, namespace)).collect())?;
    let mut grounds = Grounds::new(family.name());
    for (index, mut namespace) in namespaces.into_iter().enumerate() {
        let pointer = format!("/namespaces_v1/{index}");
        let shared = namespace.shared_resources.take().into_iter().flatten();
        let shared = shared.map(|shared| shared.openshift_resources);
        let entries = entries(&pointer, namespace.openshift_resources.take(), shared);
        let is_managed = namespace.managed_resource_types.as_ref().is_some_and(|types| !types.is_empty());
        if !is_managed && entries.is_empty() {
            continue;
        }
        let ground = Ground {
            place: answer.places.of(&pointer),
            cluster_place: answer.places.of(&format!("{pointer}/cluster")),
            ..namespace.ground()
        };
        // What is in a namespace that goes, goes with it.
        if namespace.is_to_go() {
            grounds.pass_over(ground, "to be deleted");
            continue;
        }
        let (mut items, mut places) = (Vec::new(), BTreeMap::new());
        for (at, entry) in entries {
            let repository = repository.as_deref();
            let work = Work { family, data, texts: &texts, repository, namespace: &namespace };
            let Some(item) = work.item(entry) else { continue };
            if let Some(place) = answer.places.of(&at) {
                places.insert(format!("/items/{}", items.len()), place);
            }
            items.push(item);
        }
        let state = kinds(family, &namespace).map(|kinds| (Named { kinds, items }, places));
        grounds.add(ground, state.map_err(Fault::author));
    }
    Ok(grounds.finish())
}

/// The resources that a family reads for a namespace.
fn paths(family: Family, namespace: &Namespace) -> Vec<String> {
    if namespace.is_to_go() {
        return Vec::new();
    }
    let shared = namespace.shared_resources.iter().flatten().map(|shared| &shared.openshift_resources);
    let entries = namespace.openshift_resources.iter().chain(shared).flatten();
    let resources = entries.filter_map(|entry| match (family, entry) {
        (Family::Files, Entry::Resource(entry)) => entry.path.as_ref(),
        (Family::Files, Entry::ResourceTemplate(entry)) => entry.path.as_ref(),
        (Family::Routes, Entry::Route(entry)) => entry.path.as_ref(),
        (Family::Rules, Entry::PrometheusRule(entry)) => entry.path.as_ref(),
        _ => None,
    });
    resources.map(|resource| resource.path.clone()).collect()
}

/// The kinds that are looked after in a namespace, with the names that may be.
fn kinds(
    family: Family,
    namespace: &Namespace,
) -> Result<BTreeMap<String, Option<BTreeSet<String>>>, String> {
    let overrides: BTreeMap<&str, &str> = namespace
        .managed_resource_type_overrides
        .iter()
        .flatten()
        .filter_map(|one| Some((one.resource.as_deref()?, one.r#override.as_deref()?)))
        .collect();
    let mut kinds: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    let managed = namespace.managed_resource_types.iter().flatten().map(String::as_str);
    for kind in managed.filter(|_| family == Family::Files).chain(family.kinds().iter().copied()) {
        let kind = overrides.get(kind).copied().unwrap_or(kind);
        if kind.parse::<Kind>().is_err() {
            return Err(format!("`{kind}` cannot be a kind"));
        }
        kinds.insert(kind.to_owned(), None);
    }
    for names in namespace.managed_resource_names.iter().flatten() {
        let kind = overrides.get(names.resource.as_str()).copied().unwrap_or(&names.resource);
        let meant = kind.parse::<Kind>().map_err(|_| format!("`{kind}` cannot be a kind"))?;
        let mut is_known = false;
        for (known, listed) in &mut kinds {
            if known.parse::<Kind>().is_ok_and(|known| is_same(&known, &meant)) {
                listed.get_or_insert_default().extend(names.resource_names.iter().cloned());
                is_known = true;
            }
        }
        if !is_known && family == Family::Files {
            return Err(format!(
                "`managedResourceNames` is about {kind}, which `managedResourceTypes` does not list"
            ));
        }
    }
    Ok(kinds)
}

/// Whether two names mean one kind: a group that is not named is any.
fn is_same(one: &Kind, other: &Kind) -> bool {
    one.name == other.name && (one.group.is_none() || other.group.is_none() || one.group == other.group)
}

/// A resource that was read.
struct File {
    path: String,
    content: String,
}

impl File {
    /// The object that the file holds.
    fn object(&self) -> Result<serde_json::Value, Refusal> {
        let Self { path, content } = self;
        parse::object(path, content, false).map_err(|fault| {
            let cause = WrongCause::File { line: parse::error_line(content) };
            Refusal::new(fault, cause)
        })
    }
}

/// What makes an entry of one namespace an item.
struct Work<'d> {
    family: Family,
    data: &'d Source,
    texts: &'d ResourceBatch,
    repository: Option<&'d str>,
    namespace: &'d Namespace,
}

impl Work<'_> {
    /// The item of an entry, if it is of this room.
    fn item(&self, entry: Entry) -> Option<Item> {
        let (what, made) = match (self.family, entry) {
            (Family::Files, Entry::Resource(entry)) => (path(entry.path.as_ref()), self.file(entry)),
            (Family::Files, Entry::ResourceTemplate(entry)) => {
                (path(entry.path.as_ref()), self.template(entry))
            }
            (Family::Secrets, Entry::VaultSecret(entry)) => {
                (entry.secret.clone(), secret(entry).map_err(Refusal::from))
            }
            (Family::Routes, Entry::Route(entry)) => (path(entry.path.as_ref()), self.route(entry)),
            (Family::Rules, Entry::PrometheusRule(entry)) => (path(entry.path.as_ref()), self.rule(entry)),
            // Told once, by the room that files are of.
            (Family::Files, Entry::Other) => {
                let text = "its `provider` is not supported: certificates of RHCS take a service that is not spoken to here";
                ("openshiftResources".to_owned(), Err(Fault::author(text).into()))
            }
            (_, _) => return None,
        };
        Some(
            made.unwrap_or_else(|Refusal { fault, cause }| Item::Wrong(Wrong { what, fault: *fault, cause })),
        )
    }

    /// Reads a resource: only what a room uses is read by it.
    fn text(&self, resource: Option<Resource>) -> Result<File, Fault> {
        let path = resource.ok_or_else(|| Fault::author("the resource that it names is not there"))?.path;
        let content = self.texts.get(&path)?;
        let content = content.ok_or_else(|| Fault::author(format!("there is no resource `{path}`")))?;
        Ok(File { path, content })
    }

    fn route(&self, entry: NamespaceOpenshiftResourceRoute) -> Result<Item, Refusal> {
        let body = self.text(entry.path)?.object()?;
        Ok(match entry.vault_tls_secret_path {
            None => Item::Object(body),
            Some(path) => {
                let tls = SecretAddress {
                    path,
                    version: entry.vault_tls_secret_version,
                    ..SecretAddress::default()
                };
                Item::Route { body, tls }
            }
        })
    }

    fn file(&self, entry: NamespaceOpenshiftResourceResource) -> Result<Item, Refusal> {
        no_alertmanager(entry.validate_alertmanager_config)?;
        let file = self.text(entry.path)?;
        let body = file.object()?;
        if entry.validate_json == Some(true) {
            parse::values_are_json(&file.path, &body)
                .map_err(|fault| Refusal::new(fault, WrongCause::File { line: None }))?;
        }
        Ok(Item::Object(body))
    }

    fn template(&self, entry: NamespaceOpenshiftResourceResourceTemplate) -> Result<Item, Refusal> {
        no_alertmanager(entry.validate_alertmanager_config)?;
        let dialect = dialect(&entry.provider, entry.r#type.as_deref()).map_err(Fault::author)?;
        let resource = self.text(entry.path)?;
        let about = [("provider", Data::text(entry.provider)), ("path", Data::text(&resource.path))];
        self.rendered(resource, dialect, entry.variables.as_deref(), &about)
    }

    fn rule(&self, entry: NamespaceOpenshiftResourcePrometheusRule) -> Result<Item, Refusal> {
        let resource = self.text(entry.path)?;
        let path = resource.path.clone();
        let dialect = dialect(&entry.provider, entry.r#type.as_deref()).map_err(Fault::author)?;
        let about = [("provider", Data::text(entry.provider)), ("path", Data::text(&path))];
        match self.rendered(resource, dialect, entry.variables.as_deref(), &about)? {
            Item::Object(body) => Ok(Item::Object(rule::with_sources(body, self.repository, &path))),
            _ => Err(Fault::author(format!("`{path}` looks outside, which a rule may not")).into()),
        }
    }

    /// The object of a text, which is a template if it has a dialect.
    fn rendered(
        &self,
        file: File,
        dialect: Option<Dialect>,
        own: Option<&str>,
        about: &[(&str, Data)],
    ) -> Result<Item, Refusal> {
        let Some(dialect) = dialect else {
            return Ok(Item::Object(file.object()?));
        };
        let File { path, content } = file;
        let variables = variables::of_entry(own, about, self.namespace).map_err(Fault::author)?;
        let source = TemplateSource {
            text: content,
            dialect,
            variables,
            answers: BTreeMap::new(),
            accounts: BTreeMap::new(),
            asked: BTreeSet::new(),
            declared: None,
        };
        Ok(match render::declared(&path, source, self.data)? {
            Told::Text(text) => Item::Object(
                parse::object(&path, &text, false)
                    .map_err(|fault| Refusal::new(fault, WrongCause::Output))?,
            ),
            Told::Unsettled(template) => Item::Template(*template),
        })
    }
}

fn secret(entry: NamespaceOpenshiftResourceVaultSecret) -> Result<Item, Fault> {
    no_alertmanager(entry.validate_alertmanager_config)?;
    let last = entry.secret.rsplit('/').next().unwrap_or_default().to_owned();
    let texts = |what: &str, json: Option<&str>| {
        let map: Result<Option<BTreeMap<String, String>>, _> = serde_json::from_str(json.unwrap_or("null"));
        map.map(Option::unwrap_or_default).map_err(|_| Fault::author(format!("`{what}` is no map of texts")))
    };
    Ok(Item::Secret(SecretAddress {
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

/// What is asked to be checked and cannot be is not taken for right.
fn no_alertmanager(asked: Option<bool>) -> Result<(), Fault> {
    match asked {
        Some(true) => {
            Err(Fault::author("`validate_alertmanager_config` is not supported: it takes `amtool`")
                .hint("remove it, and check the configuration where it is written"))
        }
        Some(false) | None => Ok(()),
    }
}

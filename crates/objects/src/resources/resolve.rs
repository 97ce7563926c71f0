//! Resolves the desired objects of a namespace: looks up external values, and detects objects that several
//! entries declare.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_client_kubernetes::Kind;
use qontract_client_secrets::SecretFields;
use qontract_runtime::{DesiredItem, DesiredState, Fault, ReadContext, Responsible, SourceLocation};
use serde_json::Value;

use super::entry::{DeclaredResources, InvalidEntry, ResourceEntry};
use super::{route, secret};
use crate::duplicates::{EqualContent, reject_duplicates};
use crate::integration::{ObjectShardView, ResolveContext};
use crate::scope::{DesiredObject, ManagedScope, Sensitivity};
use crate::templates::lookups::ExternalLookups;
use crate::templates::render::ResolvedTemplate;
use crate::templates::{parse, render};

/// Maximum number of objects of a namespace that are looked up concurrently.
const MAX_CONCURRENT_LOOKUPS: usize = 8;

/// A resolved object.
struct ResolvedObject {
    body: Value,
    sensitivity: Sensitivity,
}

/// Resolves the desired objects of a namespace.
pub async fn resolve(
    context: ResolveContext<'_>,
    shard: ObjectShardView<'_, DeclaredResources>,
) -> Vec<DesiredItem<DesiredObject>> {
    let ResolveContext { read, lookups, scope, .. } = context;
    let mut making: Vec<BoxFuture<'_, _>> = Vec::new();
    for item in &shard.shard.state.items {
        making.push(resolve_entry(read, lookups, item).boxed());
    }
    let mut made = futures_util::stream::iter(making).buffered(MAX_CONCURRENT_LOOKUPS).enumerate();
    let (mut wants, mut nameless) = (Vec::new(), Vec::new());
    while let Some((index, made)) = made.next().await {
        let place = shard.shard.place(&format!("/items/{index}")).cloned();
        match made {
            Ok(ResolvedObject { body, sensitivity }) => {
                wants.push(scope.desired_item(body, sensitivity, place));
            }
            Err(fault) => {
                let item = &shard.shard.state.items[index];
                let fault = located(fault, item);
                match unresolved(scope, item, &fault, place.as_ref()) {
                    UnresolvedItem::Object(want) => wants.push(*want),
                    UnresolvedItem::Anything(all) => nameless.extend(all),
                }
            }
        }
    }
    let mut wants = reject_duplicates(wants, EqualContent::Reject);
    // Objects of unknown name are added after the check, because they are never duplicates of each other.
    wants.append(&mut nameless);
    wants
}

async fn resolve_entry(
    read: &ReadContext,
    outside: &ExternalLookups,
    item: &ResourceEntry,
) -> Result<ResolvedObject, Fault> {
    match item {
        ResourceEntry::Object(body) => {
            Ok(ResolvedObject { body: body.clone(), sensitivity: Sensitivity::Public })
        }
        ResourceEntry::Template(template) => {
            let ResolvedTemplate { body, is_sensitive } =
                render::resolve_template(template, read, outside).await?;
            let sensitivity = if is_sensitive { Sensitivity::Template } else { Sensitivity::Public };
            Ok(ResolvedObject { body, sensitivity })
        }
        ResourceEntry::Secret(address) => {
            let fields = outside.fields(read, &address.path, address.version).await?;
            let body =
                parse::check_object(&address.path, secret::kubernetes_secret(address, &fields)?, false)?;
            let declared = secret::kubernetes_secret(address, &SecretFields::new())?;
            Ok(ResolvedObject { body, sensitivity: Sensitivity::Entry(Arc::new(declared)) })
        }
        ResourceEntry::Route { body, tls } => {
            let fields = outside.fields(read, &tls.path, tls.version).await?;
            let declared = Arc::new(route::with_every_field(body.clone()));
            let body = route::with_certificate(body.clone(), &tls.path, &fields)?;
            Ok(ResolvedObject { body, sensitivity: Sensitivity::Filled(declared) })
        }
        ResourceEntry::Invalid(InvalidEntry { fault, .. }) => Err(fault.clone()),
    }
}

/// A fault that withholds a secret, with the template that looks the secret up.
fn located(fault: Fault, item: &ResourceEntry) -> Fault {
    match item {
        ResourceEntry::Template(template) if fault.whose == Responsible::Guard => {
            fault.at(SourceLocation::resource(&template.path))
        }
        _ => fault,
    }
}

/// An item that could not be resolved.
enum UnresolvedItem {
    /// An object whose kind and name are known.
    Object(Box<DesiredItem<DesiredObject>>),
    /// An object of unknown name: one item for every kind that it might have.
    Anything(Vec<DesiredItem<DesiredObject>>),
}

/// The unresolved item: the object itself if its name is known, otherwise one item for every kind that the
/// object might have.
fn unresolved(
    scope: &Arc<ManagedScope>,
    item: &ResourceEntry,
    fault: &Fault,
    place: Option<&SourceLocation>,
) -> UnresolvedItem {
    let want = |object| DesiredItem {
        object,
        place: place.cloned(),
        state: DesiredState::Unresolved(fault.clone()),
    };
    let identity = match item {
        ResourceEntry::Object(body) | ResourceEntry::Route { body, .. } => managed_name(scope, body),
        ResourceEntry::Secret(address) => {
            scope.kinds.first().map(|managed| (managed.kind.clone(), address.name.clone()))
        }
        // A template whose secret was withheld is assumed to render to the object that the data names. If it
        // renders to a different object, that object is refused once the secret can be read.
        ResourceEntry::Template(template) if fault.whose == Responsible::Guard => {
            template.declared_object().and_then(|body| managed_name(scope, body))
        }
        ResourceEntry::Template(_) | ResourceEntry::Invalid(_) => None,
    };
    if let Some((kind, name)) = identity {
        return UnresolvedItem::Object(Box::new(want(scope.object_key(&kind, name))));
    }
    let what = match item {
        ResourceEntry::Template(template) => &template.path,
        ResourceEntry::Invalid(wrong) => &wrong.subject,
        ResourceEntry::Object(_) | ResourceEntry::Route { .. } | ResourceEntry::Secret(_) => "something",
    };
    if scope.kinds.is_empty() {
        return UnresolvedItem::Anything(vec![want(scope.object_key(&Kind::named("object"), what))]);
    }
    UnresolvedItem::Anything(
        scope.kinds.iter().map(|managed| want(scope.object_key(&managed.kind, what))).collect(),
    )
}

/// The kind and name of an object, if its kind is managed.
fn managed_name(scope: &ManagedScope, body: &Value) -> Option<(Kind, String)> {
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    scope.kind_of(body).map(|kind| (kind.clone(), name))
}

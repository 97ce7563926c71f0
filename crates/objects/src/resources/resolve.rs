//! Resolves the desired objects of a namespace: looks up external values, and detects objects that two
//! entries name.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_client_kubernetes::Kind;
use qontract_client_secrets::{Fields, SecretsError};
use qontract_runtime::{Fault, Place, Read, Thing, Want, Wanted, Whose};
use serde_json::Value;

use super::entry::{DeclaredResources, InvalidEntry, ResourceEntry};
use super::{parse, route, secret};
use crate::integration::{ResolveContext, ShardView};
use crate::scope::{DesiredObject, ManagedScope, Sensitivity};
use crate::templates::outside::Outside;
use crate::templates::render;
use crate::templates::render::Settled;

/// Maximum number of objects of a namespace that are looked up concurrently.
const WIDTH: usize = 8;

/// A resolved object, and its sensitivity.
type Made = (Value, Sensitivity);

/// Resolves the desired objects of a namespace.
pub async fn resolve(
    context: ResolveContext<'_>,
    shard: ShardView<'_, DeclaredResources>,
) -> Vec<Want<DesiredObject>> {
    let ResolveContext { read, lookups, scope } = context;
    let mut making: Vec<BoxFuture<'_, _>> = Vec::new();
    for item in &shard.shard.state.items {
        making.push(make(read, lookups, item).boxed());
    }
    let mut made = futures_util::stream::iter(making).buffered(WIDTH).enumerate();
    let (mut wants, mut nameless) = (Vec::new(), Vec::new());
    while let Some((index, made)) = made.next().await {
        let place = shard.shard.place(&format!("/items/{index}")).cloned();
        match made {
            Ok((body, sensitivity)) => wants.push(scope.want(body, sensitivity, place)),
            Err(fault) => {
                let item = &shard.shard.state.items[index];
                match unresolved(scope, item, &fault, place.as_ref()) {
                    Unknown::Object(want) => wants.push(*want),
                    Unknown::Anything(all) => nameless.extend(all),
                }
            }
        }
    }
    let mut wants = once_each(wants);
    // Unknown objects are never duplicates of each other.
    wants.append(&mut nameless);
    wants
}

async fn make(read: &Read, outside: &Outside, item: &ResourceEntry) -> Result<Made, Fault> {
    match item {
        ResourceEntry::Object(body) => Ok((body.clone(), Sensitivity::Public)),
        ResourceEntry::Template(template) => {
            let Settled { body, is_sensitive } = render::settled(template, read, outside).await?;
            Ok((body, if is_sensitive { Sensitivity::Template } else { Sensitivity::Public }))
        }
        ResourceEntry::Secret(address) => {
            let fields = outside.fields(read, address).await?;
            let body = parse::checked(&address.path, secret::object(address, &fields)?, false)?;
            let declared = secret::object(address, &Fields::new())?;
            Ok((body, Sensitivity::Entry(Arc::new(declared))))
        }
        ResourceEntry::Route { body, tls } => {
            let fields = outside.fields(read, tls).await?;
            let made = route::with_certificate(body.clone(), &tls.path, &fields)?;
            Ok((made, Sensitivity::Filled(Arc::new(route::with_every_field(body.clone())))))
        }
        ResourceEntry::Wrong(InvalidEntry { fault, .. }) => Err(fault.clone()),
    }
}

/// The fault for an error of the secret store: it names who has to act.
pub fn fault(error: &SecretsError) -> Fault {
    let text = error.to_string();
    match error {
        SecretsError::NotFound(_) => Fault::author(text),
        _ if error.is_transient() => Fault::remote(text),
        _ => Fault::operator(text),
    }
}

/// An item that could not be resolved.
enum Unknown {
    /// An object whose kind and name are known.
    Object(Box<Want<DesiredObject>>),
    /// An object of unknown name: one item for every kind that it might be.
    Anything(Vec<Want<DesiredObject>>),
}

/// The unresolved item: the object itself if its name is known, else one item for every kind that it might
/// be.
fn unresolved(
    scope: &Arc<ManagedScope>,
    item: &ResourceEntry,
    fault: &Fault,
    place: Option<&Place>,
) -> Unknown {
    let want = |thing| Want { thing, place: place.cloned(), wanted: Wanted::Unresolved(fault.clone()) };
    let known = match item {
        ResourceEntry::Object(body) | ResourceEntry::Route { body, .. } => named(scope, body),
        ResourceEntry::Secret(address) => {
            scope.kinds.first().map(|managed| (managed.kind.clone(), address.name.clone()))
        }
        // A template whose secret was withheld is still the object that the data names; otherwise it is
        // refused later.
        ResourceEntry::Template(template) if fault.whose == Whose::Guard => {
            template.known().and_then(|body| named(scope, body))
        }
        ResourceEntry::Template(_) | ResourceEntry::Wrong(_) => None,
    };
    if let Some((kind, name)) = known {
        return Unknown::Object(Box::new(want(scope.thing(&kind, name))));
    }
    let what = match item {
        ResourceEntry::Template(template) => &template.path,
        ResourceEntry::Wrong(wrong) => &wrong.what,
        ResourceEntry::Object(_) | ResourceEntry::Route { .. } | ResourceEntry::Secret(_) => "something",
    };
    if scope.kinds.is_empty() {
        return Unknown::Anything(vec![want(scope.thing(&Kind::named("object"), what))]);
    }
    Unknown::Anything(scope.kinds.iter().map(|managed| want(scope.thing(&managed.kind, what))).collect())
}

/// The kind and name of an object, if its kind is managed.
fn named(scope: &ManagedScope, body: &Value) -> Option<(Kind, String)> {
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    scope.kind_of(body).map(|kind| (kind.clone(), name))
}

/// An object that several entries name becomes unresolved: it is unknown which of them is meant.
fn once_each(wants: Vec<Want<DesiredObject>>) -> Vec<Want<DesiredObject>> {
    let mut places: BTreeMap<Thing, Vec<Option<Place>>> = BTreeMap::new();
    for want in &wants {
        places.entry(want.thing.clone()).or_default().push(want.place.clone());
    }
    let mut kept: Vec<Want<DesiredObject>> = Vec::new();
    for mut want in wants {
        let named = places.get(&want.thing).map_or(&[][..], Vec::as_slice);
        if named.len() > 1 {
            if kept.iter().any(|known| known.thing == want.thing) {
                continue;
            }
            let fault = Fault::author(format!("{} entries name the same object", named.len()));
            let fault = named.iter().fold(fault, |fault, place| fault.at(place.clone()));
            want.wanted = Wanted::Unresolved(fault);
        }
        kept.push(want);
    }
    kept
}

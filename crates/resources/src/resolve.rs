//! What is wanted in a namespace: each object with what lies outside, and what two entries say of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_client_kubernetes::Kind;
use qontract_client_secrets::{Fields, SecretsError};
use qontract_objects::{Estate, Item as Wished, Plot, Sensitivity};
use qontract_runtime::{Fault, Place, Read, Thing, Want, Wanted, Whose};
use serde_json::Value;

use crate::item::{Item, Named, Wrong};
use crate::outside::Outside;
use crate::render::Settled;
use crate::{parse, render, route, secret};

/// So many objects of a namespace are looked up at once.
const WIDTH: usize = 8;

/// An object, and what of it may be shown.
type Made = (Value, Sensitivity);

/// What is wanted in a namespace.
pub async fn resolve(
    read: &Read,
    outside: &Outside,
    plot: Plot<'_, Named>,
    estate: &Arc<Estate>,
) -> Vec<Want<Wished>> {
    let mut making: Vec<BoxFuture<'_, _>> = Vec::new();
    for item in &plot.shard.state.items {
        making.push(make(read, outside, item).boxed());
    }
    let mut made = futures_util::stream::iter(making).buffered(WIDTH).enumerate();
    let (mut wants, mut nameless) = (Vec::new(), Vec::new());
    while let Some((index, made)) = made.next().await {
        let place = plot.shard.place(&format!("/items/{index}")).cloned();
        match made {
            Ok((body, sensitivity)) => wants.push(estate.want(body, sensitivity, place)),
            Err(fault) => {
                let item = &plot.shard.state.items[index];
                match unresolved(estate, item, &fault, place.as_ref()) {
                    Unknown::Object(want) => wants.push(*want),
                    Unknown::Anything(all) => nameless.extend(all),
                }
            }
        }
    }
    let mut wants = once_each(wants);
    // Two of which nothing is known are not one.
    wants.append(&mut nameless);
    wants
}

async fn make(read: &Read, outside: &Outside, item: &Item) -> Result<Made, Fault> {
    match item {
        Item::Object(body) => Ok((body.clone(), Sensitivity::Public)),
        Item::Template(template) => {
            let Settled { body, is_sensitive } = render::settled(template, read, outside).await?;
            Ok((body, if is_sensitive { Sensitivity::Template } else { Sensitivity::Public }))
        }
        Item::Secret(address) => {
            let fields = outside.fields(read, address).await?;
            let body = parse::checked(&address.path, secret::object(address, &fields)?, false)?;
            let declared = secret::object(address, &Fields::new())?;
            Ok((body, Sensitivity::Entry(Arc::new(declared))))
        }
        Item::Route { body, tls } => {
            let fields = outside.fields(read, tls).await?;
            let made = route::with_certificate(body.clone(), &tls.path, &fields)?;
            Ok((made, Sensitivity::Filled(Arc::new(route::with_every_field(body.clone())))))
        }
        Item::Wrong(Wrong { fault, .. }) => Err(fault.clone()),
    }
}

/// Whose move it is when a secret cannot be read.
pub fn fault(error: &SecretsError) -> Fault {
    let text = error.to_string();
    match error {
        SecretsError::NotFound(_) => Fault::author(text),
        _ if error.is_transient() => Fault::remote(text),
        _ => Fault::operator(text),
    }
}

/// What is not known.
enum Unknown {
    /// An object whose name is known.
    Object(Box<Want<Wished>>),
    /// Whatever it might be.
    Anything(Vec<Want<Wished>>),
}

/// What is not known: the object itself if its name is known, else whatever it might be.
fn unresolved(estate: &Arc<Estate>, item: &Item, fault: &Fault, place: Option<&Place>) -> Unknown {
    let want = |thing| Want { thing, place: place.cloned(), wanted: Wanted::Unresolved(fault.clone()) };
    let known = match item {
        Item::Object(body) | Item::Route { body, .. } => named(estate, body),
        Item::Secret(address) => {
            estate.kinds.first().map(|managed| (managed.kind.clone(), address.name.clone()))
        }
        // A template whose secret is not read yet is the object that the data names, or it will be refused.
        Item::Template(template) if fault.whose == Whose::Guard => {
            template.known().and_then(|body| named(estate, body))
        }
        Item::Template(_) | Item::Wrong(_) => None,
    };
    if let Some((kind, name)) = known {
        return Unknown::Object(Box::new(want(estate.thing(&kind, name))));
    }
    let what = match item {
        Item::Template(template) => &template.path,
        Item::Wrong(wrong) => &wrong.what,
        Item::Object(_) | Item::Route { .. } | Item::Secret(_) => "something",
    };
    if estate.kinds.is_empty() {
        return Unknown::Anything(vec![want(estate.thing(&Kind::named("object"), what))]);
    }
    Unknown::Anything(estate.kinds.iter().map(|managed| want(estate.thing(&managed.kind, what))).collect())
}

/// The kind and the name of an object, if its kind is looked after.
fn named(estate: &Estate, body: &Value) -> Option<(Kind, String)> {
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    estate.kind_of(body).map(|kind| (kind.clone(), name))
}

/// An object that two entries name is wanted by neither: which of them is meant is not known.
fn once_each(wants: Vec<Want<Wished>>) -> Vec<Want<Wished>> {
    let mut places: BTreeMap<Thing, Vec<Option<Place>>> = BTreeMap::new();
    for want in &wants {
        places.entry(want.thing.clone()).or_default().push(want.place.clone());
    }
    let mut kept: Vec<Want<Wished>> = Vec::new();
    for mut want in wants {
        let named = places.get(&want.thing).map_or(&[][..], Vec::as_slice);
        if named.len() > 1 {
            if kept.iter().any(|known| known.thing == want.thing) {
                continue;
            }
            let fault = Fault::author(format!("{} entries name it", named.len()));
            let fault = named.iter().fold(fault, |fault, place| fault.at(place.clone()));
            want.wanted = Wanted::Unresolved(fault);
        }
        kept.push(want);
    }
    kept
}

//! The files whose change can change the answer to a query.

use std::collections::BTreeSet;

use qontract_bundle::diff::{DatafileChange, Diff, ResourceChange, fields, named_otherwise};
use qontract_graphql::{Engine, Footprint};
use serde::Serialize;

use super::Pair;
use super::parts::Sides;
use crate::about::{About, Query};
use crate::fault::Fault;
use crate::listing;
use crate::place::Place;

/// What kind of thing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A datafile.
    Datafile,
    /// A resource.
    Resource,
    /// The description of the GraphQL types.
    Types,
    /// The integration's own file.
    Integration,
    /// What may be removed.
    Approval,
}

/// A file that differs and matters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cause {
    /// What it is.
    pub what: What,
    /// Where it differs: in head, or in base for what is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Whether it is only in base.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// What differs that the declared queries can touch; `None` if that cannot be said because a query does not fit a bundle.
pub fn footprint(sides: &Sides<'_>, about: &About) -> Option<Vec<Cause>> {
    let Sides { base, head, diff } = sides;
    let mut footprints = Vec::new();
    for query in &about.queries {
        footprints.push(trace(base, query)?);
        footprints.push(trace(head, query)?);
    }
    let mut causes = BTreeSet::new();
    if diff.graphql.is_some() && !footprints.is_empty() {
        causes.insert(Cause { what: What::Types, place: None, gone: false });
    }
    for change in &diff.datafiles {
        let stray = base.strays().contains(&change.path) || head.strays().contains(&change.path);
        let (old, new) = (change.change.before(), change.change.after());
        let sees = |footprint: &Footprint| footprint.sees(old.map(AsRef::as_ref), new.map(AsRef::as_ref));
        if stray || footprints.iter().any(sees) {
            causes.insert(datafile(change));
        }
    }
    if footprints.iter().any(Footprint::resources) {
        causes.extend(diff.resources.iter().map(resource));
    }
    if footprints.iter().any(Footprint::naming) {
        let places = named_otherwise(base.bundle(), head.bundle()).map(Place::resource);
        causes.extend(places.map(|place| Cause { what: What::Resource, place: Some(place), gone: false }));
    }
    Some(causes.into_iter().collect())
}

/// All files that differ: any of them may be what something was looked up in.
pub fn all(diff: &Diff) -> Vec<Cause> {
    diff.datafiles.iter().map(datafile).chain(diff.resources.iter().map(resource)).collect()
}

/// A datafile, at the first place at which it differs.
fn datafile(DatafileChange { path, change }: &DatafileChange) -> Cause {
    let pointer = match (change.before(), change.after()) {
        (Some(old), Some(new)) => {
            fields(&old.value, &new.value).first().map(|field| field.pointer.clone()).unwrap_or_default()
        }
        _ => String::new(),
    };
    let place = Some(Place::datafile(path, &pointer));
    Cause { what: What::Datafile, place, gone: change.after().is_none() }
}

fn resource(ResourceChange { path, change }: &ResourceChange) -> Cause {
    Cause { what: What::Resource, place: Some(Place::resource(path)), gone: change.after().is_none() }
}

fn trace(engine: &Engine, query: &Query) -> Option<Footprint> {
    engine.footprint(query.named().into()).ok()
}

/// What differs in what the integration may do: its own file, and its approvals.
pub fn own(pair: &Pair, name: &str) -> Result<Vec<Cause>, Fault> {
    let (old, new) = (listing::of(&**pair.base.source(), name)?, listing::of(&**pair.head.source(), name)?);
    let mut causes = Vec::new();
    if old.as_ref().map(|old| &old.schemas) != new.as_ref().map(|new| &new.schemas) {
        let gone = new.is_none();
        let place = new.or(old).map(|listing| listing.place.below("/schemas"));
        causes.push(Cause { what: What::Integration, place, gone });
    }
    let approvals = |side: &dyn crate::data::Source| -> Result<Vec<_>, Fault> {
        let all = listing::approvals(side)?;
        Ok(all.into_iter().filter(|approval| approval.integration == name).collect())
    };
    if approvals(&**pair.base.source())? != approvals(&**pair.head.source())? {
        causes.push(Cause { what: What::Approval, place: None, gone: false });
    }
    Ok(causes)
}

//! The files whose change can change the answer to a query.

use std::collections::BTreeSet;

use qontract_bundle::diff::fields;
use qontract_graphql::{Engine, Footprint, Request};
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
    head.link_beside(base);
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
            let pointer = match (old, new) {
                (Some(old), Some(new)) => fields(&old.value, &new.value)
                    .first()
                    .map(|field| field.pointer.clone())
                    .unwrap_or_default(),
                _ => String::new(),
            };
            let place = Some(Place::datafile(&change.path, &pointer));
            causes.insert(Cause { what: What::Datafile, place, gone: new.is_none() });
        }
    }
    if footprints.iter().any(Footprint::resources) {
        for change in &diff.resources {
            let place = Some(Place::resource(&change.path));
            causes.insert(Cause { what: What::Resource, place, gone: change.change.after().is_none() });
        }
    }
    Some(causes.into_iter().collect())
}

fn trace(engine: &Engine, query: &Query) -> Option<Footprint> {
    let Query { name, text } = query;
    engine.footprint(Request { query: text, operation: Some(name), ..Request::default() }).ok()
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

//! Objects whose desired state is unresolved. Each object is reported once, although the desired state lists an
//! object of unknown kind under every kind that it may have.

use crate::fault::Fault;
use crate::plan::ObjectKey;
use crate::source_location::SourceLocation;
use crate::unplanned::{AFTER_MERGE, UnplannedItem};

/// The consequence that is reported for an unresolved object in a plan.
pub const UNCHANGED: &str = "left unchanged";

/// The consequence that is reported for an unresolved object in a run that prints.
pub const NOT_PRINTED: &str = "not printed";

/// Maximum number of kinds that the name of an object of unknown kind lists.
const MAX_NAMED_KINDS: usize = 3;

/// Unresolved objects, in the order in which they were found.
#[derive(Default)]
pub struct Unresolved<'a>(Vec<UnresolvedObject<'a>>);

struct UnresolvedObject<'a> {
    objects: Vec<&'a ObjectKey>,
    place: Option<&'a SourceLocation>,
    fault: &'a Fault,
}

impl<'a> Unresolved<'a> {
    /// Adds an object. Objects with the same name, location and fault are reported as one.
    pub fn add(&mut self, object: &'a ObjectKey, place: Option<&'a SourceLocation>, fault: &'a Fault) {
        let same = |one: &&mut UnresolvedObject<'a>| {
            one.place == place
                && one.fault == fault
                && one.objects.iter().all(|other| other.name == object.name)
        };
        match self.0.iter_mut().find(same) {
            Some(one) if one.objects.contains(&object) => {}
            Some(one) => one.objects.push(object),
            None => self.0.push(UnresolvedObject { objects: vec![object], place, fault }),
        }
    }

    /// The faults, each with the name of the object and the consequence.
    pub fn into_faults(self, consequence: &str) -> impl Iterator<Item = Fault> {
        self.0.into_iter().map(move |object| {
            let what = object.name();
            let UnresolvedObject { place, fault, .. } = object;
            let mut fault = fault.clone();
            fault.text = format!("{}; {what} is {consequence}", fault.text);
            // Each location is reported only once.
            let place = place.filter(|place| !fault.places.contains(place)).cloned();
            fault.at(place)
        })
    }

    /// Converts the objects to items that were not planned.
    pub fn into_unplanned(self) -> impl Iterator<Item = UnplannedItem> {
        self.0.into_iter().map(|object| {
            let text = format!(
                "{}: {}; no change to this object is shown; {AFTER_MERGE}",
                object.name(),
                object.fault.text
            );
            let mut places = object.fault.places.clone();
            places.extend(object.place.filter(|place| !places.contains(place)).cloned());
            UnplannedItem { places, ..UnplannedItem::new(text) }
        })
    }
}

impl UnresolvedObject<'_> {
    /// The name of the object, with all kinds that it may have.
    fn name(&self) -> String {
        match self.objects.as_slice() {
            [object] => object.to_string(),
            several if several.len() > MAX_NAMED_KINDS => format!("`{}`", several[0].name),
            several => {
                let kinds: Vec<&str> = several.iter().map(|object| object.kind.as_str()).collect();
                format!("`{}` (a {})", several[0].name, kinds.join(" or a "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{UNCHANGED, Unresolved};
    use crate::fault::Fault;
    use crate::key::Scope;
    use crate::plan::ObjectKey;
    use crate::source_location::SourceLocation;

    fn object(kind: &str, name: &str) -> ObjectKey {
        ObjectKey { scope: Scope::new([("kind", kind)]), kind: kind.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn an_object_of_several_possible_kinds_is_reported_once_per_location() {
        let (service, secret, other) = (object("Service", "x"), object("Secret", "x"), object("Secret", "y"));
        let (here, there) = (SourceLocation::resource("/here"), SourceLocation::resource("/there"));
        let fault = Fault::author("it is broken");
        let mut unresolved = Unresolved::default();
        for (object, place) in
            [(&service, &here), (&secret, &here), (&service, &there), (&secret, &there), (&other, &here)]
        {
            unresolved.add(object, Some(place), &fault);
        }
        let faults: Vec<(String, Vec<SourceLocation>)> =
            unresolved.into_faults(UNCHANGED).map(|fault| (fault.text, fault.places)).collect();
        let both = "it is broken; `x` (a Service or a Secret) is left unchanged";
        let alone = "it is broken; Secret `y` (kind=Secret) is left unchanged";
        assert_eq!(
            faults,
            [
                (both.to_owned(), vec![here.clone()]),
                (both.to_owned(), vec![there]),
                (alone.to_owned(), vec![here])
            ]
        );
    }
}

//! Objects whose desired state is unresolved, each reported once: an object of unknown kind is listed under
//! every kind that it may have.

use crate::fault::Fault;
use crate::plan::ObjectKey;
use crate::source_location::SourceLocation;

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
    pub fn add(&mut self, thing: &'a ObjectKey, place: Option<&'a SourceLocation>, fault: &'a Fault) {
        let same = |one: &&mut UnresolvedObject<'a>| {
            one.place == place
                && one.fault == fault
                && one.objects.iter().all(|other| other.name == thing.name)
        };
        match self.0.iter_mut().find(same) {
            Some(one) if one.objects.contains(&thing) => {}
            Some(one) => one.objects.push(thing),
            None => self.0.push(UnresolvedObject { objects: vec![thing], place, fault }),
        }
    }

    /// The faults, each naming the object that is left as it is.
    pub fn into_faults(self) -> impl Iterator<Item = Fault> {
        self.0.into_iter().map(|UnresolvedObject { objects: things, place, fault }| {
            let what = match things.as_slice() {
                [thing] => thing.to_string(),
                several => {
                    let kinds: Vec<&str> = several.iter().map(|thing| thing.kind.as_str()).collect();
                    format!("`{}` (a {})", several[0].name, kinds.join(" or a "))
                }
            };
            let mut fault = fault.clone();
            fault.text = format!("{}; {what} is left as it is", fault.text);
            // A location is reported once.
            let place = place.filter(|place| !fault.places.contains(place)).cloned();
            fault.at(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Unresolved;
    use crate::fault::Fault;
    use crate::key::Scope;
    use crate::plan::ObjectKey;
    use crate::source_location::SourceLocation;

    fn thing(kind: &str, name: &str) -> ObjectKey {
        ObjectKey { scope: Scope::new([("kind", kind)]), kind: kind.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn an_object_of_several_possible_kinds_is_reported_once_per_location() {
        let (service, secret, other) = (thing("Service", "x"), thing("Secret", "x"), thing("Secret", "y"));
        let (here, there) = (SourceLocation::resource("/here"), SourceLocation::resource("/there"));
        let fault = Fault::author("it is broken");
        let mut unresolved = Unresolved::default();
        for (thing, place) in
            [(&service, &here), (&secret, &here), (&service, &there), (&secret, &there), (&other, &here)]
        {
            unresolved.add(thing, Some(place), &fault);
        }
        let faults: Vec<(String, Vec<SourceLocation>)> =
            unresolved.into_faults().map(|fault| (fault.text, fault.places)).collect();
        let both = "it is broken; `x` (a Service or a Secret) is left as it is";
        let alone = "it is broken; Secret `y` (kind=Secret) is left as it is";
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

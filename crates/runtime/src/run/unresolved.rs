//! Things whose declaration is not known, each reported once: a thing of unknown kind may be of several.

use crate::fault::Fault;
use crate::place::Place;
use crate::plan::Thing;

/// Things whose declaration is not known, in the order in which they were found.
#[derive(Default)]
pub struct Unresolved<'a>(Vec<One<'a>>);

struct One<'a> {
    things: Vec<&'a Thing>,
    place: Option<&'a Place>,
    fault: &'a Fault,
}

impl<'a> Unresolved<'a> {
    /// One more thing. If it has the name, the place and the fault of one before, they are one and the same.
    pub fn add(&mut self, thing: &'a Thing, place: Option<&'a Place>, fault: &'a Fault) {
        let same = |one: &&mut One<'a>| {
            one.place == place
                && one.fault == fault
                && one.things.iter().all(|other| other.name == thing.name)
        };
        match self.0.iter_mut().find(same) {
            Some(one) if one.things.contains(&thing) => {}
            Some(one) => one.things.push(thing),
            None => self.0.push(One { things: vec![thing], place, fault }),
        }
    }

    /// The faults, each with the thing that is left as it is.
    pub fn told(self) -> impl Iterator<Item = Fault> {
        self.0.into_iter().map(|One { things, place, fault }| {
            let what = match things.as_slice() {
                [thing] => thing.to_string(),
                several => {
                    let kinds: Vec<&str> = several.iter().map(|thing| thing.kind.as_str()).collect();
                    format!("`{}` (a {})", several[0].name, kinds.join(" or a "))
                }
            };
            let mut fault = fault.clone();
            fault.text = format!("{}; {what} is left as it is", fault.text);
            // A place is reported once.
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
    use crate::place::Place;
    use crate::plan::Thing;

    fn thing(kind: &str, name: &str) -> Thing {
        Thing { scope: Scope::new([("kind", kind)]), kind: kind.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn what_may_be_of_several_kinds_is_told_once_for_each_place() {
        let (service, secret, other) = (thing("Service", "x"), thing("Secret", "x"), thing("Secret", "y"));
        let (here, there) = (Place::resource("/here"), Place::resource("/there"));
        let fault = Fault::author("it is broken");
        let mut unresolved = Unresolved::default();
        for (thing, place) in
            [(&service, &here), (&secret, &here), (&service, &there), (&secret, &there), (&other, &here)]
        {
            unresolved.add(thing, Some(place), &fault);
        }
        let told: Vec<(String, Vec<Place>)> =
            unresolved.told().map(|fault| (fault.text, fault.places)).collect();
        let both = "it is broken; `x` (a Service or a Secret) is left as it is";
        let alone = "it is broken; Secret `y` (kind=Secret) is left as it is";
        assert_eq!(
            told,
            [
                (both.to_owned(), vec![here.clone()]),
                (both.to_owned(), vec![there]),
                (alone.to_owned(), vec![here])
            ]
        );
    }
}

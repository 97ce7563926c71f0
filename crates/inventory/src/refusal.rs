//! Why nothing is done to an object, in words that name both sides and the way out.

use serde_json::Value;

use crate::mark::Owner;
use crate::object::{Controller, Live};
use crate::standing::Life;

/// The two sides of a decision.
pub struct Part<'a> {
    /// In whose name it is made.
    pub owner: &'a Owner,
    /// Over what.
    pub live: &'a Live,
}

/// Whether Argo CD says that an object is its own.
pub fn is_of_argo(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd"
}

impl Part<'_> {
    /// Who we are.
    fn us(&self) -> String {
        match self.owner.caller() {
            Some(caller) => format!("caller `{caller}` of `{}`", self.owner.integration()),
            None => format!("`{}`", self.owner.integration()),
        }
    }

    /// The version that wrote the object.
    pub fn version(&self) -> &str {
        self.live.mark().and_then(|mark| mark.version.as_deref()).unwrap_or("unknown")
    }

    /// It is being removed.
    pub fn going(&self) -> String {
        format!("{} is being removed", self.live.title())
    }

    /// It belongs to Argo CD.
    pub fn of_argo(&self) -> String {
        format!(
            "{} belongs to Argo CD and is in the data of {}: keep it in one of the two",
            self.live.title(),
            self.us()
        )
    }

    /// It belongs to another integration.
    pub fn of_integration(&self, name: &str) -> String {
        format!(
            "{} belongs to `{name}` and is in the data of {}: keep it in one of the two",
            self.live.title(),
            self.us()
        )
    }

    /// It belongs to a caller that is, or may be, still there.
    pub fn of_caller(&self, caller: &str, life: Life) -> Option<String> {
        let (title, us, integration) = (self.live.title(), self.us(), self.owner.integration());
        let theirs =
            format!("{title} belongs to caller `{caller}` of `{integration}` and is in the data of {us}");
        match life {
            Life::Gone => None,
            Life::Living => Some(format!("{theirs}: keep it in one of the two")),
            Life::Unknown => Some(format!(
                "{theirs}: whether `{caller}` still exists is known only to a run over the whole data"
            )),
        }
    }

    /// Another object makes it.
    pub fn of_controller(&self, Controller { kind, name }: Controller<'_>) -> String {
        format!(
            "{} is kept by {kind} `{name}` and is in the data of {}: change the {kind} instead",
            self.live.title(),
            self.us()
        )
    }

    /// Fields would have to change that cannot, and the kind is not replaced.
    pub fn not_in_place(&self, fields: &[String]) -> String {
        format!(
            "{} of {} cannot change, and what {} declares differs: declare it as it is, give the object another name, or remove it by hand",
            listed(fields),
            self.live.title(),
            self.us()
        )
    }

    /// Fields would have to change that cannot, and it is not ours to be replaced.
    pub fn not_replaced(&self, fields: &[String]) -> String {
        format!(
            "{} of {} cannot change, what {} declares differs, and nobody marked it: remove it by hand, or declare it as it is",
            listed(fields),
            self.live.title(),
            self.us()
        )
    }
}

fn listed(fields: &[String]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}

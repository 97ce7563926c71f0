//! Messages for refused changes, which name both owners and the remedy.

use serde_json::Value;

use crate::mark::Owner;
use crate::object::{Controller, Live};
use crate::standing::Life;

/// The context of a refusal.
pub struct Part<'a> {
    /// The owner in whose name the decision is made.
    pub owner: &'a Owner,
    /// The live object.
    pub live: &'a Live,
}

/// Whether an object carries the label of Argo CD.
pub fn is_of_argo(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd"
}

impl Part<'_> {
    /// Our name in messages.
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

    /// The object is being removed.
    pub fn going(&self) -> String {
        format!("{} is being removed", self.live.title())
    }

    /// The object belongs to Argo CD.
    pub fn of_argo(&self) -> String {
        format!(
            "{} belongs to Argo CD and is in the data of {}: keep it in one of the two",
            self.live.title(),
            self.us()
        )
    }

    /// The object belongs to another integration.
    pub fn of_integration(&self, name: &str) -> String {
        format!(
            "{} belongs to `{name}` and is in the data of {}: keep it in one of the two",
            self.live.title(),
            self.us()
        )
    }

    /// The object belongs to a caller that exists or may exist; `None` if the caller is gone.
    pub fn of_caller(&self, caller: &str, life: Life) -> Option<String> {
        let (title, us, integration) = (self.live.title(), self.us(), self.owner.integration());
        let theirs =
            format!("{title} belongs to caller `{caller}` of `{integration}` and is in the data of {us}");
        match life {
            Life::Gone => None,
            Life::Living => Some(format!("{theirs}: keep it in one of the two")),
            Life::Unknown => Some(format!(
                "{theirs}: whether `{caller}` still exists can only be determined by a run over the whole data"
            )),
        }
    }

    /// The object has a controller.
    pub fn of_controller(&self, Controller { kind, name }: Controller<'_>) -> String {
        format!(
            "{} is controlled by {kind} `{name}` and is in the data of {}: change the {kind} instead",
            self.live.title(),
            self.us()
        )
    }

    /// The change needs immutable fields to change, and the kind is not replaced.
    pub fn not_in_place(&self, fields: &[String]) -> String {
        format!(
            "{} of {} cannot change, and what {} declares differs: declare it as it is, give the object another name, or remove it by hand",
            listed(fields),
            self.live.title(),
            self.us()
        )
    }

    /// The change needs immutable fields to change, and an unmarked object is not replaced.
    pub fn not_replaced(&self, fields: &[String]) -> String {
        format!(
            "{} of {} cannot change, what {} declares differs, and it is unmarked: remove it by hand, or declare it as it is",
            listed(fields),
            self.live.title(),
            self.us()
        )
    }
}

fn listed(fields: &[String]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}

//! Messages for refused changes, which name both owners and the remedy.

use serde_json::Value;

use crate::mark::{CALLER, Owner};
use crate::object::{Controller, LiveBody};
use crate::ownership::CallerStatus;

/// The context of a refusal.
pub struct RefusalContext<'a> {
    /// The owner for which the decision is made.
    pub owner: &'a Owner,
    /// The live object.
    pub live: &'a LiveBody,
}

/// Whether an object has the Argo CD label.
pub fn is_managed_by_argo(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd"
}

impl RefusalContext<'_> {
    /// The name of our owner in messages.
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

    /// Message: the object is being removed.
    pub fn being_removed(&self) -> String {
        format!("{} is being removed", self.live.title())
    }

    /// Message: the object belongs to Argo CD.
    pub fn belongs_to_argo(&self) -> String {
        format!(
            "{} belongs to Argo CD and is in the data of {}: keep it in one of the two",
            self.live.title(),
            self.us()
        )
    }

    /// Message: the object belongs to another integration.
    pub fn belongs_to_integration_message(&self, name: &str) -> String {
        format!(
            "{} belongs to `{name}` and is in the data of {}: keep it in one of the two",
            self.live.title(),
            self.us()
        )
    }

    /// Message: the object belongs to a caller that exists or may exist; `None` if the caller no longer exists.
    pub fn belongs_to_caller(&self, caller: &str, status: CallerStatus) -> Option<String> {
        let (title, us, integration) = (self.live.title(), self.us(), self.owner.integration());
        let theirs =
            format!("{title} belongs to caller `{caller}` of `{integration}` and is in the data of {us}");
        match status {
            CallerStatus::Gone => None,
            CallerStatus::Present => Some(format!("{theirs}: keep it in one of the two")),
            CallerStatus::Unknown if self.owner.caller().is_none() => Some(format!(
                "{theirs} without a caller: name the caller `{caller}` again, or remove the annotation `{CALLER}` from the object"
            )),
            CallerStatus::Unknown => Some(format!(
                "{theirs}: whether `{caller}` still exists can only be determined by a run over the whole data"
            )),
        }
    }

    /// Message: the object has a controller.
    pub fn controlled_by(&self, Controller { kind, name }: Controller<'_>) -> String {
        format!(
            "{} is controlled by {kind} `{name}` and is in the data of {}: change the {kind} instead",
            self.live.title(),
            self.us()
        )
    }

    /// Message: immutable fields would change, and objects of this kind are not replaced.
    pub fn immutable_fields(&self, fields: &[String]) -> String {
        format!(
            "{} has immutable fields that differ from the declaration of {} ({}): declare the live values, rename the object, or delete it manually",
            self.live.title(),
            self.us(),
            quoted_list(fields)
        )
    }

    /// Message: immutable fields would change, and an unmarked object is not replaced.
    pub fn unmarked_immutable_fields(&self, fields: &[String]) -> String {
        format!(
            "{} is unmarked and has immutable fields that differ from the declaration of {} ({}): delete it manually, or declare the live values",
            self.live.title(),
            self.us(),
            quoted_list(fields)
        )
    }
}

fn quoted_list(fields: &[String]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}

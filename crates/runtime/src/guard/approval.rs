//! Approvals: data that allows the removal of things by name, until a day.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::Thing;

/// A day.
pub type Date = jiff::civil::Date;

/// How long a suggested approval holds, in days.
const HOLDS: i32 = 7;

/// A thing as the data and the ledger name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThingRef {
    /// Where the thing is: the scope as plans show it.
    pub target: String,
    /// What kind of thing it is.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl From<&Thing> for ThingRef {
    fn from(Thing { scope, kind, name }: &Thing) -> Self {
        Self { target: scope.to_string(), kind: kind.clone(), name: name.clone() }
    }
}

/// Removals that are approved for one integration until a day.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Approval {
    /// The integration that may remove.
    pub integration: String,
    /// The last day on which it may, as `2026-01-31`.
    pub expiration: String,
    /// What it may remove.
    pub removals: Vec<ThingRef>,
}

/// All approvals that hold today.
#[derive(Clone, Debug, Default)]
pub struct Approvals(BTreeMap<String, Vec<ThingRef>>);

impl Approvals {
    /// Those of `approvals` that hold on `today`. A day that is none holds never.
    pub fn on(today: Date, approvals: Vec<Approval>) -> Self {
        let mut all: BTreeMap<String, Vec<ThingRef>> = BTreeMap::new();
        let holds = |approval: &Approval| approval.expiration.parse::<Date>().is_ok_and(|last| today <= last);
        for approval in approvals.into_iter().filter(holds) {
            all.entry(approval.integration).or_default().extend(approval.removals);
        }
        Self(all)
    }

    /// Whether an integration may remove a thing.
    pub fn allow(&self, integration: &str, thing: &Thing) -> bool {
        let Some(removals) = self.0.get(integration) else { return false };
        removals.contains(&ThingRef::from(thing))
    }

    /// The datafile that would approve the removal of these things.
    pub fn text(integration: &str, things: &[&Thing], today: Date) -> String {
        let last = today.saturating_add(jiff::Span::new().days(HOLDS));
        let mut text = format!(
            "$schema: /app-interface/removal-approval-1.yml\n\nlabels: {{}}\n\nname: {integration}-{today}\n\
             description: why these may go\nintegration: {integration}\nexpiration: \"{last}\"\nremovals:\n"
        );
        for thing in things {
            let (target, kind, name) =
                (quoted(&thing.scope.to_string()), quoted(&thing.kind), quoted(&thing.name));
            text.push_str(&format!("- target: {target}\n  kind: {kind}\n  name: {name}\n"));
        }
        text
    }
}

/// A text as YAML has it in double quotes, which is JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

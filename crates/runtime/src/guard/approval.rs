//! Approvals: data that allows the removal of things by name, until a day.

use std::collections::BTreeMap;
use std::fmt;

use qontract_diagnostics::shown_yaml;
use serde::{Deserialize, Serialize};

use crate::plan::Thing;

/// A day.
pub type Date = jiff::civil::Date;

/// How many days a new approval holds by default.
pub const DEFAULT_APPROVAL_DAYS: i32 = 7;

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
    /// The path of the datafile in the bundle; empty if the data does not tell.
    #[serde(default)]
    pub path: String,
    /// The integration that may remove.
    pub integration: String,
    /// The last day on which it may, as `2026-01-31`.
    pub expiration: String,
    /// What it may remove.
    pub removals: Vec<ThingRef>,
}

/// Whether an approval holds on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It holds.
    Valid,
    /// Its last day has passed.
    Expired,
    /// Its last day is not a date, so it never holds.
    NoDate,
}

impl Approval {
    /// Whether it holds on `today`.
    pub fn validity(&self, today: Date) -> Validity {
        match self.expiration.parse::<Date>() {
            Ok(last) if today <= last => Validity::Valid,
            Ok(_) => Validity::Expired,
            Err(_) => Validity::NoDate,
        }
    }

    /// The datafile as messages name it.
    pub fn file(&self) -> String {
        if self.path.is_empty() { "of the data".to_owned() } else { format!("data{}", self.path) }
    }
}

/// All approvals of the data.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    /// What may be removed today, by integration.
    valid: BTreeMap<String, Vec<ThingRef>>,
    /// All of them, with whether they hold today.
    all: Vec<(Approval, Validity)>,
}

impl Approvals {
    /// The approvals of the data, on `today`.
    pub fn on(today: Date, approvals: Vec<Approval>) -> Self {
        let mut valid: BTreeMap<String, Vec<ThingRef>> = BTreeMap::new();
        let mut all = Vec::new();
        for approval in approvals {
            let validity = approval.validity(today);
            if validity == Validity::Valid {
                let known = valid.entry(approval.integration.clone()).or_default();
                known.extend(approval.removals.iter().cloned());
            }
            all.push((approval, validity));
        }
        Self { valid, all }
    }

    /// Whether an integration may remove a thing.
    pub fn allow(&self, integration: &str, thing: &Thing) -> bool {
        let Some(removals) = self.valid.get(integration) else { return false };
        removals.contains(&ThingRef::from(thing))
    }

    /// All of them, with whether they hold.
    pub(super) fn all(&self) -> &[(Approval, Validity)] {
        &self.all
    }

    /// The datafile that would approve the removal of these things.
    pub fn text(integration: &str, things: &[&Thing], today: Date) -> String {
        let removals: Vec<ThingRef> = things.iter().copied().map(ThingRef::from).collect();
        let file = ApprovalFile {
            name: &format!("{integration}-{today}"),
            description: "why these may go",
            integration,
            expiration: today.saturating_add(jiff::Span::new().days(DEFAULT_APPROVAL_DAYS)),
            removals: &removals,
        };
        file.to_string()
    }
}

/// A datafile that approves removals. Its `Display` is the text of the file.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalFile<'a> {
    /// Its name in the data, which no other approval has.
    pub name: &'a str,
    /// Why these things may be removed.
    pub description: &'a str,
    /// The integration that may remove them.
    pub integration: &'a str,
    /// The last day on which it may.
    pub expiration: Date,
    /// What it may remove.
    pub removals: &'a [ThingRef],
}

impl fmt::Display for ApprovalFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, integration, expiration, removals } = *self;
        writeln!(f, "$schema: /app-interface/removal-approval-1.yml\n\nlabels: {{}}\n")?;
        writeln!(f, "name: {}\ndescription: {}", scalar(name), scalar(description))?;
        writeln!(f, "integration: {}\nexpiration: \"{expiration}\"\nremovals:", scalar(integration))?;
        for ThingRef { target, kind, name } in removals {
            writeln!(f, "- target: {}\n  kind: {}\n  name: {}", quoted(target), quoted(kind), quoted(name))?;
        }
        Ok(())
    }
}

/// A text as YAML has it: plain if it is of letters, dashes and blanks between them, else in double quotes.
fn scalar(text: &str) -> String {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '_'))
    };
    let is_long = text.contains(['-', ' ']);
    if is_long && text.split(' ').all(is_word) { text.to_owned() } else { quoted(text) }
}

/// A text as YAML has it in double quotes. That is JSON, but for characters that are not safe to look at.
fn quoted(text: &str) -> String {
    shown_yaml(&serde_json::to_string(text).expect("text is JSON")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_holds_up_to_its_last_day() {
        let check = |expiration: &str, expect: Validity| {
            let (path, integration) = (String::new(), String::new());
            let approval =
                Approval { path, integration, expiration: expiration.to_owned(), removals: vec![] };
            assert_eq!(approval.validity(jiff::civil::date(2026, 11, 17)), expect, "{expiration}");
        };
        check("2026-11-18", Validity::Valid);
        check("2026-11-17", Validity::Valid);
        check("2026-11-16", Validity::Expired);
        check("2026-11-31", Validity::NoDate);
        check("soon", Validity::NoDate);
    }

    #[test]
    fn a_scalar_is_plain_only_where_no_reader_of_yaml_takes_it_for_something_else() {
        let check = |text: &str, expect: &str| assert_eq!(scalar(text), expect);
        check("openshift-limitranges-2026-11-17", "openshift-limitranges-2026-11-17");
        check("why these may go", "why these may go");
        check("no", "\"no\"");
        check("x: y", "\"x: y\"");
        check("a  b", "\"a  b\"");
        check("- a", "\"- a\"");
        check("a #b", "\"a #b\"");
        check("2026-11-17", "\"2026-11-17\"");
        check("", "\"\"");
        check("a\nb\u{202e}\u{e0041}", "\"a\\nb\\u202e\\U000e0041\"");
    }
}

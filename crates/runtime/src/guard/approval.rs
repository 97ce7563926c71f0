//! Approvals: datafiles that allow the removal of objects by name, until a date.

use std::collections::BTreeMap;
use std::fmt;

use qontract_diagnostics::sanitize_yaml;
use serde::{Deserialize, Serialize};

use crate::plan::{ObjectKey, PlanDigest};

/// The length of a day.
pub type Date = jiff::civil::Date;

/// Default validity of a new approval, in days.
pub const DEFAULT_APPROVAL_DAYS: i32 = 7;

/// A reference to an object. Its fields are spelled as in the data and in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectRef {
    /// The scope of the object, as it is spelled in plans.
    pub target: String,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
}

impl From<&ObjectKey> for ObjectRef {
    fn from(ObjectKey { scope, kind, name }: &ObjectKey) -> Self {
        Self { target: scope.to_string(), kind: kind.clone(), name: name.clone() }
    }
}

/// Removals that are approved for one integration until a date.
///
/// ```
/// use jiff::civil::date;
/// use qontract_runtime::guard::{Approval, Validity};
///
/// let approval: Approval = serde_json::from_str(
///     r#"{"integration": "groups", "expiration": "2026-01-31", "removals": [
///         {"target": "cluster=c1", "kind": "Namespace", "name": "old"}]}"#,
/// )?;
/// assert_eq!(approval.validity(date(2026, 1, 31)), Validity::Valid);
/// assert_eq!(approval.validity(date(2026, 2, 1)), Validity::Expired);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Approval {
    /// The path of the datafile in the bundle; empty if unknown.
    #[serde(default)]
    pub path: String,
    /// The integration that may remove the objects.
    pub integration: String,
    /// The last day of validity, as `2026-01-31`.
    pub expiration: String,
    /// Whether each removal is approved only once. If so, removing an object that was created again needs another
    /// approval.
    #[serde(default)]
    pub once: Option<bool>,
    /// The approved removals.
    pub removals: Vec<ApprovedRemoval>,
}

/// An approved removal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct ApprovedRemoval {
    /// The object whose removal is approved.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// The digest of the plan of the object's shard. If it is set, the removal is approved only as part of this plan.
    #[serde(default)]
    pub plan: Option<PlanDigest>,
}

impl From<ObjectRef> for ApprovedRemoval {
    fn from(object: ObjectRef) -> Self {
        Self { object, plan: None }
    }
}

/// The validity of an approval on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The approval is valid.
    Valid,
    /// The last day of the approval has passed.
    Expired,
    /// The last day is not a valid date, so the approval is never valid.
    NoDate,
}

impl Approval {
    /// The validity of the approval on `today`.
    pub fn validity(&self, today: Date) -> Validity {
        match self.expiration.parse::<Date>() {
            Ok(last) if today <= last => Validity::Valid,
            Ok(_) => Validity::Expired,
            Err(_) => Validity::NoDate,
        }
    }

    /// The datafile name for messages.
    pub fn file(&self) -> String {
        file_of(&self.path)
    }
}

/// The valid approval of one removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The path of the approval; empty if unknown.
    pub path: String,
    /// The last day of the approval's validity.
    pub expiration: String,
    /// Whether the removal is approved only once.
    pub once: bool,
    /// The plan to which the approval is bound.
    pub plan: Option<PlanDigest>,
}

impl Grant {
    /// The datafile name for messages.
    pub fn file(&self) -> String {
        file_of(&self.path)
    }
}

fn file_of(path: &str) -> String {
    if path.is_empty() { "in the data".to_owned() } else { format!("data{path}") }
}

/// An approval with its validity today.
#[derive(Clone, Debug)]
pub(super) struct CheckedApproval {
    pub approval: Approval,
    pub validity: Validity,
}

/// All approvals of the data.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    /// Removals that are approved today, by integration and object.
    valid: BTreeMap<String, BTreeMap<ObjectRef, Vec<Grant>>>,
    /// All approvals, with their validity today.
    all: Vec<CheckedApproval>,
    today: Option<Date>,
}

impl Approvals {
    /// The approvals in the data, with their validity on `today`.
    pub fn valid_on(today: Date, approvals: Vec<Approval>) -> Self {
        let mut valid: BTreeMap<String, BTreeMap<ObjectRef, Vec<Grant>>> = BTreeMap::new();
        let mut all = Vec::new();
        for approval in approvals {
            let validity = approval.validity(today);
            if validity == Validity::Valid {
                let approved = valid.entry(approval.integration.clone()).or_default();
                for ApprovedRemoval { object, plan } in &approval.removals {
                    approved.entry(object.clone()).or_default().push(Grant {
                        path: approval.path.clone(),
                        expiration: approval.expiration.clone(),
                        once: approval.once == Some(true),
                        plan: plan.clone(),
                    });
                }
            }
            all.push(CheckedApproval { approval, validity });
        }
        Self { valid, all, today: Some(today) }
    }

    /// The valid approvals for the removal of an object by an integration.
    pub(super) fn grants(&self, integration: &str, object: &ObjectRef) -> &[Grant] {
        self.valid.get(integration).and_then(|valid| valid.get(object)).map_or(&[], Vec::as_slice)
    }

    /// Whether the data has an approval with this path.
    pub(super) fn contains_file(&self, path: &str) -> bool {
        self.all.iter().any(|checked| checked.approval.path == path)
    }

    /// Whether an approval with this last day can still be valid. One day is added, so that a clock that is set back
    /// by several hours does not change the result.
    pub(super) fn is_current(&self, expiration: &str) -> bool {
        let yesterday = self.today.and_then(|today| today.yesterday().ok());
        let last = expiration.parse::<Date>().ok();
        yesterday.is_none_or(|yesterday| last.is_some_and(|last| last >= yesterday))
    }

    /// All approvals, with their validity.
    pub(super) fn all(&self) -> &[CheckedApproval] {
        &self.all
    }

    /// The content of a datafile that approves the removal of these objects.
    pub fn datafile_text(integration: &str, objects: &[&ObjectKey], today: Date) -> String {
        let removals: Vec<ApprovedRemoval> =
            objects.iter().map(|object| ObjectRef::from(*object).into()).collect();
        let file = ApprovalFile {
            name: &format!("{integration}-{today}"),
            description: "why these may be removed",
            integration,
            expiration: today.saturating_add(jiff::Span::new().days(DEFAULT_APPROVAL_DAYS)),
            once: false,
            removals: &removals,
        };
        file.to_string()
    }
}

/// A datafile that approves removals. `Display` writes the content of the file.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalFile<'a> {
    /// The unique name in the data.
    pub name: &'a str,
    /// The reason for the removals.
    pub description: &'a str,
    /// The integration whose removals are approved.
    pub integration: &'a str,
    /// The last day of validity.
    pub expiration: Date,
    /// Whether each removal is approved only once.
    pub once: bool,
    /// The approved removals.
    pub removals: &'a [ApprovedRemoval],
}

impl fmt::Display for ApprovalFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, integration, expiration, once, removals } = *self;
        writeln!(f, "$schema: /app-interface/removal-approval-1.yml\n\nlabels: {{}}\n")?;
        writeln!(f, "name: {}\ndescription: {}", scalar(name), scalar(description))?;
        writeln!(f, "integration: {}\nexpiration: \"{expiration}\"", scalar(integration))?;
        if once {
            writeln!(f, "once: true")?;
        }
        writeln!(f, "removals:")?;
        for ApprovedRemoval { object: ObjectRef { target, kind, name }, plan } in removals {
            writeln!(f, "- target: {}\n  kind: {}\n  name: {}", quoted(target), quoted(kind), quoted(name))?;
            if let Some(plan) = plan {
                writeln!(f, "  plan: {}", quoted(plan.as_str()))?;
            }
        }
        Ok(())
    }
}

/// A string as a YAML scalar: plain if it consists only of words of letters, digits, dashes and underscores;
/// otherwise, in double quotes.
fn scalar(text: &str) -> String {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '_'))
    };
    let is_long = text.contains(['-', ' ']);
    if is_long && text.split(' ').all(is_word) { text.to_owned() } else { quoted(text) }
}

/// A string as a double-quoted YAML scalar: a JSON string in which unsafe characters are escaped.
fn quoted(text: &str) -> String {
    sanitize_yaml(&serde_json::to_string(text).expect("text is JSON")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_valid_up_to_its_last_day() {
        let check = |expiration: &str, expect: Validity| {
            let (path, integration) = (String::new(), String::new());
            let (expiration, once) = (expiration.to_owned(), None);
            let approval = Approval { path, integration, expiration, once, removals: vec![] };
            assert_eq!(approval.validity(jiff::civil::date(2026, 11, 17)), expect, "{approval:?}");
        };
        check("2026-11-18", Validity::Valid);
        check("2026-11-17", Validity::Valid);
        check("2026-11-16", Validity::Expired);
        check("2026-11-31", Validity::NoDate);
        check("soon", Validity::NoDate);
    }

    #[test]
    fn a_scalar_is_plain_only_where_no_yaml_reader_misinterprets_it() {
        let check = |text: &str, expect: &str| assert_eq!(scalar(text), expect);
        check("openshift-limitranges-2026-11-17", "openshift-limitranges-2026-11-17");
        check("why these may be removed", "why these may be removed");
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

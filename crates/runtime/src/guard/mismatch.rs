//! Diagnoses approvals that have no effect: expired, misspelt, or without a matching removal.

use std::collections::BTreeSet;

use qontract_diagnostics::suggest::{self, ComparisonBudget};

use super::approval::CheckedApproval;
use super::{Approval, Approvals, ObjectRef, Validity};

impl Approvals {
    /// The reason why an approval that is probably intended for `object` does not allow `integration` to remove the
    /// object. `removed` contains all removals of the run: an approval of another removal in this set is not a
    /// misspelt approval of `object`. `budget` limits the search for misspelt approvals.
    pub fn mismatch(
        &self,
        integration: &str,
        object: &ObjectRef,
        removed: &BTreeSet<ObjectRef>,
        budget: &ComparisonBudget,
    ) -> Option<String> {
        let names = |approval: &Approval| approval.removals.iter().any(|entry| entry.object == *object);
        let exact =
            self.all().iter().find(|one| one.approval.integration == integration && names(&one.approval));
        if let Some(CheckedApproval { approval, validity }) = exact {
            return describe_lapse(approval, *validity);
        }
        if let Some(CheckedApproval { approval, .. }) = self.all().iter().find(|one| names(&one.approval)) {
            let (file, other) = (approval.file(), &approval.integration);
            return Some(format!(
                "approval `{file}` is for the integration `{other}`, not for `{integration}`"
            ));
        }
        let entries = self.all().iter().map(|one| one.approval.removals.len()).sum();
        budget.spend(entries, || {
            self.all().iter().find_map(|CheckedApproval { approval, .. }| {
                let entries = approval.removals.iter().map(|entry| &entry.object);
                let mut entries = entries.filter(|entry| !removed.contains(entry));
                let differing =
                    entries.find_map(|entry| differences(approval, entry, integration, object))?;
                Some(format!("approval `{}` does not match: {differing}", approval.file()))
            })
        })
    }

    /// Remarks about the approvals of an integration, each with the path of the approval. The remarks are about
    /// approvals that have expired and, if the run was complete, about approvals that match no removal in `removed`.
    pub fn remarks(
        &self,
        integration: &str,
        removed: &BTreeSet<ObjectRef>,
        is_complete: bool,
    ) -> Vec<(String, String)> {
        let mut remarks = Vec::new();
        let of_integration = self.all().iter().filter(|one| one.approval.integration == integration);
        for CheckedApproval { approval, validity } in of_integration {
            let text = match validity {
                Validity::Expired | Validity::NoDate => describe_lapse(approval, *validity),
                Validity::Valid if is_complete => describe_unmatched(approval, removed),
                Validity::Valid => None,
            };
            remarks.extend(text.map(|text| (approval.path.clone(), text)));
        }
        remarks
    }
}

fn describe_lapse(approval: &Approval, validity: Validity) -> Option<String> {
    let (file, day) = (approval.file(), &approval.expiration);
    match validity {
        Validity::Valid => None,
        Validity::Expired => Some(format!("approval `{file}` expired on {day}")),
        Validity::NoDate => Some(format!("approval `{file}` is never valid: `{day}` is not a date")),
    }
}

fn describe_unmatched(approval: &Approval, removed: &BTreeSet<ObjectRef>) -> Option<String> {
    let entries = approval.removals.iter().map(|entry| &entry.object);
    let open: Vec<&ObjectRef> = entries.filter(|entry| !removed.contains(entry)).collect();
    let first = open.first()?;
    let (file, all) = (approval.file(), approval.removals.len());
    let example = format!("{} `{}` in `{}`", first.kind, first.name, first.target);
    Some(if open.len() == all {
        format!(
            "approval `{file}` matches no planned removal, such as {example}; delete it if it has been used"
        )
    } else {
        format!("approval `{file}`: {} of {all} removals match nothing, such as {example}", open.len())
    })
}

/// The corrections that make an entry match the object, if they are small.
fn differences(
    approval: &Approval,
    entry: &ObjectRef,
    integration: &str,
    object: &ObjectRef,
) -> Option<String> {
    let fields = [
        ("integration", approval.integration.as_str(), integration),
        ("target", &entry.target, &object.target),
        ("kind", &entry.kind, &object.kind),
        ("name", &entry.name, &object.name),
    ];
    let mut texts = Vec::new();
    for (field, written, meant) in fields.into_iter().filter(|(_, written, meant)| written != meant) {
        let is_part =
            field == "target" && !written.trim().is_empty() && meant.starts_with(written.trim_end());
        if !is_part && !is_near(written, meant) {
            return None;
        }
        texts.push(format!("its {field} is `{written}`, not `{meant}`"));
    }
    (!texts.is_empty()).then(|| texts.join(", and "))
}

/// Whether one name may be a misspelling of the other. Names that differ only in digits are not misspellings, because
/// they are members of a series.
fn is_near(written: &str, meant: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|one| !one.is_ascii_digit()).collect::<String>();
    letters(written) != letters(meant) && suggest::nearest(written, [meant]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: jiff::civil::Date = jiff::civil::date(2026, 11, 17);

    fn object(words: &str) -> ObjectRef {
        let mut words = words.split('|').map(str::to_owned);
        let mut next = || words.next().unwrap();
        ObjectRef { target: next(), kind: next(), name: next() }
    }

    /// Parses an approval that is written as `integration expiration object…`.
    fn approval(text: &str) -> Approval {
        let mut words = text.split(';').map(str::to_owned);
        Approval {
            path: "/approvals/x.yml".to_owned(),
            integration: words.next().unwrap(),
            expiration: words.next().unwrap(),
            once: None,
            removals: words.map(|word| object(&word).into()).collect(),
        }
    }

    /// Checks the remark about the approvals when the removal of `limits` is held.
    fn check(approvals: &[&str], expect: Option<&str>) {
        let approvals = Approvals::valid_on(TODAY, approvals.iter().map(|text| approval(text)).collect());
        let held = object("cluster=c, kind=LimitRange|LimitRange|limits");
        let removed = BTreeSet::from([held.clone(), object("cluster=c, kind=LimitRange|LimitRange|limit")]);
        assert_eq!(
            approvals.mismatch("limitranges", &held, &removed, &ComparisonBudget::new(1)).as_deref(),
            expect
        );
    }

    #[test]
    fn an_intended_approval_is_named_with_its_mistakes() {
        let exact = "cluster=c, kind=LimitRange|LimitRange|limits";
        check(&[], None);
        check(&[&format!("limitranges;2026-12-01;{exact}")], None);
        check(
            &[&format!("limitranges;2026-11-01;{exact}")],
            Some("approval `data/approvals/x.yml` expired on 2026-11-01"),
        );
        check(
            &[&format!("limitranges;2026-11-01;c|K|another;{exact};c|K|third")],
            Some("approval `data/approvals/x.yml` expired on 2026-11-01"),
        );
        check(
            &[&format!("limitranges;2026-11-99;{exact}")],
            Some("approval `data/approvals/x.yml` is never valid: `2026-11-99` is not a date"),
        );
        check(
            &[&format!("resourcequotas;2026-12-01;{exact}")],
            Some(
                "approval `data/approvals/x.yml` is for the integration `resourcequotas`, not for `limitranges`",
            ),
        );
        check(
            &["limitranges;2026-12-01;cluster=c, kind=LimitRange|limitrange|limitz"],
            Some(
                "approval `data/approvals/x.yml` does not match: its kind is `limitrange`, not `LimitRange`, and its name is `limitz`, not `limits`",
            ),
        );
        check(
            &["limitranges;2026-12-01;cluster=c|LimitRange|limits"],
            Some(
                "approval `data/approvals/x.yml` does not match: its target is `cluster=c`, not `cluster=c, kind=LimitRange`",
            ),
        );
        check(
            &["limitrange;2026-12-01;cluster=c, kind=LimitRange|LimitRange|limits "],
            Some(
                "approval `data/approvals/x.yml` does not match: its integration is `limitrange`, not `limitranges`, and its name is `limits `, not `limits`",
            ),
        );
    }

    #[test]
    fn an_approval_of_something_else_is_not_mistaken_for_a_misspelt_one() {
        check(&["limitranges;2026-12-01;cluster=c, kind=LimitRange|LimitRange|other"], None);
        check(&["limitranges;2026-12-01;|LimitRange|limits"], None);
        // The approval matches another removal of the same run.
        check(&["limitranges;2026-12-01;cluster=c, kind=LimitRange|LimitRange|limit"], None);
        for (written, meant, expect) in
            [("c1", "c2", false), ("surplus-1", "surplus-12", false), ("surplas-1", "surplus-1", true)]
        {
            assert_eq!(is_near(written, meant), expect, "{written} {meant}");
        }
    }

    #[test]
    fn the_search_for_misspelt_approvals_is_bounded() {
        let texts = ["x;2026-12-01;c|K|nams;c|K|other"];
        let approvals = Approvals::valid_on(TODAY, texts.iter().map(|text| approval(text)).collect());
        let (object, removed, budget) = (object("c|K|name"), BTreeSet::new(), ComparisonBudget::new(3));
        assert!(approvals.mismatch("x", &object, &removed, &budget).is_some());
        assert!(approvals.mismatch("x", &object, &removed, &budget).is_none());
    }

    #[test]
    fn approvals_that_have_expired_or_match_nothing_are_listed() {
        let all = [
            "x;2026-11-01;c|K|gone",
            "x;2026-12-01;c|K|a;c|K|b",
            "x;2026-12-01;c|K|used;c|K|done",
            "x;2026-12-01;c|K|a",
            "other;2026-11-01;c|K|a",
        ];
        let approvals = Approvals::valid_on(TODAY, all.iter().map(|text| approval(text)).collect());
        let removed = BTreeSet::from([object("c|K|a")]);
        let texts = |is_complete| -> Vec<String> {
            approvals.remarks("x", &removed, is_complete).into_iter().map(|(_, text)| text).collect()
        };
        let expired = "approval `data/approvals/x.yml` expired on 2026-11-01";
        assert_eq!(texts(false), [expired]);
        assert_eq!(
            texts(true),
            [
                expired,
                "approval `data/approvals/x.yml`: 1 of 2 removals match nothing, such as K `b` in `c`",
                "approval `data/approvals/x.yml` matches no planned removal, such as K `used` in `c`; delete it if it has been used",
            ]
        );
    }
}

//! Renders a plan as text for a terminal.

use std::collections::BTreeMap;

use qontract_diagnostics::{Style, Styled, counted, shown};
use serde_json::Value;

use crate::model::{
    ChangeAction, FieldAction, IntegrationReport, Location, PlanReport, ReportedChange, ReportedFault,
    ReportedField, StepResult, Totals, UncheckedIntegration,
};

/// Limits on how much of a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Maximum number of fields shown per change.
    pub max_fields: usize,
    /// Maximum number of characters shown per value.
    pub max_value: usize,
    /// Whether the fields of added things are shown.
    pub bodies: bool,
}

/// Removed fields come first, and are shown up to this number even if `max_fields` is lower.
const MAX_REMOVED: usize = 100;

impl Default for Detail {
    fn default() -> Self {
        Self { max_fields: 40, max_value: 200, bodies: false }
    }
}

impl Detail {
    /// No limits.
    pub const FULL: Self = Self { max_fields: usize::MAX, max_value: usize::MAX, bodies: true };

    /// The fields of a change that are shown, and the number of hidden ones.
    pub(crate) fn fields(self, change: &ReportedChange) -> (&[ReportedField], usize) {
        let removed = change.fields.iter().take_while(|field| field.action == FieldAction::Removed).count();
        let most = match change.action {
            ChangeAction::Add if !self.bodies => 0,
            _ => self.max_fields.max(removed.min(MAX_REMOVED)),
        };
        let (shown, folded) = change.fields.split_at(most.min(change.fields.len()));
        (shown, folded.len())
    }
}

/// Renders the plan of several integrations: each with its name, and a summary.
pub fn render(report: &PlanReport, detail: Detail) -> Styled {
    let mut out = Styled::default();
    for integration in &report.integrations {
        let body = body(integration, detail, "  ");
        if body.is_empty() && integration.notes.is_empty() {
            continue;
        }
        out.push(Style::Bold, &shown(&integration.integration));
        out.push(Style::Plain, "\n");
        for cause in &integration.causes {
            out.push(Style::Dim, &format!("  because of {}\n", shown(&cause.to_string())));
        }
        out.append(&body);
        for note in &integration.notes {
            out.push(Style::Dim, &format!("  note: {}\n", shown(note)));
        }
        out.push(Style::Plain, "\n");
    }
    for note in report.notes.iter().chain(&report.disabled()) {
        out.push(Style::Dim, &format!("note: {}\n", shown(note)));
    }
    for UncheckedIntegration { integration, reason } in &report.unchecked {
        out.push(Style::Warning, "warning");
        out.push(Style::Plain, &format!(": {} not checked: {}\n", shown(integration), shown(reason)));
    }
    if let Some(invalid) = &report.invalid {
        out.push(Style::Error, &invalid.summary());
        out.push(Style::Plain, "; nothing was planned");
    } else if report.totals.changes() + report.totals.held + report.totals.not_done + report.totals.errors
        == 0
    {
        out.push(Style::Plain, "no changes");
    } else {
        summary(&report.totals, &mut out);
        let concerned = report.integrations.iter().filter(|one| has_content(&one.totals)).count();
        out.push(Style::Plain, &format!(", in {}", counted(concerned, "integration")));
    }
    if !report.unaffected.is_empty() {
        out.push(
            Style::Plain,
            &format!("; {} not affected", counted(report.unaffected.len(), "integration")),
        );
    }
    if !report.unchecked.is_empty() {
        out.push(Style::Plain, "; ");
        let text = format!("{} not checked", counted(report.unchecked.len(), "integration"));
        out.push(Style::Warning, &text);
    }
    out.push(Style::Plain, "\n");
    for integration in &report.integrations {
        approval(integration, &mut out);
    }
    out
}

/// Renders the plan of one integration, without its name; empty if there is nothing to report.
pub fn render_one(integration: &IntegrationReport, detail: Detail) -> Styled {
    let mut out = body(integration, detail, "");
    if out.is_empty() {
        return out;
    }
    summary(&integration.totals, &mut out);
    out.push(Style::Plain, "\n");
    approval(integration, &mut out);
    out
}

fn has_content(totals: &Totals) -> bool {
    totals.changes() + totals.held + totals.not_done + totals.errors > 0
}

/// Adds the datafile that would approve the held changes.
fn approval(integration: &IntegrationReport, out: &mut Styled) {
    let Some(approval) = &integration.approval else { return };
    out.push(Style::Plain, "\nto approve the held changes, add this to the data:\n\n");
    for line in approval.lines() {
        let line = if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") };
        out.push(Style::Plain, &line);
    }
}

/// Changes, waits and errors, sorted by shard; those without a shard come last.
fn body(integration: &IntegrationReport, detail: Detail, indent: &str) -> Styled {
    let mut shards: BTreeMap<&str, Styled> = BTreeMap::new();
    let mut rest = Styled::default();
    for change in &integration.changes {
        one_change(change, detail, indent, shards.entry(&change.shard).or_default());
    }
    for wait in &integration.waits {
        let out = shards.entry(&wait.shard).or_default();
        out.push(Style::Plain, indent);
        out.push(Style::Warning, "waits");
        out.push(Style::Plain, &format!(": {}\n", shown(&wait.message)));
        locations(&wait.locations, indent, out);
    }
    for error in &integration.errors {
        let out = match error.shards.first() {
            Some(shard) => shards.entry(shard).or_default(),
            None => &mut rest,
        };
        one_error(error, indent, out);
    }
    let mut out = Styled::default();
    for one in shards.values().chain([&rest]) {
        out.append(one);
    }
    out
}

fn style_of(action: ChangeAction) -> Style {
    match action {
        ChangeAction::Add => Style::Added,
        ChangeAction::Change => Style::Changed,
        ChangeAction::Replace | ChangeAction::Remove => Style::Removed,
    }
}

fn one_change(change: &ReportedChange, detail: Detail, indent: &str, out: &mut Styled) {
    out.push(Style::Plain, indent);
    match change.result {
        Some(StepResult::Done) => out.push(Style::Added, "✓ "),
        Some(StepResult::Failed) => out.push(Style::Error, "✗ "),
        Some(StepResult::Interrupted) => out.push(Style::Error, "? "),
        Some(StepResult::NotTried) => out.push(Style::Dim, "· "),
        None => {}
    }
    if change.held.is_some() {
        out.push(Style::Warning, if change.approvable { "held" } else { "not done" });
        out.push(Style::Plain, ": ");
    }
    let line = format!("{} {}", change.action.sign(), shown(&change.summary));
    out.push(style_of(change.action), &line);
    out.push(Style::Plain, "\n");
    for note in &change.notes {
        out.push(Style::Plain, &format!("{indent}    {}\n", shown(note)));
    }
    let (fields, folded) = detail.fields(change);
    for field in fields {
        let style = match field.action {
            FieldAction::Added => Style::Added,
            FieldAction::Changed => Style::Changed,
            FieldAction::Removed => Style::Removed,
        };
        out.push(Style::Plain, &format!("{indent}    "));
        out.push(style, &field_line(field, detail.max_value));
        out.push(Style::Plain, "\n");
    }
    if folded > 0 {
        let noun = if fields.is_empty() { "field" } else { "more field" };
        let text = format!("{indent}    … {} (--full shows them)\n", counted(folded, noun));
        out.push(Style::Dim, &text);
    }
    if let Some(location) = &change.location {
        out.push(Style::Dim, &format!("{indent}    --> {}\n", shown(&location.to_string())));
    }
    if let Some(why) = &change.held {
        out.push(Style::Plain, &format!("{indent}    {}\n", shown(why)));
    }
}

impl ReportedField {
    /// Maximum number of characters shown of the value. Removed values get more, since they cannot be seen
    /// afterwards.
    pub(crate) fn max_value(&self, usual: usize) -> usize {
        match self.action {
            FieldAction::Removed => usual.saturating_mul(3),
            FieldAction::Added | FieldAction::Changed => usual,
        }
    }
}

/// A field on one line: its sign, its path and its values.
fn field_line(field: &ReportedField, max_value: usize) -> String {
    let ReportedField { action, path, before, after } = field;
    let max = field.max_value(max_value);
    let show = |value: &Value| shortened(&value.to_string(), max);
    let values = match (before, after) {
        (None, None) => String::new(),
        (Some(value), None) | (None, Some(value)) => format!(": {}", show(value)),
        (Some(before), Some(after)) => format!(": {} → {}", show(before), show(after)),
    };
    shown(&format!("{} {path}{values}", action.sign())).into_owned()
}

/// The first `max` characters of a text, with the number of omitted ones.
pub fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => {
            let more = counted(text[end..].chars().count(), "more character");
            format!("{}… ({more})", &text[..end])
        }
        None => text.to_owned(),
    }
}

fn one_error(error: &ReportedFault, indent: &str, out: &mut Styled) {
    out.push(Style::Plain, indent);
    out.push(Style::Error, "error");
    out.push(Style::Plain, &format!(": {}\n", shown(&error.message)));
    if let Some(shards) = error.concerned_shards() {
        out.push(Style::Plain, &format!("{indent}    in {}\n", shown(&shards)));
    }
    for line in &error.details {
        out.push(Style::Plain, &format!("{indent}    {}\n", shown(line)));
    }
    locations(&error.locations, indent, out);
    if let Some(hint) = &error.hint {
        let lines: Vec<_> = hint.lines().map(shown).collect();
        out.push(Style::Plain, &format!("{indent}    hint: {}\n", lines.join(&format!("\n{indent}    "))));
    }
}

fn locations(locations: &[Location], indent: &str, out: &mut Styled) {
    for location in locations {
        out.push(Style::Dim, &format!("{indent}    --> {}\n", shown(&location.to_string())));
    }
}

/// Adds `1 to add, 0 to change, 2 to remove` and other counts, without a line break.
fn summary(totals: &Totals, out: &mut Styled) {
    let Totals { add, change, replace, remove, fields_removed: _, held, not_done, errors, applied } = *totals;
    let mut count = |style: Style, count: usize, text: String| {
        out.push(if count > 0 { style } else { Style::Plain }, &text);
    };
    count(Style::Added, add, format!("{add} to add"));
    count(Style::Plain, 0, ", ".to_owned());
    count(Style::Changed, change, format!("{change} to change"));
    count(Style::Plain, 0, ", ".to_owned());
    count(Style::Removed, remove, format!("{remove} to remove"));
    if replace > 0 {
        count(Style::Plain, 0, ", ".to_owned());
        count(Style::Removed, replace, format!("{replace} to replace"));
    }
    if held > 0 {
        count(Style::Plain, 0, ", ".to_owned());
        count(Style::Warning, held, format!("{held} held"));
    }
    if not_done > 0 {
        count(Style::Plain, 0, ", ".to_owned());
        count(Style::Warning, not_done, format!("{not_done} not done"));
    }
    if let Some(applied) = applied {
        count(Style::Plain, applied, format!("; {} done", counted(applied, "step")));
    }
    if errors > 0 {
        count(Style::Plain, 0, "; ".to_owned());
        count(Style::Error, errors, counted(errors, "error"));
    }
}

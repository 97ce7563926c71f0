//! Renders a plan as text for a terminal.

use std::collections::BTreeMap;

use qontract_access::ChangeKind;
pub use qontract_diagnostics::human::shortened;
use qontract_diagnostics::{StyledText, TextStyle, pluralize, sanitize};
use serde_json::Value;

use crate::model::{
    DeclaredField, FieldAction, IntegrationReport, Location, PlanReport, ReleasedEntry, ReportedChange,
    ReportedFault, ReportedField, ReportedWait, StepResult, Totals, UncheckedIntegration, UnplannedEntry,
};

/// The level of detail of a rendered plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanDetail {
    /// Maximum number of fields shown per change.
    pub max_fields: usize,
    /// Maximum number of characters shown per value.
    pub max_value: usize,
    /// Whether the fields of added objects are shown.
    pub show_added_fields: bool,
}

/// Maximum number of removed fields shown per change, even if `max_fields` is lower. Removed fields come
/// first.
const MAX_REMOVED_FIELDS: usize = 100;

impl Default for PlanDetail {
    fn default() -> Self {
        Self { max_fields: 40, max_value: 200, show_added_fields: false }
    }
}

impl PlanDetail {
    /// No limits.
    pub const FULL: Self = Self { max_fields: usize::MAX, max_value: usize::MAX, show_added_fields: true };

    /// The fields of a change that are shown, and the number of hidden fields.
    pub(crate) fn fields(self, change: &ReportedChange) -> (&[ReportedField], usize) {
        let removed = change.fields.iter().take_while(|field| field.action == FieldAction::Removed).count();
        let most = match change.action {
            ChangeKind::Add if !self.show_added_fields => 0,
            _ => self.max_fields.max(removed.min(MAX_REMOVED_FIELDS)),
        };
        let (shown, folded) = change.fields.split_at(most.min(change.fields.len()));
        (shown, folded.len())
    }
}

/// Renders the plan of several integrations: each under its name, followed by a summary.
pub fn render(report: &PlanReport, detail: PlanDetail) -> StyledText {
    let mut out = StyledText::default();
    for integration in &report.integrations {
        let body = body(integration, detail, "  ");
        if body.is_empty() && integration.notes.is_empty() {
            continue;
        }
        out.push(TextStyle::Bold, &sanitize(&integration.integration));
        out.push(TextStyle::Plain, "\n");
        for cause in &integration.causes {
            out.push(TextStyle::Dim, &format!("  because of {}\n", sanitize(&cause.to_string())));
        }
        out.append(&body);
        for note in &integration.notes {
            out.push(TextStyle::Dim, &format!("  note: {}\n", sanitize(note)));
        }
        out.push(TextStyle::Plain, "\n");
    }
    for note in report.notes.iter().chain(&report.disabled()) {
        out.push(TextStyle::Dim, &format!("note: {}\n", sanitize(note)));
    }
    for UncheckedIntegration { integration, reason } in &report.unchecked {
        out.push(TextStyle::Warning, "warning");
        out.push(
            TextStyle::Plain,
            &format!(": {} not checked: {}\n", sanitize(integration), sanitize(reason)),
        );
    }
    if let Some(invalid) = &report.invalid {
        out.push(TextStyle::Error, &invalid.summary());
        out.push(TextStyle::Plain, "; nothing was planned");
    } else if report.totals.is_empty() {
        out.push(TextStyle::Plain, "no changes");
    } else {
        summary(&report.totals, &mut out);
        let concerned = report.integrations.iter().filter(|one| !one.totals.is_empty()).count();
        out.push(TextStyle::Plain, &format!(", in {}", pluralize(concerned, "integration")));
    }
    if !report.unaffected.is_empty() {
        out.push(
            TextStyle::Plain,
            &format!("; {} not affected", pluralize(report.unaffected.len(), "integration")),
        );
    }
    if !report.unchecked.is_empty() {
        out.push(TextStyle::Plain, "; ");
        let text = format!("{} not checked", pluralize(report.unchecked.len(), "integration"));
        out.push(TextStyle::Warning, &text);
    }
    out.push(TextStyle::Plain, "\n");
    for integration in &report.integrations {
        approval(integration, &mut out);
    }
    out
}

/// Renders the plan of one integration, without its name; empty if there is nothing to report.
pub fn render_integration(integration: &IntegrationReport, detail: PlanDetail) -> StyledText {
    let mut out = body(integration, detail, "");
    if out.is_empty() && integration.totals.is_empty() {
        return out;
    }
    summary(&integration.totals, &mut out);
    out.push(TextStyle::Plain, "\n");
    approval(integration, &mut out);
    out
}

/// Adds the datafile that would approve the held changes.
fn approval(integration: &IntegrationReport, out: &mut StyledText) {
    let Some(approval) = &integration.approval else { return };
    out.push(TextStyle::Plain, "\nto approve the held changes, add this to the data:\n\n");
    for line in approval.lines() {
        let line = if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") };
        out.push(TextStyle::Plain, &line);
    }
}

/// The waits, rollouts and degradations of an integration, each with its label.
pub(crate) fn target_states(
    integration: &IntegrationReport,
) -> impl Iterator<Item = (&'static str, &ReportedWait)> {
    let IntegrationReport { waits, rollouts, degraded, .. } = integration;
    let waits = waits.iter().map(|one| ("waits", one));
    let rollouts = rollouts.iter().map(|one| ("rolling out", one));
    waits.chain(rollouts).chain(degraded.iter().map(|one| ("degraded", one)))
}

/// Changes, waits and errors, sorted by shard; those without a shard come last.
fn body(integration: &IntegrationReport, detail: PlanDetail, indent: &str) -> StyledText {
    let mut shards: BTreeMap<&str, StyledText> = BTreeMap::new();
    let mut rest = StyledText::default();
    for change in &integration.changes {
        let out = shards.entry(&change.shard).or_default();
        one_change(change, detail, indent, out);
        for (error, reason) in
            integration.errors.iter().filter_map(|error| Some((error, error.reason(change)?)))
        {
            step_error(error, reason, change, indent, out);
        }
    }
    for (word, one) in target_states(integration) {
        let out = shards.entry(&one.shard).or_default();
        out.push(TextStyle::Plain, indent);
        out.push(TextStyle::Warning, word);
        out.push(TextStyle::Plain, &format!(": {}\n", sanitize(&one.message)));
        locations(&one.locations, indent, out);
    }
    for entry in &integration.unplanned {
        one_unplanned(entry, detail, indent, shards.entry(&entry.shard).or_default());
    }
    for entry in &integration.released {
        let out = entry.shard.as_deref().map_or(&mut rest, |shard| shards.entry(shard).or_default());
        out.push(TextStyle::Plain, indent);
        out.push(TextStyle::Warning, released_word(entry));
        out.push(TextStyle::Plain, &format!(": {}\n", sanitize(&entry.message)));
        locations(&entry.locations, indent, out);
    }
    let is_of_step =
        |error: &&ReportedFault| integration.changes.iter().any(|change| error.reason(change).is_some());
    for error in integration.errors.iter().filter(|error| !is_of_step(error)) {
        let out = match error.shards.first() {
            Some(shard) => shards.entry(shard).or_default(),
            None => &mut rest,
        };
        one_error(error, indent, out);
    }
    let mut out = StyledText::default();
    for one in shards.values().chain([&rest]) {
        out.append(one);
    }
    out
}

/// The label of objects that are no longer managed.
pub(crate) fn released_word(entry: &ReleasedEntry) -> &'static str {
    if entry.removed_with_target { "removed with the namespace" } else { "no longer managed" }
}

/// The line above declared fields.
pub(crate) const DECLARED_FIELDS: &str = "declared changes, not compared with the target:";

fn one_unplanned(entry: &UnplannedEntry, detail: PlanDetail, indent: &str, out: &mut StyledText) {
    let UnplannedEntry { shard: _, message, locations: at, declared } = entry;
    out.push(TextStyle::Plain, indent);
    out.push(TextStyle::Warning, "not planned");
    out.push(TextStyle::Plain, &format!(": {}\n", sanitize(message)));
    locations(at, indent, out);
    if !declared.is_empty() {
        out.push(TextStyle::Plain, &format!("{indent}    {DECLARED_FIELDS}\n"));
    }
    let (shown, folded) = declared.split_at(detail.max_fields.min(declared.len()));
    for DeclaredField { field, location } in shown {
        out.push(TextStyle::Plain, &format!("{indent}      "));
        out.push(field_style(field.action), &field_line(field, detail.max_value));
        let place = location.as_ref().map(|at| format!("  --> {}", sanitize(&at.to_string())));
        out.push(TextStyle::Dim, &place.unwrap_or_default());
        out.push(TextStyle::Plain, "\n");
    }
    if !folded.is_empty() {
        let text = format!("{indent}      … {} (--full shows them)\n", pluralize(folded.len(), "more field"));
        out.push(TextStyle::Dim, &text);
    }
}

fn field_style(action: FieldAction) -> TextStyle {
    match action {
        FieldAction::Added => TextStyle::Added,
        FieldAction::Changed => TextStyle::Changed,
        FieldAction::Removed => TextStyle::Removed,
    }
}

fn style_of(action: ChangeKind) -> TextStyle {
    match action {
        ChangeKind::Add => TextStyle::Added,
        ChangeKind::Change => TextStyle::Changed,
        ChangeKind::Replace | ChangeKind::Remove => TextStyle::Removed,
    }
}

fn one_change(change: &ReportedChange, detail: PlanDetail, indent: &str, out: &mut StyledText) {
    out.push(TextStyle::Plain, indent);
    match change.result {
        Some(StepResult::Done) => out.push(TextStyle::Added, "✓ "),
        Some(StepResult::Failed) => out.push(TextStyle::Error, "✗ "),
        Some(StepResult::Interrupted) => out.push(TextStyle::Error, "? "),
        Some(StepResult::NotTried) => out.push(TextStyle::Dim, "· "),
        None => {}
    }
    if change.held.is_some() {
        let word = if change.approvable { "held" } else { not_done_word(change) };
        out.push(TextStyle::Warning, word);
        out.push(TextStyle::Plain, ": ");
    }
    if let Some(object) = change.unchanged_object() {
        out.push(TextStyle::Plain, &sanitize(object));
    } else {
        let line = format!("{} {}", change.action.sign(), sanitize(&change.summary));
        out.push(style_of(change.action), &line);
    }
    out.push(TextStyle::Plain, "\n");
    for note in &change.notes {
        out.push(TextStyle::Plain, &format!("{indent}    {}\n", sanitize(note)));
    }
    let (fields, folded) = detail.fields(change);
    for field in fields {
        out.push(TextStyle::Plain, &format!("{indent}    "));
        out.push(field_style(field.action), &field_line(field, detail.max_value));
        out.push(TextStyle::Plain, "\n");
    }
    if folded > 0 {
        let noun = if fields.is_empty() { "field" } else { "more field" };
        let text = format!("{indent}    … {} (--full shows them)\n", pluralize(folded, noun));
        out.push(TextStyle::Dim, &text);
    }
    for note in &change.trailing_notes {
        out.push(TextStyle::Plain, &format!("{indent}    {}\n", sanitize(note)));
    }
    if let Some(location) = &change.location {
        out.push(TextStyle::Dim, &format!("{indent}    --> {}\n", sanitize(&location.to_string())));
    }
    if let Some(why) = &change.held {
        out.push(TextStyle::Plain, &format!("{indent}    {}\n", sanitize(why)));
    }
}

impl ReportedFault {
    /// The message of the error of a step, without the text of the change that it begins with; `None` if the error is
    /// not that of this change.
    fn reason(&self, change: &ReportedChange) -> Option<&str> {
        let ReportedChange { action, shard, summary, .. } = change;
        let rest =
            self.message.strip_prefix(action.sign())?.strip_prefix(' ')?.strip_prefix(summary.as_str())?;
        rest.strip_prefix(": ").filter(|_| self.shards.contains(shard))
    }
}

/// The label of a change that is not made and that no approval releases.
pub(crate) fn not_done_word(change: &ReportedChange) -> &'static str {
    if change.unchanged_object().is_some() { "left unchanged" } else { "not done" }
}

impl ReportedChange {
    /// The object of a removal that is not made because the decision is not possible: the data may still
    /// declare the object. Such a change is not shown as a removal.
    fn unchanged_object(&self) -> Option<&str> {
        let is_undecided = self.held.is_some() && !self.approvable && self.action == ChangeKind::Remove;
        self.summary.strip_prefix("remove ").filter(|_| is_undecided)
    }
}

impl ReportedField {
    /// Maximum number of characters shown of the value. The limit is higher for removed values, which cannot
    /// be looked up afterwards.
    pub(crate) fn max_value(&self, usual: usize) -> usize {
        match self.action {
            FieldAction::Removed => usual.saturating_mul(3),
            FieldAction::Added | FieldAction::Changed => usual,
        }
    }
}

/// Formats a field on one line: sign, path and values.
fn field_line(field: &ReportedField, max_value: usize) -> String {
    let ReportedField { action, path, before, after } = field;
    let max = field.max_value(max_value);
    let show = |value: &Value| value_text(value, max);
    let values = match (before, after) {
        (None, None) => String::new(),
        (Some(value), None) | (None, Some(value)) => format!(": {}", show(value)),
        (Some(before), Some(after)) => format!(": {} → {}", show(before), show(after)),
    };
    sanitize(&format!("{} {path}{values}", action.sign())).into_owned()
}

/// A value as JSON, with at most `max` characters. A string ends with the number of omitted characters. For a
/// map or list, that number is unknown, because its values are also truncated.
pub(crate) fn value_text(value: &Value, max: usize) -> String {
    match value {
        Value::String(text) => Value::String(shortened(text, max)).to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            match text.char_indices().nth(max) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

fn one_error(error: &ReportedFault, indent: &str, out: &mut StyledText) {
    error_line(&error.message, indent, out);
    if let Some(shards) = error.concerned_shards() {
        out.push(TextStyle::Plain, &format!("{indent}    in {}\n", sanitize(&shards)));
    }
    error_details(error, &error.locations, indent, out);
}

/// Adds the error of a step below its change.
fn step_error(
    error: &ReportedFault,
    reason: &str,
    change: &ReportedChange,
    indent: &str,
    out: &mut StyledText,
) {
    let indent = &format!("{indent}    ");
    error_line(reason, indent, out);
    let is_new = |location: &&Location| change.location.as_ref() != Some(*location);
    let locations: Vec<Location> = error.locations.iter().filter(is_new).cloned().collect();
    error_details(error, &locations, indent, out);
}

fn error_line(message: &str, indent: &str, out: &mut StyledText) {
    out.push(TextStyle::Plain, indent);
    out.push(TextStyle::Error, "error");
    out.push(TextStyle::Plain, &format!(": {}\n", sanitize(message)));
}

/// Adds the details, the locations and the hint of an error.
fn error_details(error: &ReportedFault, at: &[Location], indent: &str, out: &mut StyledText) {
    for line in &error.details {
        out.push(TextStyle::Plain, &format!("{indent}    {}\n", sanitize(line)));
    }
    locations(at, indent, out);
    if let Some(hint) = &error.hint {
        let lines: Vec<_> = hint.lines().map(sanitize).collect();
        out.push(
            TextStyle::Plain,
            &format!("{indent}    hint: {}\n", lines.join(&format!("\n{indent}    "))),
        );
    }
}

fn locations(locations: &[Location], indent: &str, out: &mut StyledText) {
    for location in locations {
        out.push(TextStyle::Dim, &format!("{indent}    --> {}\n", sanitize(&location.to_string())));
    }
}

/// Adds `1 to add, 0 to change, 2 to remove` and other counts, without a line break.
fn summary(totals: &Totals, out: &mut StyledText) {
    let Totals {
        add,
        change,
        replace,
        remove,
        fields_removed,
        held,
        not_done,
        not_planned,
        released,
        errors,
        applied,
    } = *totals;
    let mut count = |style: TextStyle, count: usize, text: String| {
        out.push(if count > 0 { style } else { TextStyle::Plain }, &text);
    };
    count(TextStyle::Added, add, format!("{add} to add"));
    count(TextStyle::Plain, 0, ", ".to_owned());
    count(TextStyle::Changed, change, format!("{change} to change"));
    count(TextStyle::Plain, 0, ", ".to_owned());
    count(TextStyle::Removed, remove, format!("{remove} to remove"));
    if replace > 0 {
        count(TextStyle::Plain, 0, ", ".to_owned());
        count(TextStyle::Removed, replace, format!("{replace} to replace"));
    }
    if fields_removed > 0 {
        count(TextStyle::Plain, 0, ", ".to_owned());
        let text = format!("{} removed", pluralize(fields_removed, "field"));
        count(TextStyle::Removed, fields_removed, text);
    }
    if held > 0 {
        count(TextStyle::Plain, 0, ", ".to_owned());
        count(TextStyle::Warning, held, format!("{held} held"));
    }
    if not_done > 0 {
        count(TextStyle::Plain, 0, ", ".to_owned());
        count(TextStyle::Warning, not_done, format!("{not_done} not done"));
    }
    if not_planned > 0 {
        count(TextStyle::Plain, 0, ", ".to_owned());
        count(TextStyle::Warning, not_planned, format!("{not_planned} not planned"));
    }
    if released > 0 {
        count(TextStyle::Plain, 0, ", ".to_owned());
        count(TextStyle::Warning, released, format!("{released} no longer managed"));
    }
    if let Some(applied) = applied {
        count(TextStyle::Plain, applied, format!("; {} done", pluralize(applied, "step")));
    }
    if errors > 0 {
        count(TextStyle::Plain, 0, "; ".to_owned());
        count(TextStyle::Error, errors, pluralize(errors, "error"));
    }
}

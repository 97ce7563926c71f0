//! Renders a plan as Markdown for a comment on a merge request.
//!
//! **Invariant:** strings from the data occur only in code spans, code blocks or escaped HTML. They can
//! neither start a line nor become a link, a mention, HTML or a table cell. Unsafe characters are escaped.

use qontract_diagnostics::{pluralize, sanitize, sanitize_lines};

use crate::invalid::{FindingReport, InvalidData};
use crate::model::{
    DeclaredField, FieldAction, IntegrationReport, Location, PlanReport, ReportedChange, ReportedFault,
    ReportedField, Totals, UncheckedIntegration, UnplannedEntry,
};
use crate::text::{self, PlanDetail, shortened};

/// The size limit for a comment. GitHub accepts 65,536 characters, and GitLab accepts more.
pub const MAX_BYTES: usize = 60_000;

/// Maximum number of notes that are shown.
const MAX_NOTES: usize = 10;

/// Bytes reserved for the end of the comment: closing tags and the count of omitted entries.
const RESERVED_BYTES: usize = 2_000;

/// Renders the plan as Markdown of at most `max_bytes`, of which 2,000 are reserved for the end. Entries that
/// do not fit are counted.
pub fn render(report: &PlanReport, detail: PlanDetail, max_bytes: usize) -> String {
    let mut out = LimitedText { text: String::new(), max: max_bytes.saturating_sub(RESERVED_BYTES) };
    heading(report, &mut out);
    let mut omitted = report.invalid.as_ref().map_or(0, |invalid| findings(invalid, detail, &mut out));
    for integration in &report.integrations {
        omitted += errors_and_held(integration, detail, &mut out);
        omitted += left_out(integration, detail, &mut out);
    }
    for integration in &report.integrations {
        omitted += details(integration, detail, &mut out);
    }
    let mut end = String::new();
    if omitted > 0 {
        end.push_str(&format!("\n**and {omitted} more**, omitted to keep this comment short\n"));
    }
    let disabled = report.disabled();
    let notes: Vec<&String> = report.notes.iter().chain(&disabled).collect();
    for note in notes.iter().take(MAX_NOTES) {
        end.push_str(&format!("\n_{}_\n", code(&shortened(note, 200))));
    }
    if notes.len() > MAX_NOTES {
        end.push_str(&format!("\n_and {}_\n", pluralize(notes.len() - MAX_NOTES, "more note")));
    }
    for UncheckedIntegration { integration, reason } in report.unchecked.iter().take(MAX_NOTES) {
        let (name, reason) = (code(integration), code(&shortened(reason, 200)));
        end.push_str(&format!("\n**not checked**: {name}: {reason}\n"));
    }
    if report.unchecked.len() > MAX_NOTES {
        let more = pluralize(report.unchecked.len() - MAX_NOTES, "more integration");
        end.push_str(&format!("\n**not checked**: {more}\n"));
    }
    if let Some(targets) = &report.targets {
        end.push_str(&format!("\nplanned against {}\n", code(&shortened(targets, 200))));
    }
    if !report.unaffected.is_empty() {
        end.push_str(&format!("\n{} not affected\n", pluralize(report.unaffected.len(), "integration")));
    }
    out.text.push_str(&end);
    out.text
}

/// Text with a size limit.
struct LimitedText {
    text: String,
    max: usize,
}

impl LimitedText {
    /// Adds a piece if it fits together with `reserve` more bytes; returns whether it was added.
    fn push(&mut self, piece: &str, reserve: usize) -> bool {
        let fits = self.text.len() + piece.len() + reserve <= self.max;
        if fits {
            self.text.push_str(piece);
        }
        fits
    }
}

/// Adds a title with the totals, and a row for each integration.
fn heading(report: &PlanReport, out: &mut LimitedText) {
    let title = match &report.invalid {
        Some(invalid) => format!("{}; nothing was planned", invalid.summary()),
        None => totals_text(&report.totals),
    };
    out.push(&format!("### Plan: {title}\n"), 0);
    let rows: Vec<&IntegrationReport> = report.integrations.iter().filter(|one| is_listed(one)).collect();
    if rows.is_empty() {
        return;
    }
    let table = "\n| integration | add | change | replace | remove | fields removed | held | not done | not planned | no longer managed | errors |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    out.push(table, 0);
    let mut left = rows.len();
    for integration in rows {
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
            applied: _,
        } = integration.totals;
        let name = cell(&integration.integration);
        let row = format!(
            "| {name} | {add} | {change} | {replace} | {remove} | {fields_removed} | {held} | {not_done} | {not_planned} | {released} | {errors} |\n"
        );
        // The table uses at most half of the space, which leaves the rest for the changes.
        if !out.push(&row, out.max / 2) {
            break;
        }
        left -= 1;
    }
    if left > 0 {
        out.push(&format!("\nand {}\n", pluralize(left, "more integration")), 0);
    }
}

/// Adds the findings of invalid data; returns the number of omitted findings.
fn findings(invalid: &InvalidData, detail: PlanDetail, out: &mut LimitedText) -> usize {
    let mut omitted = invalid.omitted;
    out.push("\n", 0);
    for finding in &invalid.findings {
        omitted += usize::from(!out.push(&one_finding(finding, detail), 0));
    }
    omitted
}

fn one_finding(finding: &FindingReport, detail: PlanDetail) -> String {
    let FindingReport { code: id, severity, message, hint, .. } = finding;
    let severity = if severity == "error" { "error" } else { "warning" };
    let text = |text: &str| code(&shortened(text, detail.max_value.saturating_mul(5)));
    let location = finding.location().map(|at| format!("{}: ", text(&at))).unwrap_or_default();
    let mut out = format!("- **{severity}** {}: {location}{}\n", code(id), text(message));
    if let Some(hint) = hint {
        out.push_str(&format!("  - hint: {}\n", text(hint)));
    }
    out
}

fn is_listed(integration: &IntegrationReport) -> bool {
    !integration.totals.is_empty() || text::target_states(integration).next().is_some()
}

/// Adds errors and held changes, which a reviewer must see first; returns the number of omitted entries.
fn errors_and_held(integration: &IntegrationReport, detail: PlanDetail, out: &mut LimitedText) -> usize {
    let mut omitted = 0;
    let name = code(&integration.integration);
    for error in &integration.errors {
        let piece = format!("\n**error** in {name}: {}\n", error_text(error, detail));
        omitted += usize::from(!out.push(&piece, 0));
    }
    for (word, approvable) in [("not done", false), ("held", true)] {
        let is_listed = |one: &&ReportedChange| one.held.is_some() && one.approvable == approvable;
        let changes: Vec<&ReportedChange> = integration.changes.iter().filter(is_listed).collect();
        if changes.is_empty() {
            continue;
        }
        omitted += usize::from(!out.push(&format!("\n**{word}** in {name}:\n\n"), 0));
        for change in changes {
            omitted += usize::from(!out.push(&one_change(change, detail), 0));
        }
    }
    if let Some(approval) = &integration.approval {
        let piece =
            format!("\nTo approve the held changes, add this to the data:\n\n{}", block(approval, "yaml"));
        omitted += usize::from(!out.push(&piece, 0));
    }
    omitted
}

/// Adds the items that were not planned or are no longer managed, with the changed lines of the data; returns
/// the number of omitted entries.
fn left_out(integration: &IntegrationReport, detail: PlanDetail, out: &mut LimitedText) -> usize {
    let IntegrationReport { integration: name, unplanned, released, causes, .. } = integration;
    let place = |at: &Location| format!(", {}", code(&at.to_string()));
    let mut entries = Vec::new();
    for UnplannedEntry { shard: _, message, locations, declared } in unplanned {
        let at: String = locations.iter().map(place).collect();
        let mut entry = format!("- **not planned** {}{at}\n", code(message));
        if !declared.is_empty() {
            entry.push_str(&format!("  - {}\n", text::DECLARED_FIELDS));
        }
        for DeclaredField { field, location } in declared.iter().take(detail.max_fields) {
            let at = location.as_ref().map(place).unwrap_or_default();
            entry.push_str(&format!("    - {}{at}\n", one_field(field, detail.max_value)));
        }
        if let more @ 1.. = declared.len().saturating_sub(detail.max_fields) {
            entry.push_str(&format!("    - … {}\n", pluralize(more, "more field")));
        }
        entries.push(entry);
    }
    for entry in released {
        let at: String = entry.locations.iter().map(place).collect();
        entries.push(format!("- **{}** {}{at}\n", text::released_word(entry), code(&entry.message)));
    }
    if entries.is_empty() {
        return 0;
    }
    let mut omitted =
        usize::from(!out.push(&format!("\n**not shown as changes** in {}:\n\n", code(name)), 0));
    for cause in causes.iter().take(MAX_NOTES) {
        let cause = format!("because of {}  \n", code(&cause.to_string()));
        omitted += usize::from(!out.push(&cause, 0));
    }
    if !causes.is_empty() {
        out.push("\n", 0);
    }
    for entry in entries {
        omitted += usize::from(!out.push(&entry, 0));
    }
    omitted
}

/// Adds the changes, waits and notes of an integration in a collapsed section; returns the number of omitted
/// entries.
fn details(integration: &IntegrationReport, detail: PlanDetail, out: &mut LimitedText) -> usize {
    let changes = integration.changes.iter().filter(|one| one.held.is_none());
    let waits =
        text::target_states(integration).map(|(word, one)| format!("- {word}: {}\n", code(&one.message)));
    let notes = integration.notes.iter().map(|note| format!("- note: {}\n", code(note)));
    let mut entries = changes.map(|change| one_change(change, detail)).chain(waits).chain(notes);
    let Some(first) = entries.next() else { return 0 };
    let totals = Totals { held: 0, not_done: 0, errors: 0, ..integration.totals };
    let name = html(&integration.integration);
    // A section with removals is expanded.
    let removes = totals.remove + totals.replace + totals.fields_removed > 0;
    let open = if removes { " open" } else { "" };
    let failed = if integration.totals.errors > 0 { ", failed" } else { "" };
    let mut start =
        format!("\n<details{open}><summary>{name}: {}{failed}</summary>\n\n", totals_text(&totals));
    for cause in integration.causes.iter().take(10) {
        start.push_str(&format!("because of {}  \n", code(&cause.to_string())));
    }
    if !integration.causes.is_empty() {
        start.push('\n');
    }
    let end = "\n</details>\n";
    if !out.push(&format!("{start}{first}"), end.len()) {
        return 1 + entries.count();
    }
    let mut omitted = 0;
    for entry in entries {
        // No entry is added after an omitted entry, so that the list has no gap.
        omitted += usize::from(omitted > 0 || !out.push(&entry, end.len()));
    }
    out.text.push_str(end);
    omitted
}

fn one_change(change: &ReportedChange, detail: PlanDetail) -> String {
    let ReportedChange { action, kind, name, scope, summary, held, .. } = change;
    let word = action.as_str();
    let what = if kind.is_empty() || name.is_empty() {
        code(summary)
    } else {
        let scope: Vec<String> =
            scope.iter().map(|(dimension, value)| format!("{dimension}={value}")).collect();
        let scope = if scope.is_empty() { String::new() } else { format!(" in {}", code(&scope.join(", "))) };
        format!("{} {}{scope}", code(kind), code(name))
    };
    let location =
        change.location.as_ref().map(|at| format!(", {}", code(&at.to_string()))).unwrap_or_default();
    let mut out = format!("- **{word}** {what}{location}\n");
    if let Some(why) = held {
        let word = if change.approvable { "held" } else { text::not_done_word(change) };
        out.push_str(&format!("  - {word}: {}\n", code(why)));
    }
    for note in &change.notes {
        out.push_str(&format!("  - {}\n", code(note)));
    }
    let (fields, folded) = detail.fields(change);
    for field in fields {
        out.push_str(&format!("  - {}\n", one_field(field, detail.max_value)));
    }
    if folded > 0 {
        let noun = if fields.is_empty() { "field" } else { "more field" };
        out.push_str(&format!("  - … {}\n", pluralize(folded, noun)));
    }
    for note in &change.trailing_notes {
        out.push_str(&format!("  - {}\n", code(note)));
    }
    out
}

fn one_field(field: &ReportedField, max_value: usize) -> String {
    let ReportedField { action, path, before, after } = field;
    let word = match action {
        FieldAction::Added => "added",
        FieldAction::Changed => "changed",
        FieldAction::Removed => "removed",
    };
    let max = field.max_value(max_value);
    let show = |value: &serde_json::Value| code(&text::value_text(value, max));
    let values = match (before, after) {
        (None, None) => String::new(),
        (Some(value), None) | (None, Some(value)) => format!(": {}", show(value)),
        (Some(before), Some(after)) => format!(": {} → {}", show(before), show(after)),
    };
    format!("{word} {}{values}", code(path))
}

fn error_text(error: &ReportedFault, detail: PlanDetail) -> String {
    let ReportedFault { shards: _, message, details, hint, locations } = error;
    let mut out = code(&shortened(message, detail.max_value.saturating_mul(5)));
    if let Some(shards) = error.concerned_shards() {
        out.push_str(&format!(", in {}", code(&shards)));
    }
    for location in locations {
        out.push_str(&format!(", {}", code(&location.to_string())));
    }
    for line in details.iter().take(20) {
        out.push_str(&format!("\n- {}", code(line)));
    }
    if let Some(hint) = hint {
        out.push_str(&format!("\n- hint: {}", code(hint)));
    }
    out
}

/// `1 to add, 2 to change`; counts of 0 are omitted.
fn totals_text(totals: &Totals) -> String {
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
        applied: _,
    } = *totals;
    let parts = [
        (add, "to add"),
        (change, "to change"),
        (replace, "to replace"),
        (remove, "to remove"),
        (fields_removed, if fields_removed == 1 { "field removed" } else { "fields removed" }),
        (held, "held"),
        (not_done, "not done"),
        (not_planned, "not planned"),
        (released, "no longer managed"),
        (errors, if errors == 1 { "error" } else { "errors" }),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") }
}

/// A code span: its fence is longer than any run of backticks in the text, and the text is on one line.
///
/// ```
/// assert_eq!(qontract_report::markdown::code("a`b\n"), "``a`b\\n``");
/// ```
pub fn code(text: &str) -> String {
    let text = sanitize(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let is_padded = text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    let pad = if is_padded { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span for a table cell, with pipes escaped, because a pipe starts the next cell.
pub fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A code block, whose fence is longer than any run of backticks in the text.
pub fn block(text: &str, language: &str) -> String {
    let text = sanitize_lines(text.trim_end());
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// Escapes a string for use inside an HTML element.
pub fn html(text: &str) -> String {
    let mut out = String::new();
    for character in sanitize(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Markdown is parsed inside a summary, so markup characters are written as character references.
            '\'' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '\\' | '@' | '#' | ':'
            | '/' => {
                out.push_str(&format!("&#{};", u32::from(character)));
            }
            character => out.push(character),
        }
    }
    out
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}

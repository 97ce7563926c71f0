//! Renders the integrations and shards that a change affects, as text for a terminal and as Markdown.

use qontract_diagnostics::{StyledText, TextStyle, pluralize, sanitize};
use serde::Serialize;

use crate::markdown::{cell, code, html};

/// Whether and why one integration is affected.
#[derive(Clone, Debug, Serialize)]
pub struct AffectedRow {
    /// The integration.
    pub integration: String,
    /// Whether the integration is affected.
    pub affected: bool,
    /// Whether the data declares the integration; omitted if it does. An undeclared integration cannot be
    /// checked.
    #[serde(skip_serializing_if = "is_true")]
    pub declared: bool,
    /// The rule that decided whether the integration is affected.
    pub rule: String,
    /// The changes that affect the integration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// The affected shards; `null` if all shards are affected.
    pub shards: Option<Vec<AffectedShard>>,
}

/// A shard that is affected.
#[derive(Clone, Debug, Serialize)]
pub struct AffectedShard {
    /// The key of the shard.
    pub shard: String,
    /// The locations of the differences in the data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// Whether the shard exists only in base.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

impl AffectedRow {
    /// A row for an integration that the data does not declare.
    pub fn undeclared(integration: &str) -> Self {
        let (integration, rule) = (integration.to_owned(), "not declared in the data".to_owned());
        AffectedRow { integration, affected: false, declared: false, rule, causes: Vec::new(), shards: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_true(value: &bool) -> bool {
    *value
}

/// Maximum number of causes shown per integration.
const MAX_CAUSES: usize = 10;

/// Renders the affected integrations first. The other integrations are counted, or listed if `verbose`.
pub fn text(rows: &[AffectedRow], verbose: bool) -> StyledText {
    let mut out = StyledText::default();
    for row in rows.iter().filter(|row| row.affected) {
        push_row(row, &mut out);
    }
    for row in rows.iter().filter(|row| !row.declared) {
        out.push(TextStyle::Warning, &format!("{}: {}\n", sanitize(&row.integration), sanitize(&row.rule)));
    }
    let others: Vec<&AffectedRow> = rows.iter().filter(|row| row.declared && !row.affected).collect();
    if verbose {
        for row in &others {
            out.push(
                TextStyle::Dim,
                &format!("{}: not affected ({})\n", sanitize(&row.integration), sanitize(&row.rule)),
            );
        }
    }
    let hint = if verbose || others.is_empty() { "" } else { " (-v lists them)" };
    let affected = rows.iter().filter(|row| row.affected).count();
    out.push(TextStyle::Plain, &format!("{affected} affected, {} not affected{hint}\n", others.len()));
    out
}

fn push_row(row: &AffectedRow, out: &mut StyledText) {
    let AffectedRow { integration, rule, causes, shards, .. } = row;
    out.push(TextStyle::Bold, &sanitize(integration));
    out.push(TextStyle::Plain, ": ");
    out.push(TextStyle::Changed, "affected");
    out.push(TextStyle::Plain, &format!(" ({})\n", sanitize(rule)));
    for cause in causes.iter().take(MAX_CAUSES) {
        out.push(TextStyle::Plain, &format!("    because of {}\n", sanitize(cause)));
    }
    if causes.len() > MAX_CAUSES {
        out.push(TextStyle::Plain, &format!("    and {} more\n", causes.len() - MAX_CAUSES));
    }
    let Some(shards) = shards else {
        out.push(TextStyle::Plain, "    all shards\n");
        return;
    };
    for AffectedShard { shard, differs, gone } in shards {
        let removed = if *gone { " (removed)" } else { "" };
        out.push(TextStyle::Plain, &format!("    shard {}{removed}\n", sanitize(shard)));
        for location in differs {
            out.push(TextStyle::Dim, &format!("        --> {}\n", sanitize(location)));
        }
    }
}

/// Maximum number of shards that Markdown lists per integration.
const MAX_SHARDS: usize = 50;

/// Renders a table of affected integrations, followed by the shards of each in a collapsed section.
pub fn markdown(rows: &[AffectedRow]) -> String {
    let affected: Vec<&AffectedRow> = rows.iter().filter(|row| row.affected).collect();
    let others = rows.iter().filter(|row| row.declared && !row.affected).count();
    let mut out = format!("### Affected: {}\n", pluralize(affected.len(), "integration"));
    if !affected.is_empty() {
        out.push_str("\n| integration | because of | shards |\n|---|---|---|\n");
    }
    for AffectedRow { integration, rule, causes, shards, .. } in &affected {
        let cause = match causes.as_slice() {
            [] => cell(rule),
            [one] => cell(one),
            [first, more @ ..] => format!("{} and {} more", cell(first), more.len()),
        };
        let shards = shards.as_ref().map_or_else(|| "all".to_owned(), |shards| shards.len().to_string());
        out.push_str(&format!("| {} | {cause} | {shards} |\n", cell(integration)));
    }
    for row in &affected {
        details(row, &mut out);
    }
    out.push_str(&format!("\n{} not affected\n", pluralize(others, "integration")));
    out
}

/// Adds the causes and shards of an integration in a collapsed section.
fn details(row: &AffectedRow, out: &mut String) {
    let AffectedRow { integration, causes, shards, .. } = row;
    let count =
        shards.as_ref().map_or_else(|| "all shards".to_owned(), |shards| pluralize(shards.len(), "shard"));
    out.push_str(&format!("\n<details><summary>{}: {count}</summary>\n\n", html(integration)));
    for cause in causes.iter().take(MAX_CAUSES) {
        out.push_str(&format!("- because of {}\n", code(cause)));
    }
    if causes.len() > MAX_CAUSES {
        out.push_str(&format!("- and {} more\n", causes.len() - MAX_CAUSES));
    }
    let shards = shards.as_deref().unwrap_or_default();
    for AffectedShard { shard, differs, gone } in shards.iter().take(MAX_SHARDS) {
        let removed = if *gone { " (removed)" } else { "" };
        let places: Vec<String> = differs.iter().take(MAX_CAUSES).map(|location| code(location)).collect();
        let places = if places.is_empty() { String::new() } else { format!(": {}", places.join(", ")) };
        out.push_str(&format!("- shard {}{removed}{places}\n", code(shard)));
    }
    if shards.len() > MAX_SHARDS {
        out.push_str(&format!("- and {}\n", pluralize(shards.len() - MAX_SHARDS, "more shard")));
    }
    out.push_str("\n</details>\n");
}

//! Renders the integrations and shards that a change affects, as text for a terminal and as Markdown.

use qontract_diagnostics::{Style, Styled, counted, shown};
use serde::Serialize;

use crate::markdown::{cell, code, html};

/// Whether and why one integration is affected.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The integration.
    pub integration: String,
    /// Whether it is affected.
    pub affected: bool,
    /// Whether the data declares it; left out if it does. An undeclared integration cannot be checked.
    #[serde(skip_serializing_if = "is_true")]
    pub declared: bool,
    /// The rule by which it is affected or not.
    pub rule: String,
    /// The changes because of which it is affected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// The affected shards; `null` if all of them are.
    pub shards: Option<Vec<ShardRow>>,
}

/// A shard that is affected.
#[derive(Clone, Debug, Serialize)]
pub struct ShardRow {
    /// Its key.
    pub shard: String,
    /// The locations that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// Whether only base has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

impl Row {
    /// An integration that the data does not declare.
    pub fn undeclared(integration: &str) -> Self {
        let (integration, rule) = (integration.to_owned(), "not declared in the data".to_owned());
        Row { integration, affected: false, declared: false, rule, causes: Vec::new(), shards: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_true(value: &bool) -> bool {
    *value
}

/// Maximum number of causes shown per integration.
const MAX_CAUSES: usize = 10;

/// Renders affected integrations first; the others are counted, or listed if `verbose`.
pub fn text(rows: &[Row], verbose: bool) -> Styled {
    let mut out = Styled::default();
    for row in rows.iter().filter(|row| row.affected) {
        one_row(row, &mut out);
    }
    for row in rows.iter().filter(|row| !row.declared) {
        out.push(Style::Warning, &format!("{}: {}\n", shown(&row.integration), shown(&row.rule)));
    }
    let others: Vec<&Row> = rows.iter().filter(|row| row.declared && !row.affected).collect();
    if verbose {
        for row in &others {
            out.push(
                Style::Dim,
                &format!("{}: not affected ({})\n", shown(&row.integration), shown(&row.rule)),
            );
        }
    }
    let hint = if verbose || others.is_empty() { "" } else { " (-v lists them)" };
    let affected = rows.iter().filter(|row| row.affected).count();
    out.push(Style::Plain, &format!("{affected} affected, {} not affected{hint}\n", others.len()));
    out
}

fn one_row(row: &Row, out: &mut Styled) {
    let Row { integration, rule, causes, shards, .. } = row;
    out.push(Style::Bold, &shown(integration));
    out.push(Style::Plain, ": ");
    out.push(Style::Changed, "affected");
    out.push(Style::Plain, &format!(" ({})\n", shown(rule)));
    for cause in causes.iter().take(MAX_CAUSES) {
        out.push(Style::Plain, &format!("    because of {}\n", shown(cause)));
    }
    if causes.len() > MAX_CAUSES {
        out.push(Style::Plain, &format!("    and {} more\n", causes.len() - MAX_CAUSES));
    }
    let Some(shards) = shards else {
        out.push(Style::Plain, "    all shards\n");
        return;
    };
    for ShardRow { shard, differs, gone } in shards {
        let removed = if *gone { " (removed)" } else { "" };
        out.push(Style::Plain, &format!("    shard {}{removed}\n", shown(shard)));
        for place in differs {
            out.push(Style::Dim, &format!("        --> {}\n", shown(place)));
        }
    }
}

/// Maximum number of shards that Markdown lists per integration.
const MAX_SHARDS: usize = 50;

/// Renders a table of affected integrations, and the shards of each, folded.
pub fn markdown(rows: &[Row]) -> String {
    let affected: Vec<&Row> = rows.iter().filter(|row| row.affected).collect();
    let others = rows.iter().filter(|row| row.declared && !row.affected).count();
    let mut out = format!("### Affected: {}\n", counted(affected.len(), "integration"));
    if !affected.is_empty() {
        out.push_str("\n| integration | because of | shards |\n|---|---|---|\n");
    }
    for Row { integration, rule, causes, shards, .. } in &affected {
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
    out.push_str(&format!("\n{} not affected\n", counted(others, "integration")));
    out
}

/// The causes and shards of an integration, folded.
fn details(row: &Row, out: &mut String) {
    let Row { integration, causes, shards, .. } = row;
    let count =
        shards.as_ref().map_or_else(|| "all shards".to_owned(), |shards| counted(shards.len(), "shard"));
    out.push_str(&format!("\n<details><summary>{}: {count}</summary>\n\n", html(integration)));
    for cause in causes.iter().take(MAX_CAUSES) {
        out.push_str(&format!("- because of {}\n", code(cause)));
    }
    if causes.len() > MAX_CAUSES {
        out.push_str(&format!("- and {} more\n", causes.len() - MAX_CAUSES));
    }
    let shards = shards.as_deref().unwrap_or_default();
    for ShardRow { shard, differs, gone } in shards.iter().take(MAX_SHARDS) {
        let removed = if *gone { " (removed)" } else { "" };
        let places: Vec<String> = differs.iter().take(MAX_CAUSES).map(|place| code(place)).collect();
        let places = if places.is_empty() { String::new() } else { format!(": {}", places.join(", ")) };
        out.push_str(&format!("- shard {}{removed}{places}\n", code(shard)));
    }
    if shards.len() > MAX_SHARDS {
        out.push_str(&format!("- and {}\n", counted(shards.len() - MAX_SHARDS, "more shard")));
    }
    out.push_str("\n</details>\n");
}

//! A diff as text for a terminal.

use crate::text::shortened;
use qontract_diagnostics::{Style, Styled, counted, shown};

use super::Fold;
use super::model::{FileAction, FileEntry, Line};

/// The diff as text.
pub fn render(files: &[FileEntry], fold: Fold) -> Styled {
    let mut out = Styled::default();
    for file in files {
        let FileEntry { action, name, old_name, schema, lines } = file;
        let (sign, style, limit) = match action {
            FileAction::Changed => ('~', Style::Changed, fold.changed),
            FileAction::Added => ('+', Style::Added, fold.whole),
            FileAction::Removed => ('-', Style::Removed, fold.whole),
            FileAction::Renamed => ('>', Style::Changed, fold.changed),
        };
        let old_name = old_name.as_ref().map(|old| format!("{} → ", shown(old))).unwrap_or_default();
        out.push(style, &format!("{sign} {old_name}{}", shown(name)));
        let schema = schema.as_ref().map(|schema| format!("  ({})", shown(schema))).unwrap_or_default();
        out.push(Style::Dim, &schema);
        out.push(Style::Plain, "\n");
        for line in lines.iter().take(limit) {
            one_line(line, fold, &mut out);
        }
        if lines.len() > limit {
            let noun = match lines[limit] {
                Line::Field { .. } | Line::Remark { .. } => "more field",
                Line::Text { .. } | Line::At { .. } => "more line",
            };
            let text = format!("    … {} (--full shows them)\n", counted(lines.len() - limit, noun));
            out.push(Style::Dim, &text);
        }
    }
    out.push(Style::Plain, &summary(files));
    out
}

fn one_line(line: &Line, fold: Fold, out: &mut Styled) {
    match line {
        Line::Field { sign, pointer, values, place } => {
            let style = match sign {
                '+' => Style::Added,
                '-' => Style::Removed,
                _ => Style::Changed,
            };
            let values: Vec<String> = values.iter().map(|value| shortened(value, fold.value)).collect();
            let text = format!("{sign} {}  {}", shown(pointer), shown(&values.join(" → ")));
            out.push(Style::Plain, "    ");
            out.push(style, &text);
            out.push(Style::Dim, &format!("  [{}]\n", shown(place)));
        }
        Line::Remark { text, place } => {
            out.push(Style::Plain, &format!("    ~ {}", shown(text)));
            out.push(Style::Dim, &format!("  [{}]\n", shown(place)));
        }
        Line::At { place } => out.push(Style::Dim, &format!("    [{}]\n", shown(place))),
        Line::Text { sign, text } => {
            let style = match sign {
                '+' => Style::Added,
                '-' => Style::Removed,
                _ => Style::Plain,
            };
            out.push(Style::Plain, "    ");
            out.push(style, format!("{sign} {}", shown(&shortened(text, fold.value))).trim_end());
            out.push(Style::Plain, "\n");
        }
    }
}

/// The numbers of changed, added, removed and renamed files.
pub fn summary(files: &[FileEntry]) -> String {
    if files.is_empty() {
        return "no difference\n".to_owned();
    }
    let count = |action: FileAction| files.iter().filter(|file| file.action == action).count();
    let [changed, added, removed, renamed] =
        [FileAction::Changed, FileAction::Added, FileAction::Removed, FileAction::Renamed].map(count);
    let renamed = if renamed > 0 { format!(", {renamed} renamed") } else { String::new() };
    format!("{changed} changed, {added} added, {removed} removed{renamed}\n")
}

//! Renders a diff as text for a terminal.

use crate::text::shortened;
use qontract_diagnostics::{StyledText, TextStyle, pluralize, sanitize};

use super::DiffLimits;
use super::model::{FileAction, FileEntry, FileLine};

/// Renders the diff as text.
pub fn render(files: &[FileEntry], fold: DiffLimits) -> StyledText {
    let mut out = StyledText::default();
    for file in files {
        let FileEntry { action, name, old_name, schema, lines } = file;
        let (sign, style, limit) = match action {
            FileAction::Changed => ('~', TextStyle::Changed, fold.changed_lines),
            FileAction::Added => ('+', TextStyle::Added, fold.whole_lines),
            FileAction::Removed => ('-', TextStyle::Removed, fold.whole_lines),
            FileAction::Renamed => ('>', TextStyle::Changed, fold.changed_lines),
        };
        let old_name = old_name.as_ref().map(|old| format!("{} → ", sanitize(old))).unwrap_or_default();
        out.push(style, &format!("{sign} {old_name}{}", sanitize(name)));
        let schema = schema.as_ref().map(|schema| format!("  ({})", sanitize(schema))).unwrap_or_default();
        out.push(TextStyle::Dim, &schema);
        out.push(TextStyle::Plain, "\n");
        for line in lines.iter().take(limit) {
            one_line(line, fold, &mut out);
        }
        if lines.len() > limit {
            let noun = match lines[limit] {
                FileLine::Field { .. } | FileLine::Remark { .. } => "more field",
                FileLine::Text { .. } | FileLine::Hunk { .. } => "more line",
            };
            let text = format!("    … {} (--full shows them)\n", pluralize(lines.len() - limit, noun));
            out.push(TextStyle::Dim, &text);
        }
    }
    out.push(TextStyle::Plain, &summary(files));
    out
}

fn one_line(line: &FileLine, fold: DiffLimits, out: &mut StyledText) {
    match line {
        FileLine::Field { sign, pointer, values, place } => {
            let style = match sign {
                '+' => TextStyle::Added,
                '-' => TextStyle::Removed,
                _ => TextStyle::Changed,
            };
            let values: Vec<String> = values.iter().map(|value| shortened(value, fold.value_chars)).collect();
            let text = format!("{sign} {}  {}", sanitize(pointer), sanitize(&values.join(" → ")));
            out.push(TextStyle::Plain, "    ");
            out.push(style, &text);
            out.push(TextStyle::Dim, &format!("  [{}]\n", sanitize(place)));
        }
        FileLine::Remark { text, place } => {
            out.push(TextStyle::Plain, &format!("    ~ {}", sanitize(text)));
            out.push(TextStyle::Dim, &format!("  [{}]\n", sanitize(place)));
        }
        FileLine::Hunk { place } => out.push(TextStyle::Dim, &format!("    [{}]\n", sanitize(place))),
        FileLine::Text { sign, text } => {
            let style = match sign {
                '+' => TextStyle::Added,
                '-' => TextStyle::Removed,
                _ => TextStyle::Plain,
            };
            out.push(TextStyle::Plain, "    ");
            out.push(style, format!("{sign} {}", sanitize(&shortened(text, fold.value_chars))).trim_end());
            out.push(TextStyle::Plain, "\n");
        }
    }
}

/// The numbers of changed, added, removed and renamed files.
pub fn summary(files: &[FileEntry]) -> String {
    if files.is_empty() {
        return "no differences\n".to_owned();
    }
    let count = |action: FileAction| files.iter().filter(|file| file.action == action).count();
    let [changed, added, removed, renamed] =
        [FileAction::Changed, FileAction::Added, FileAction::Removed, FileAction::Renamed].map(count);
    let renamed = if renamed > 0 { format!(", {renamed} renamed") } else { String::new() };
    format!("{changed} changed, {added} added, {removed} removed{renamed}\n")
}

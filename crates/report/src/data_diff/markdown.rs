//! Renders a diff as Markdown, for a comment on a merge request.

use crate::markdown::{block, code};
use crate::text::shortened;
use qontract_diagnostics::{pluralize, sanitize};

use super::DiffLimits;
use super::model::{FileAction, FileEntry, FileLine};
use super::text::summary;

/// Renders the diff as Markdown.
pub fn render(files: &[FileEntry], fold: DiffLimits) -> String {
    let mut out = String::new();
    for file in files {
        one_file(file, fold, &mut out);
    }
    if !files.is_empty() {
        out.push('\n');
    }
    out.push_str(&summary(files));
    out
}

fn one_file(file: &FileEntry, fold: DiffLimits, out: &mut String) {
    let FileEntry { action, name, old_name, schema, lines } = file;
    let (word, limit) = match action {
        FileAction::Changed => ("changed", fold.changed_lines),
        FileAction::Added => ("added", fold.whole_lines),
        FileAction::Removed => ("removed", fold.whole_lines),
        FileAction::Renamed => ("renamed", fold.changed_lines),
    };
    let schema = schema.as_ref().map(|schema| format!(" {}", code(schema))).unwrap_or_default();
    let old_name = old_name.as_ref().map(|old| format!("{} → ", code(old))).unwrap_or_default();
    out.push_str(&format!("- **{word}** {old_name}{}{schema}\n", code(name)));
    // The content of an added or removed file is shortened, because few readers need all of it.
    let is_folded = matches!(action, FileAction::Added | FileAction::Removed) && !lines.is_empty();
    if is_folded {
        out.push_str(&format!("  <details><summary>{}</summary>\n\n", pluralize(lines.len(), "line")));
    }
    let mut text = String::new();
    for line in lines.iter().take(limit) {
        match line {
            FileLine::Field { .. } | FileLine::Remark { .. } => {
                out.push_str(&format!("  - {}\n", one_line(line, fold)));
            }
            FileLine::Text { sign, text: content } => {
                text.push_str(
                    format!("{sign} {}", shortened(&sanitize(content), fold.value_chars)).trim_end(),
                );
                text.push('\n');
            }
            FileLine::Hunk { place } => text.push_str(&format!("@@ {} @@\n", sanitize(place))),
        }
    }
    if !text.is_empty() {
        // The block is indented, because it is a part of the list item.
        out.push('\n');
        for line in block(&text, "diff").lines() {
            out.push_str(&format!("  {line}\n"));
        }
    }
    if lines.len() > limit {
        out.push_str(&format!("\n  … {}\n", pluralize(lines.len() - limit, "more line")));
    }
    if is_folded {
        out.push_str("\n  </details>\n");
    }
}

fn one_line(line: &FileLine, fold: DiffLimits) -> String {
    match line {
        FileLine::Field { sign, pointer, values, place } => {
            // The sign is replaced by a word, because the sign would start another Markdown list.
            let word = match sign {
                '+' => "added",
                '-' => "removed",
                _ => "changed",
            };
            let values: Vec<String> = values.iter().map(|value| shortened(value, fold.value_chars)).collect();
            format!("{word} {} {} in {}", code(pointer), code(&values.join(" → ")), code(place))
        }
        FileLine::Remark { text, place } => format!("{} in {}", code(text), code(place)),
        FileLine::Text { text, .. } => code(text),
        FileLine::Hunk { place } => code(place),
    }
}

//! Renders findings for people: the message, a code frame, notes, and the hint last.

use std::borrow::Cow;
use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::location::{DiagnosticLocation, Span, char_boundary};
use crate::report::{CachedSources, Report, SourceText, Sources};
use crate::sanitize::{sanitize, sanitize_lines};

/// Maximum length of a line in a frame, in bytes. Longer lines are not shown, because they would hide the
/// message.
const MAX_LINE_BYTES: usize = 1_000;
/// Maximum number of lines of a span that a frame shows.
const MAX_FRAME_LINES: usize = 6;

/// Whether the text has terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// With terminal escape codes; the printer strips them if the output is not a terminal.
    Styled,
    /// Plain text.
    Plain,
}

/// Renders all findings, with an empty line after each. For a file with more findings than a report holds,
/// adds the number of omitted findings.
pub fn render_all(report: &Report, sources: &dyn Sources, colour: Colour) -> String {
    render_first(report, usize::MAX, sources, colour)
}

/// Renders the first `max` findings, with an empty line after each. For a file with more findings than a
/// report holds, adds the number of omitted findings.
pub fn render_first(report: &Report, max: usize, sources: &dyn Sources, colour: Colour) -> String {
    let sources = CachedSources::new(sources);
    let (mut out, mut left) = (String::new(), max);
    for findings in report.by_file() {
        for finding in findings.iter().take(left) {
            out.push_str(&render(finding, &sources, colour));
            out.push_str("\n\n");
        }
        let more = report.omitted_of(&findings[0].location.file);
        if more > 0 && left >= findings.len() {
            let _ = write!(
                out,
                "… and {more} more in {}\n\n",
                sanitize(&sources.display(&findings[0].location.file))
            );
        }
        left = left.saturating_sub(findings.len());
        if left == 0 {
            break;
        }
    }
    out
}

/// Renders one finding, without a final newline.
pub fn render_one(finding: &Diagnostic, sources: &dyn Sources, colour: Colour) -> String {
    render(finding, &CachedSources::new(sources), colour)
}

fn render(finding: &Diagnostic, sources: &CachedSources<'_>, colour: Colour) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let code = finding.code.to_string();
    let title = level.primary_title(sanitize(&finding.message)).id(code.as_str());
    let mut group = add_frame(
        Group::with_title(title),
        &finding.location,
        &finding.label,
        sources,
        AnnotationKind::Primary,
    );
    for note in &finding.notes {
        group = group.element(Level::NOTE.message(sanitize(&note.text)));
        if let Some(place) = &note.location {
            group = add_frame(group, place, "", sources, AnnotationKind::Context);
        }
    }
    let renderer = match colour {
        Colour::Styled => Renderer::styled(),
        Colour::Plain => Renderer::plain(),
    };
    let mut out = renderer.render(&[group]);
    if let Some(hint) = &finding.hint {
        let _ = write!(out, "\nhint: {}", sanitize(hint));
    }
    out
}

/// Adds the code frame of `place`, or only its file if the lines cannot be shown.
fn add_frame<'a>(
    group: Group<'a>,
    place: &'a DiagnosticLocation,
    label: &'a str,
    sources: &CachedSources<'_>,
    kind: AnnotationKind,
) -> Group<'a> {
    if place.file.is_empty() {
        return group;
    }
    let file = Cow::Owned(sanitize(&sources.display(&place.file)).into_owned());
    let text = place.span.and_then(|_| sources.text(&place.file));
    let (Some(span), Some(text)) = (place.span, text) else {
        let path = match &place.pointer {
            Some(pointer) if !pointer.is_empty() => Cow::Owned(format!("{file} at {}", sanitize(pointer))),
            _ => file,
        };
        return group.element(Origin::path(path));
    };
    let Some(frame) = CodeFrame::around(&text, span) else {
        let at = text.lines.position(&text.text, span.start as usize);
        return group.element(Origin::path(file).line(at.line as usize).char_column(at.column as usize));
    };
    let label = Some(label).filter(|label| !label.is_empty()).map(sanitize);
    let annotation = kind.span(frame.mark).label(label);
    let snippet = Snippet::source(Cow::Owned(frame.text)).line_start(frame.first_line);
    group.element(snippet.path(file).annotation(annotation))
}

/// The lines of a file in a code frame.
struct CodeFrame {
    text: String,
    first_line: usize,
    mark: std::ops::Range<usize>,
}

impl CodeFrame {
    /// The lines of `span`, or `None` if the lines are too long to be shown.
    fn around(SourceText { text, lines }: &SourceText, span: Span) -> Option<Self> {
        let (start, end) = (char_boundary(text, span.start as usize), char_boundary(text, span.end as usize));
        let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let mut to = start;
        for _ in 0..MAX_FRAME_LINES {
            to = text[to..].find('\n').map_or(text.len(), |newline| to + newline);
            if to >= end || to == text.len() {
                break;
            }
            to += 1;
        }
        let shown = text.get(from..to)?;
        if shown.lines().any(|line| line.len() > MAX_LINE_BYTES) {
            return None;
        }
        let first_line = lines.line(from) + 1;
        // An escape is longer than the escaped character, so the mark is moved to its position in the escaped
        // line.
        let mark = start - from..end.min(to).max(start) - from;
        let [before, marked, after] =
            [&shown[..mark.start], &shown[mark.clone()], shown[mark.end..].trim_end_matches('\r')]
                .map(sanitize_lines);
        let mark = before.len()..before.len() + marked.len();
        Some(Self { text: [before, marked, after].concat(), first_line, mark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;
    use crate::report::SingleSource;

    fn check(finding: &Diagnostic, text: &'static str, expect: &str) {
        assert_eq!(render_one(finding, &SingleSource(text), Colour::Plain), expect.trim_matches('\n'));
    }

    #[test]
    fn a_finding_shows_its_line_and_ends_with_the_hint() {
        let finding = Diagnostic::new(code::YAML_DATE, "`2024-01-02` is a date in YAML 1.1")
            .at(Span::new(10, 20))
            .in_file("data/a.yml")
            .label("unquoted")
            .hint("write \"2024-01-02\"");
        check(
            &finding,
            "a: 1\nday: 2024-01-02\nb: 2\n",
            r#"
error[Q1007]: `2024-01-02` is a date in YAML 1.1
 --> data/a.yml:2:6
  |
2 | day: 2024-01-02
  |      ^^^^^^^^^^ unquoted
hint: write "2024-01-02""#,
        );
    }

    #[test]
    fn a_second_location_is_shown_with_its_own_lines() {
        let finding = Diagnostic::new(code::YAML_DUPLICATE_KEY, "the key `a` is defined twice")
            .at(Span::new(5, 6))
            .note_at("first defined here", Span::new(0, 1))
            .in_file("data/a.yml");
        check(
            &finding,
            "a: 1\na: 2\n",
            r"
warning[Q1010]: the key `a` is defined twice
 --> data/a.yml:2:1
  |
2 | a: 2
  | ^
  |
  = note: first defined here
  |
 ::: data/a.yml:1:1
  |
1 | a: 1
  | -",
        );
    }

    #[test]
    fn a_very_long_line_is_named_but_not_shown() {
        let text: &'static str = Box::leak(format!("a: {}\n", "x".repeat(5_000)).into_boxed_str());
        let finding = Diagnostic::new(code::YAML_SYNTAX, "odd").at(Span::new(3, 9)).in_file("data/a.yml");
        check(&finding, text, "error[Q1001]: odd\n--> data/a.yml:1:4");
    }

    #[test]
    fn no_character_of_the_file_controls_the_terminal() {
        let finding = Diagnostic::new(code::YAML_SYNTAX, "odd").at(Span::new(5, 7)).in_file("data/a.yml");
        check(
            &finding,
            "a: \u{9b}\u{9b}\u{202e}\r\nb: 2\n",
            r"
error[Q1001]: odd
 --> data/a.yml:1:10
  |
1 | a: \u{9b}\u{9b}\u{202e}
  |          ^^^^^^"
                .replace("\\\\", "\\")
                .as_str(),
        );
    }

    #[test]
    fn without_file_contents_only_the_file_is_named() {
        let finding = Diagnostic::new(code::YAML_SYNTAX, "odd").at_pointer("/a/0").in_file("data/a.yml");
        check(&finding, "", "error[Q1001]: odd\n--> data/a.yml at /a/0");
    }
}

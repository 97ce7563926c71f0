//! Findings as JSON, with one object for each finding.

use serde::Serialize;

use crate::diagnostic::Diagnostic;
use crate::location::DiagnosticLocation;
use crate::report::{CachedSources, OmittedFindings, Report, Sources};

/// A finding with line numbers.
#[derive(Debug, Serialize)]
pub struct Record {
    /// `Q1001`
    pub code: String,
    /// `error` or `warning`
    pub severity: &'static str,
    /// A description of the mistake, one line.
    pub message: String,
    /// The location.
    #[serde(flatten)]
    pub location: LocationRecord,
    /// The label below the marked text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Additional information.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteRecord>,
    /// How to fix the mistake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A location with line numbers, which are absent if the text of the file is not available.
#[derive(Debug, Serialize)]
pub struct LocationRecord {
    /// Path relative to the data repo.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// First line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// First column, from 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// Column after the last character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// JSON pointer of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

/// A note of a finding.
#[derive(Debug, Serialize)]
pub struct NoteRecord {
    /// The information.
    pub text: String,
    /// The location, if it is not that of the finding.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationRecord>,
}

/// The first `max` findings of a report as records.
pub fn records(report: &Report, max: usize, sources: &dyn Sources) -> Vec<Record> {
    let sources = CachedSources::new(sources);
    report.findings().iter().take(max).map(|finding| record(finding, &sources)).collect()
}

/// A file with more findings than a report holds.
#[derive(Debug, Serialize)]
pub struct OmittedRecord {
    /// Path relative to the data repo.
    pub file: String,
    /// Number of errors that are not listed.
    pub errors: usize,
    /// Number of warnings that are not listed.
    pub warnings: usize,
}

/// The files with more findings than a report holds, as records.
pub fn omitted(report: &Report) -> Vec<OmittedRecord> {
    let record = |OmittedFindings { file, errors, warnings }: &OmittedFindings| OmittedRecord {
        file: file.clone(),
        errors: *errors,
        warnings: *warnings,
    };
    report.omitted().iter().map(record).collect()
}

fn record(finding: &Diagnostic, sources: &CachedSources<'_>) -> Record {
    let Diagnostic { code, severity, message, label, location: place, notes, hint } = finding;
    let notes = notes.iter().map(|note| NoteRecord {
        text: note.text.clone(),
        location: note.location.as_ref().map(|place| location_record(place, sources)),
    });
    Record {
        code: code.to_string(),
        severity: severity.as_str(),
        message: message.clone(),
        location: location_record(place, sources),
        label: label.clone(),
        notes: notes.collect(),
        hint: hint.clone(),
    }
}

fn location_record(place: &DiagnosticLocation, sources: &CachedSources<'_>) -> LocationRecord {
    let lines = place.span.and_then(|span| {
        let text = sources.text(&place.file)?;
        let position = |offset: u32| text.lines.position(&text.text, offset as usize);
        Some((position(span.start), position(span.end)))
    });
    LocationRecord {
        file: place.file.clone(),
        line: lines.map(|(start, _)| start.line),
        column: lines.map(|(start, _)| start.column),
        end_line: lines.map(|(_, end)| end.line),
        end_column: lines.map(|(_, end)| end.column),
        pointer: place.pointer.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;
    use crate::location::Span;
    use crate::report::{NoSources, SingleSource};

    fn check(sources: &dyn Sources, expect: &str) {
        let finding = Diagnostic::new(code::YAML_DUPLICATE_KEY, "the key `a` is defined twice")
            .at(Span::new(5, 6))
            .at_pointer("/a")
            .note_at("first defined here", Span::new(0, 1))
            .in_file("data/a.yml")
            .hint("remove one");
        let report = Report::new(vec![finding]);
        let json = serde_json::to_string(&records(&report, usize::MAX, sources)).expect("records are JSON");
        assert_eq!(json, expect);
    }

    #[test]
    fn a_record_has_lines_and_columns() {
        check(
            &SingleSource("a: 1\na: 2\n"),
            concat!(
                r#"[{"code":"Q1010","severity":"warning","message":"the key `a` is defined twice","file":"data/a.yml","#,
                r#""line":2,"column":1,"end_line":2,"end_column":2,"pointer":"/a","#,
                r#""notes":[{"text":"first defined here","file":"data/a.yml","line":1,"column":1,"end_line":1,"end_column":2}],"#,
                r#""hint":"remove one"}]"#
            ),
        );
    }

    #[test]
    fn without_file_contents_there_are_no_lines() {
        check(
            &NoSources,
            concat!(
                r#"[{"code":"Q1010","severity":"warning","message":"the key `a` is defined twice","file":"data/a.yml","#,
                r#""pointer":"/a","notes":[{"text":"first defined here","file":"data/a.yml"}],"hint":"remove one"}]"#
            ),
        );
    }
}

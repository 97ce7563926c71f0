//! A report: collected findings, sorted and limited per file.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Severity};
use crate::location::LineIndex;

/// Provides file contents for rendering findings.
pub trait Sources {
    /// The text of `file`, if it is available.
    fn text(&self, file: &str) -> Option<Cow<'_, str>>;

    /// The name of the file in messages: its name in the data repo, or its path from the working directory.
    fn display<'f>(&self, file: &'f str) -> Cow<'f, str> {
        Cow::Borrowed(file)
    }
}

/// Caches the text and line index of the last file, because findings are sorted by file.
pub(crate) struct CachedSources<'a> {
    sources: &'a dyn Sources,
    last: RefCell<Option<CachedSource>>,
}

/// The file that was read last; without a text if the file cannot be read.
struct CachedSource {
    file: String,
    text: Option<Rc<SourceText>>,
}

/// The text of a file and its line index.
pub(crate) struct SourceText {
    pub text: String,
    pub lines: LineIndex,
}

impl<'a> CachedSources<'a> {
    pub(crate) fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, last: RefCell::new(None) }
    }

    pub(crate) fn text(&self, file: &str) -> Option<Rc<SourceText>> {
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|cached| cached.file != file) {
            let text = self.sources.text(file).map(Cow::into_owned);
            let text = text.map(|text| Rc::new(SourceText { lines: LineIndex::new(&text), text }));
            *last = Some(CachedSource { file: file.to_owned(), text });
        }
        last.as_ref().and_then(|cached| cached.text.clone())
    }

    /// The name of the file in messages.
    pub(crate) fn display<'f>(&self, file: &'f str) -> Cow<'f, str> {
        self.sources.display(file)
    }
}

/// A source with the same text for every file, for tests.
#[cfg(test)]
pub(crate) struct SingleSource(pub &'static str);

#[cfg(test)]
impl Sources for SingleSource {
    fn text(&self, _file: &str) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.0))
    }
}

/// A source without file contents: findings are shown without lines and code frames.
pub struct NoSources;

impl Sources for NoSources {
    fn text(&self, _file: &str) -> Option<Cow<'_, str>> {
        None
    }
}

/// Maximum number of findings of one file in a report; further findings are only counted.
pub const MAX_PER_FILE: usize = 100;

/// Findings of one file that a report omits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmittedFindings {
    /// The file.
    pub file: String,
    /// Number of errors.
    pub errors: usize,
    /// Number of warnings.
    pub warnings: usize,
}

impl OmittedFindings {
    /// Number of findings.
    pub fn count(&self) -> usize {
        self.errors + self.warnings
    }
}

/// Findings sorted by file and position, at most [`MAX_PER_FILE`] per file.
///
/// The limit is high enough to show a mistake that occurs everywhere in a file, and low enough that a hostile
/// file cannot make a report large. If a file has too many findings, errors are kept before warnings.
/// **Invariant:** the order does not depend on the order of the input.
#[derive(Clone, Debug, Default)]
pub struct Report {
    findings: Vec<Diagnostic>,
    omitted: Vec<OmittedFindings>,
}

impl Report {
    /// Creates the report of `findings`.
    pub fn new(mut findings: Vec<Diagnostic>) -> Self {
        findings.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        findings.dedup();
        let mut report = Self::default();
        let mut rest = findings.into_iter().peekable();
        while let Some(first) = rest.next() {
            let mut of_file = vec![first];
            while let Some(next) = rest.next_if(|next| next.location.file == of_file[0].location.file) {
                of_file.push(next);
            }
            report.omitted.extend(limit_findings(&mut of_file));
            report.findings.append(&mut of_file);
        }
        report
    }

    /// The findings, in order.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// The files with more findings than the report holds, in order.
    pub fn omitted(&self) -> &[OmittedFindings] {
        &self.omitted
    }

    /// Number of findings of a file that the report omits.
    pub fn omitted_of(&self, file: &str) -> usize {
        self.omitted.iter().find(|omitted| omitted.file == file).map_or(0, OmittedFindings::count)
    }

    /// Number of findings, including omitted findings.
    pub fn len(&self) -> usize {
        self.findings.len() + self.omitted.iter().map(OmittedFindings::count).sum::<usize>()
    }

    /// Number of findings with this severity, including omitted findings.
    pub fn count(&self, severity: Severity) -> usize {
        let omitted = self.omitted.iter().map(|omitted| match severity {
            Severity::Error => omitted.errors,
            Severity::Warning => omitted.warnings,
        });
        self.findings.iter().filter(|finding| finding.severity == severity).count() + omitted.sum::<usize>()
    }

    /// Whether there is at least one error.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// The findings, file by file.
    pub fn by_file(&self) -> impl Iterator<Item = &[Diagnostic]> {
        self.findings.chunk_by(|a, b| a.location.file == b.location.file)
    }

    /// One line with the counts: `2 errors, 1 warning in 3 files`.
    pub fn summary(&self) -> String {
        let mut files: Vec<&str> =
            self.findings.iter().map(|finding| finding.location.file.as_str()).collect();
        files.dedup();
        let mut parts = Vec::new();
        for severity in [Severity::Error, Severity::Warning] {
            let count = self.count(severity);
            if count > 0 {
                parts.push(pluralize(count, severity.as_str()));
            }
        }
        if parts.is_empty() {
            return "no findings".to_owned();
        }
        format!("{} in {}", parts.join(", "), pluralize(files.len(), "file"))
    }
}

/// A count with its noun: `1 file`, `2 files`.
pub fn pluralize(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Removes findings of one file until it has at most [`MAX_PER_FILE`]: the last warnings first, then the last
/// errors. Returns the number of removed findings.
fn limit_findings(findings: &mut Vec<Diagnostic>) -> Option<OmittedFindings> {
    if findings.len() <= MAX_PER_FILE {
        return None;
    }
    let file = findings[0].location.file.clone();
    let total = |findings: &[Diagnostic]| {
        let errors = findings.iter().filter(|finding| finding.is_error()).count();
        (errors, findings.len() - errors)
    };
    let (errors, warnings) = total(findings);
    let (mut errors_left, mut warnings_left) =
        (errors.min(MAX_PER_FILE), warnings.min(MAX_PER_FILE.saturating_sub(errors)));
    findings.retain(|finding| {
        let left = if finding.is_error() { &mut errors_left } else { &mut warnings_left };
        let is_kept = *left > 0;
        *left = left.saturating_sub(1);
        is_kept
    });
    let (kept_errors, kept_warnings) = total(findings);
    Some(OmittedFindings { file, errors: errors - kept_errors, warnings: warnings - kept_warnings })
}

/// Sorts by file, then position; findings about the whole file come first.
fn sort_key(finding: &Diagnostic) -> impl Ord + '_ {
    let place = &finding.location;
    (
        place.file.as_str(),
        place.span,
        finding.severity,
        finding.code,
        finding.message.as_str(),
        place.pointer.as_deref(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;
    use crate::location::Span;

    #[test]
    fn findings_are_sorted_by_file_for_every_input_order() {
        let at = |file: &str, start| {
            Diagnostic::new(code::YAML_SYNTAX, "x").in_file(file).at(Span::new(start, start + 1))
        };
        let sorted = vec![at("a", 1), at("a", 10), at("b", 0)];
        let report =
            Report::new(vec![sorted[2].clone(), sorted[1].clone(), sorted[0].clone(), sorted[0].clone()]);
        assert_eq!(report.findings(), sorted);
        assert_eq!(report.summary(), "3 errors in 2 files");
    }

    /// Checks how many errors and warnings of a file a report keeps, and how many it omits.
    fn check(errors: usize, warnings: usize, kept: (usize, usize), omitted: Option<(usize, usize)>) {
        let at = |code, start| Diagnostic::new(code, "x").in_file("a").at(Span::new(start, start));
        // Warnings come before the errors.
        let mut findings: Vec<_> = (0..warnings).map(|start| at(code::YAML_DUPLICATE_KEY, start)).collect();
        findings.extend((0..errors).map(|start| at(code::YAML_SYNTAX, 10_000 + start)));
        findings.push(Diagnostic::new(code::YAML_SYNTAX, "x").in_file("b"));
        let report = Report::new(findings);
        let held = |severity| {
            report
                .findings()
                .iter()
                .filter(|one| one.location.file == "a" && one.severity == severity)
                .count()
        };
        assert_eq!((held(Severity::Error), held(Severity::Warning)), kept, "{errors} {warnings}");
        let left_out: Vec<_> = report.omitted().iter().map(|one| (one.errors, one.warnings)).collect();
        assert_eq!(left_out, omitted.into_iter().collect::<Vec<_>>(), "{errors} {warnings}");
        let (total, counted) = (errors + warnings + 1, omitted.map_or(0, |(one, two)| one + two));
        assert_eq!((report.len(), report.omitted_of("a"), report.omitted_of("b")), (total, counted, 0));
        assert_eq!(report.count(Severity::Error), errors + 1);
        assert_eq!(report.count(Severity::Warning), warnings);
        assert!(report.findings().is_sorted_by_key(|finding| finding.location.clone()));
    }

    #[test]
    fn of_a_file_with_too_many_findings_the_first_errors_are_kept() {
        check(100, 0, (100, 0), None);
        check(101, 0, (100, 0), Some((1, 0)));
        check(0, 101, (0, 100), Some((0, 1)));
        check(1, 99, (1, 99), None);
        check(1, 100, (1, 99), Some((0, 1)));
        check(99, 300, (99, 1), Some((0, 299)));
        check(100, 1, (100, 0), Some((0, 1)));
        check(150, 7, (100, 0), Some((50, 7)));
    }
}

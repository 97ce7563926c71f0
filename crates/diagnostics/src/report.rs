//! Findings collected and put in order.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Severity};

/// Where the texts of files come from when findings are rendered.
pub trait Sources {
    /// The text of `file`, if it can still be had.
    fn text(&self, file: &str) -> Option<Cow<'_, str>>;
}

/// The texts of other sources, kept as long as the same file is asked for.
pub(crate) struct Remembered<'a> {
    sources: &'a dyn Sources,
    last: RefCell<Option<(String, Option<Rc<str>>)>>,
}

impl<'a> Remembered<'a> {
    pub(crate) fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, last: RefCell::new(None) }
    }

    pub(crate) fn text(&self, file: &str) -> Option<Rc<str>> {
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(known, _)| known != file) {
            *last = Some((file.to_owned(), self.sources.text(file).map(|text| Rc::from(&*text))));
        }
        last.as_ref().and_then(|(_, text)| text.clone())
    }
}

/// One text for every file, for tests.
#[cfg(test)]
pub(crate) struct One(pub &'static str);

#[cfg(test)]
impl Sources for One {
    fn text(&self, _file: &str) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.0))
    }
}

/// No texts at all: findings are shown without lines and frames.
pub struct NoSources;

impl Sources for NoSources {
    fn text(&self, _file: &str) -> Option<Cow<'_, str>> {
        None
    }
}

/// Findings in the order of files and places.
///
/// **Invariant:** the order does not depend on the order in which findings were pushed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    findings: Vec<Diagnostic>,
}

impl Report {
    /// All of `findings`, sorted.
    pub fn new(mut findings: Vec<Diagnostic>) -> Self {
        findings.sort_by(|a, b| order(a).cmp(&order(b)));
        findings.dedup();
        Self { findings }
    }

    /// The findings, in order.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// How many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether there is at least one error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(Diagnostic::is_error)
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// The findings, file by file.
    pub fn by_file(&self) -> impl Iterator<Item = &[Diagnostic]> {
        self.findings.chunk_by(|a, b| a.place.file == b.place.file)
    }

    /// One line that counts: `2 errors, 1 warning in 3 files`.
    pub fn summary(&self) -> String {
        let mut files: Vec<&str> = self.findings.iter().map(|finding| finding.place.file.as_str()).collect();
        files.dedup();
        let mut parts = Vec::new();
        for severity in [Severity::Error, Severity::Warning] {
            let count = self.count(severity);
            if count > 0 {
                parts.push(counted(count, severity.word()));
            }
        }
        if parts.is_empty() {
            return "no findings".to_owned();
        }
        format!("{} in {}", parts.join(", "), counted(files.len(), "file"))
    }
}

/// `1 file`, `2 files`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// By file, then place; findings about the whole file come first.
fn order(finding: &Diagnostic) -> impl Ord + '_ {
    let place = &finding.place;
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
    use crate::place::Span;

    #[test]
    fn findings_come_out_in_file_order_whatever_order_they_went_in() {
        let at = |file: &str, start| {
            Diagnostic::new(code::YAML_SYNTAX, "x").in_file(file).at(Span::new(start, start + 1))
        };
        let sorted = vec![at("a", 1), at("a", 10), at("b", 0)];
        let report =
            Report::new(vec![sorted[2].clone(), sorted[1].clone(), sorted[0].clone(), sorted[0].clone()]);
        assert_eq!(report.findings(), sorted);
        assert_eq!(report.summary(), "3 errors in 2 files");
    }
}

//! Reports invalid data, for which no plan can be computed.

use qontract_diagnostics::record::{self, Record};
use qontract_diagnostics::{Diagnostic, Report, Severity, Sources, pluralize};
use serde::{Deserialize, Serialize};

/// Maximum number of findings that a report lists.
pub const MAX_FINDINGS: usize = 50;

/// One of the two compared states of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataSide {
    /// The data before the change.
    Base,
    /// The data that would be planned.
    Head,
}

/// The findings of invalid data, which prevented planning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidData {
    /// The side to which the findings belong.
    pub side: DataSide,
    /// Number of errors, including those that are not listed.
    pub errors: usize,
    /// Number of warnings, including those that are not listed.
    pub warnings: usize,
    /// At most [`MAX_FINDINGS`] findings in the order of files and lines. If the data has more findings,
    /// errors take precedence over warnings.
    pub findings: Vec<FindingReport>,
    /// Number of findings that are not listed.
    #[serde(default)]
    pub omitted: usize,
}

/// A finding about the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingReport {
    /// The code, for `qontract explain CODE`.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// The message.
    pub message: String,
    /// The file, relative to the data repo; absent if the finding does not concern a single file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in characters, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// How to fix the mistake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl DataSide {
    /// The name of the side.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Head => "head",
        }
    }
}

impl InvalidData {
    /// Collects the findings of one side; `sources` provides the lines.
    pub fn new(side: DataSide, report: &Report, sources: &dyn Sources) -> Self {
        let all = report.findings().iter();
        let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) = all.partition(|one| one.is_error());
        let listed: Vec<Diagnostic> =
            errors.into_iter().chain(warnings).take(MAX_FINDINGS).cloned().collect();
        let omitted = report.len() - listed.len();
        let records = record::records(&Report::new(listed), MAX_FINDINGS, sources);
        Self {
            side,
            errors: report.count(Severity::Error),
            warnings: report.count(Severity::Warning),
            findings: records.into_iter().map(FindingReport::from).collect(),
            omitted,
        }
    }

    /// A summary in one sentence: `the data of head is invalid: 1 error, 2 warnings`.
    pub fn summary(&self) -> String {
        let mut counts = pluralize(self.errors, "error");
        if self.warnings > 0 {
            counts.push_str(&format!(", {}", pluralize(self.warnings, "warning")));
        }
        format!("the data of {} is invalid: {counts}", self.side.as_str())
    }
}

impl From<Record> for FindingReport {
    fn from(record: Record) -> Self {
        let Record { code, severity, message, location, label: _, notes: _, hint } = record;
        let file = Some(location.file).filter(|file| !file.is_empty());
        let severity = severity.to_owned();
        Self { code, severity, message, file, line: location.line, column: location.column, hint }
    }
}

impl FindingReport {
    /// The location as `file:line:column`, without the parts that are not available.
    pub fn location(&self) -> Option<String> {
        let mut out = self.file.clone()?;
        for number in [self.line, self.column].into_iter().map_while(|number| number) {
            out.push_str(&format!(":{number}"));
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use qontract_diagnostics::{NoSources, code};

    use super::*;

    #[test]
    fn errors_are_listed_before_warnings_and_the_rest_is_counted() {
        let check = |errors: usize, warnings: usize, listed: usize, omitted: usize| {
            // The files with warnings come first in the order of files.
            let warning =
                |number| Diagnostic::new(code::YAML_DUPLICATE_KEY, "w").in_file(format!("a{number:03}.yml"));
            let error = |number| Diagnostic::new(code::YAML_SYNTAX, "e").in_file(format!("b{number:03}.yml"));
            let findings = (0..warnings).map(warning).chain((0..errors).map(error)).collect();
            let invalid = InvalidData::new(DataSide::Base, &Report::new(findings), &NoSources);
            let count =
                |severity: &str| invalid.findings.iter().filter(|one| one.severity == severity).count();
            assert_eq!((invalid.errors, invalid.warnings), (errors, warnings));
            assert_eq!((invalid.findings.len(), invalid.omitted), (listed, omitted));
            assert_eq!(count("error"), errors.min(MAX_FINDINGS));
        };
        check(1, 0, 1, 0);
        check(50, 0, 50, 0);
        check(51, 0, 50, 1);
        check(1, 50, 50, 1);
        check(60, 60, 50, 70);
    }

    #[test]
    fn a_finding_without_a_file_has_no_location() {
        let check = |file: &str, line: Option<u32>, column: Option<u32>, expect: Option<&str>| {
            let file = Some(file.to_owned()).filter(|file| !file.is_empty());
            let (code, severity, message) = ("Q1".to_owned(), "error".to_owned(), "x".to_owned());
            let one = FindingReport { code, severity, message, file, line, column, hint: None };
            assert_eq!(one.location().as_deref(), expect);
        };
        check("", None, None, None);
        check("a.yml", None, None, Some("a.yml"));
        check("a.yml", Some(3), None, Some("a.yml:3"));
        check("a.yml", Some(3), Some(7), Some("a.yml:3:7"));
        let report = Report::new(vec![Diagnostic::new(code::YAML_SYNTAX, "x")]);
        let invalid = InvalidData::new(DataSide::Head, &report, &NoSources);
        assert_eq!(invalid.findings[0].file, None);
        assert_eq!(invalid.summary(), "the data of head is invalid: 1 error");
    }
}

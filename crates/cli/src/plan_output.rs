//! Prints plan reports.

use qontract_report::text::{self, Detail};
use qontract_report::{PlanReport, markdown};

use crate::PlanFormat;
use crate::printer::Printer;

/// How much of a plan is shown.
pub fn detail(full: bool) -> Detail {
    if full { Detail::FULL } else { Detail::default() }
}

/// Prints a report.
pub fn print(
    report: &PlanReport,
    format: PlanFormat,
    detail: Detail,
    printer: &Printer,
) -> anyhow::Result<()> {
    match format {
        PlanFormat::Text => printer.styled(&text::render(report, detail)),
        PlanFormat::Md => printer.text(&markdown::render(report, detail, markdown::MAX_BYTES)),
        PlanFormat::Json => printer.json(&report.to_json()),
    }
}

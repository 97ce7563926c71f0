//! Prints plan reports.

use qontract_report::text::{self, PlanDetail};
use qontract_report::{FileName, PlanReport, markdown};

use crate::PlanFormat;
use crate::printer::Printer;

/// The level of detail for `--full`.
pub fn detail(full: bool) -> PlanDetail {
    if full { PlanDetail::FULL } else { PlanDetail::default() }
}

/// Prints a report. File names are relative to the working directory in text output, and to the data repo in
/// other formats.
pub fn print(
    report: &PlanReport,
    format: PlanFormat,
    detail: PlanDetail,
    file_name: FileName<'_>,
    printer: &Printer,
) -> anyhow::Result<()> {
    match format {
        PlanFormat::Text => {
            let mut report = report.clone();
            report.rename_files(file_name);
            printer.styled(&text::render(&report, detail))
        }
        PlanFormat::Md => printer.text(&markdown::render(report, detail, markdown::MAX_BYTES)),
        PlanFormat::Json => printer.json(&report.to_json()),
    }
}

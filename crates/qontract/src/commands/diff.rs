//! `qontract diff`: the differences between two data repos, revisions or bundles.

use qontract_bundle::diff::Diff as Difference;
use qontract_cli::printer::Printer;
use qontract_cli::{DiffArgs, DiffFormat};
use qontract_daemon::exit::Exit;
use qontract_daemon::input::{InputCheck, InputResolver};
use qontract_daemon::line_cache::LineCache;
use qontract_report::data_diff::{self, DiffLimits, DiffSides, SourceLocator};

/// Exit codes: 0 without differences, 1 with differences, 2 for every error.
pub fn run(arguments: DiffArgs, printer: &Printer) -> Exit {
    compare(arguments, printer).unwrap_or_else(|error| {
        printer.error(&error);
        Exit::Usage
    })
}

fn compare(arguments: DiffArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let DiffArgs { base, head, repo, full, output, layout } = arguments;
    let resolver = InputResolver::new(&repo, layout.into(), printer);
    let head = head.unwrap_or_else(|| repo.display().to_string());
    // Both inputs are opened before an error is returned, so that the errors of both are reported together.
    let base = resolver.open(&base, InputCheck::Nothing);
    let head = resolver.open(&head, InputCheck::Nothing);
    let (base, head) = match (base, head) {
        (Ok(base), Ok(head)) => (base, head),
        (Err(error), Err(other)) => {
            printer.error(&error);
            return Err(other);
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let difference = Difference::between(&base.bundle, &head.bundle);
    let (base_lines, head_lines) = (LineCache::default(), LineCache::default());
    let base_line = |file: &str, pointer: &str| base_lines.locate(&base, file, pointer);
    let head_line = |file: &str, pointer: &str| head_lines.locate(&head, file, pointer);
    let sides = DiffSides {
        base: SourceLocator(&base_line),
        head: SourceLocator(&head_line),
        layout: &resolver.layout,
    };
    let fold = if full { DiffLimits::FULL } else { DiffLimits::default() };
    let files = || data_diff::files(&difference, &sides);
    match output {
        DiffFormat::Json => {
            let mut json = difference.to_json();
            json.push(b'\n');
            printer.json(&json)?;
        }
        DiffFormat::Text => printer.styled(&data_diff::text(&files(), fold))?,
        DiffFormat::Md => printer.text(&data_diff::markdown(&files(), fold))?,
    }
    Ok(if difference.is_empty() { Exit::Ok } else { Exit::Failure })
}

//! `qontract diff`: the differences between two data repos, revisions or bundles.

mod markdown;
mod model;
mod rename;
mod text;

use qontract_bundle::Layout;
use qontract_bundle::diff::Diff as Difference;
use qontract_cli::printer::Printer;
use qontract_cli::{Diff, DiffFormat};
use qontract_daemon::exit::Exit;
use qontract_daemon::input::{Input, Opener};
use qontract_daemon::lines::Lines;

/// What is compared with what: where the lines of both sides come from.
struct Sides<'a> {
    base: Texts<'a>,
    head: Texts<'a>,
    layout: &'a Layout,
}

/// The texts of a side.
struct Texts<'a> {
    input: &'a Input,
    lines: Lines,
}

impl<'a> Texts<'a> {
    fn new(input: &'a Input) -> Self {
        Self { input, lines: Lines::default() }
    }

    fn place(&self, file: &str, pointer: &str) -> String {
        self.lines.place(self.input, file, pointer)
    }
}

/// How much of each file is shown.
#[derive(Clone, Copy)]
struct Fold {
    /// The most lines of a changed file.
    changed: usize,
    /// The most lines of a file that is added or removed.
    whole: usize,
    /// The most characters of a value.
    value: usize,
}

fn fold(full: bool) -> Fold {
    if full {
        Fold { changed: usize::MAX, whole: usize::MAX, value: usize::MAX }
    } else {
        Fold { changed: 100, whole: 12, value: 100 }
    }
}

/// 0 if they are the same, 1 if they differ: every failure is 2 here.
pub fn run(arguments: Diff, printer: &Printer) -> Exit {
    compare(arguments, printer).unwrap_or_else(|error| {
        printer.error(&error);
        Exit::Usage
    })
}

fn compare(arguments: Diff, printer: &Printer) -> anyhow::Result<Exit> {
    let Diff { base, head, repo, full, output, layout } = arguments;
    let opener = Opener::new(&repo, layout.into(), printer);
    let head = head.unwrap_or_else(|| repo.display().to_string());
    // Both before either fails: all that is wrong is said at once.
    let base = opener.open(&base);
    let head = opener.open(&head);
    let (base, head) = match (base, head) {
        (Ok(base), Ok(head)) => (base, head),
        (Err(error), Err(other)) => {
            printer.error(&error);
            return Err(other);
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let difference = Difference::between(&base.bundle, &head.bundle);
    let sides = Sides { base: Texts::new(&base), head: Texts::new(&head), layout: &opener.layout };
    match output {
        DiffFormat::Json => {
            let mut json = difference.to_json();
            json.push(b'\n');
            printer.json(&json)?;
        }
        DiffFormat::Text => printer.styled(&text::render(&model::files(&difference, &sides), fold(full)))?,
        DiffFormat::Md => printer.text(&markdown::render(&model::files(&difference, &sides), fold(full)))?,
    }
    Ok(if difference.is_empty() { Exit::Ok } else { Exit::Failure })
}

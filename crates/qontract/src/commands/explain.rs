//! `qontract explain`: explains a code, or the decisions and results of a run.

use qontract_cli::printer::Printer;
use qontract_cli::{ExplainArgs, RecordFormat};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_diagnostics::suggest::did_you_mean;
use qontract_diagnostics::{Code, Severity, StyledText, TextStyle, code};

use crate::commands::runs;

pub fn run(arguments: ExplainArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let ExplainArgs { code, run, runs: folder } = arguments;
    match (code.as_deref(), run) {
        (Some("run"), Some(run)) => {
            let store = runs::open(folder, None)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runs::show(&runtime.block_on(store.resolve(&run))?, RecordFormat::Text, printer)?;
            return Ok(Exit::Ok);
        }
        (Some("run"), None) => {
            return Err(UsageError("the run is missing: `qontract explain run RUN`".to_owned()).into());
        }
        (_, Some(word)) => return Err(UsageError(format!("unexpected argument `{word}`")).into()),
        (_, None) => {}
    }
    let Some(written) = &code else {
        let mut list = StyledText::default();
        for entry in code::TABLE {
            list.push(TextStyle::Plain, &format!("{}  ", entry.code));
            list.push(style(entry.severity), &format!("{:<7}", entry.severity.as_str()));
            list.push(TextStyle::Plain, &format!("  {}\n", entry.title()));
        }
        printer.styled(&list)?;
        return Ok(Exit::Ok);
    };
    let Some(code) = Code::parse(written) else {
        let codes: Vec<String> = code::TABLE.iter().map(|entry| entry.code.to_string()).collect();
        let near = did_you_mean(&written.to_uppercase(), codes.iter().map(String::as_str));
        let hint = near.unwrap_or_else(|| "`qontract explain` lists all codes".to_owned());
        let message = format!("no such code: `{written}`; {hint}");
        return Err(UsageError(message).into());
    };
    let entry = code.entry();
    let mut text = StyledText::default();
    text.push(style(entry.severity), &format!("{}[{code}]", entry.severity.as_str()));
    let (title, rest) = entry.text.split_once('\n').unwrap_or((entry.text, ""));
    text.push(TextStyle::Bold, &format!(": {}", title.trim_start_matches("# ")));
    text.push(TextStyle::Plain, "\n");
    let mut is_code = false;
    for line in rest.lines() {
        is_code ^= line.starts_with("```");
        let is_heading = line.starts_with('#') && !is_code;
        text.push(if is_heading { TextStyle::Bold } else { TextStyle::Plain }, line);
        text.push(TextStyle::Plain, "\n");
    }
    text.push(TextStyle::Plain, "\n");
    printer.styled(&text)?;
    Ok(Exit::Ok)
}

/// The style of a severity, as in findings.
fn style(severity: Severity) -> TextStyle {
    match severity {
        Severity::Error => TextStyle::Error,
        Severity::Warning => TextStyle::Warning,
    }
}

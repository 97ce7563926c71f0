//! `qontract explain`: what a code means at length, and what a run decided and did.

use qontract_cli::printer::Printer;
use qontract_cli::{Explain, RecordFormat};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_diagnostics::suggest::did_you_mean;
use qontract_diagnostics::{Code, code};

use crate::commands::runs;

pub fn run(arguments: Explain, printer: &Printer) -> anyhow::Result<Exit> {
    let Explain { code, run, runs: folder } = arguments;
    match (code.as_deref(), run) {
        (Some("run"), Some(run)) => {
            runs::show(&runs::open(folder)?.resolve(&run)?, RecordFormat::Text, printer)?;
            return Ok(Exit::Ok);
        }
        (Some("run"), None) => {
            return Err(UsageError("which run? `qontract explain run RUN`".to_owned()).into());
        }
        (_, Some(word)) => return Err(UsageError(format!("`{word}` is one word too many")).into()),
        (_, None) => {}
    }
    let Some(written) = &code else {
        let rows = code::TABLE.iter().map(|entry| {
            let (code, severity) = (entry.code, entry.severity.word());
            format!("{code}  {severity:<7}  {}\n", entry.title())
        });
        printer.text(&rows.collect::<String>())?;
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
    printer.text(&format!("{}[{code}]: {}\n", entry.severity.word(), entry.text.trim_start_matches("# ")))?;
    Ok(Exit::Ok)
}

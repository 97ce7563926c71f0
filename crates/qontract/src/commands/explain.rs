//! `qontract explain`: what a code means at length.

use qontract_diagnostics::{Code, code};

use crate::cli::Explain;
use crate::exit::{Exit, UsageError};
use crate::printer::Printer;

pub fn run(arguments: &Explain, printer: &Printer) -> anyhow::Result<Exit> {
    let Some(written) = &arguments.code else {
        let rows = code::TABLE.iter().map(|entry| {
            let (code, severity) = (entry.code, entry.severity.word());
            format!("{code}  {severity:<7}  {}\n", entry.title())
        });
        printer.data(rows.collect::<String>().as_bytes())?;
        return Ok(Exit::Ok);
    };
    let Some(code) = Code::parse(written) else {
        let message = format!("there is no code `{written}`; `qontract explain` lists them all");
        return Err(UsageError(message).into());
    };
    let entry = code.entry();
    printer.data(
        format!("{}[{code}]: {}\n", entry.severity.word(), entry.text.trim_start_matches("# ")).as_bytes(),
    )?;
    Ok(Exit::Ok)
}

//! `qontract peer validator`: takes the arguments of qontract-validator and writes the same records.

use qontract_bundle::{Pool, load_from};
use qontract_cli::PeerValidatorArgs;
use qontract_cli::printer::Printer;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_diagnostics::sanitize;
use qontract_validate::peer::{self, JsonRecords};

pub fn run(arguments: &PeerValidatorArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let PeerValidatorArgs { only_errors, bundle: path } = arguments;
    let mut file = std::fs::File::open(path)
        .map_err(|error| UsageError(format!("cannot read `{}`: {error}", path.display())))?;
    let bundle = load_from(&mut file, &Pool::default())?;
    for path in peer::unchecked_resources(&bundle) {
        printer.note(&format!(
            "WARNING: {} names a schema but cannot be read, and is not checked",
            sanitize(path)
        ));
    }
    let (mut json, mut has_errors, mut written) = (JsonRecords::default(), false, Ok(()));
    peer::visit_records(&bundle, &mut |record| {
        has_errors |= record.is_error();
        if written.is_err() || (*only_errors && !record.is_error()) {
            return;
        }
        json.add(&record);
        if let Some(text) = json.take_if_large() {
            written = printer.json(text.as_bytes());
        }
    });
    written?;
    printer.json(json.finish().as_bytes())?;
    Ok(if has_errors { Exit::Failure } else { Exit::Ok })
}

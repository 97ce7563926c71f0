//! `qontract peer validator`: the arguments of qontract-validator, its records on stdout.

use qontract_bundle::{Pool, load_from};
use qontract_diagnostics::shown;
use qontract_validate::peer::{self, Record};

use crate::cli::PeerValidator;
use crate::exit::{Exit, UsageError};
use crate::printer::Printer;

pub fn run(arguments: &PeerValidator, printer: &Printer) -> anyhow::Result<Exit> {
    let PeerValidator { only_errors, bundle: path } = arguments;
    let mut file = std::fs::File::open(path)
        .map_err(|error| UsageError(format!("cannot read `{}`: {error}", path.display())))?;
    let bundle = load_from(&mut file, &Pool::default())?;
    for path in peer::unchecked(&bundle) {
        printer
            .note(&format!("WARNING: {} names a schema but cannot be read, and is not checked", shown(path)));
    }
    let mut records = peer::records(&bundle);
    let wrong = records.iter().any(Record::is_error);
    if *only_errors {
        records.retain(Record::is_error);
    }
    printer.json(peer::to_json(&records).as_bytes())?;
    Ok(if wrong { Exit::Failure } else { Exit::Ok })
}

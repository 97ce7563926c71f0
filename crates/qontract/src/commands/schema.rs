//! `qontract schema`: exports the JSON Schemas of a data repo for other tools.

use std::fs;

use anyhow::Context as _;
use qontract_cli::SchemaExportArgs;
use qontract_cli::printer::Printer;
use qontract_daemon::exit::Exit;
use qontract_daemon::input::{InputCheck, InputResolver};
use qontract_validate::export;

/// `qontract schema export`: writes plain JSON Schemas, and the editor settings that map them to files.
pub fn export(arguments: SchemaExportArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let SchemaExportArgs { folder, from, repo, layout } = arguments;
    let from = from.unwrap_or_else(|| repo.display().to_string());
    let resolver = InputResolver::new(&repo, layout.into(), printer);
    let input = resolver.open(&from, InputCheck::Nothing)?;
    let schemas = export::schemas(&input.bundle);
    let settings = export::settings(&input.bundle, &folder.display().to_string(), &resolver.layout);
    let count = schemas.len();
    for (name, text) in schemas.into_iter().chain([("settings.json".to_owned(), settings)]) {
        let path = folder.join(&name);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot create `{}`", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    printer.note(&format!("{count} schemas and settings.json in {}", folder.display()));
    Ok(Exit::Ok)
}

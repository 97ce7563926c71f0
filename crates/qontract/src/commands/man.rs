//! `qontract man`: writes the manual pages, one for each command.

use std::fs;

use anyhow::Context as _;
use qontract_cli::printer::Printer;
use qontract_cli::{ManArgs, ungrouped_command};
use qontract_daemon::exit::Exit;

use crate::VERSION;
use crate::integrations::KnownIntegrations;

pub fn run(arguments: &ManArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let folder = &arguments.folder;
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(ungrouped_command(VERSION, &KnownIntegrations::listed().metas), folder)
    };
    write().with_context(|| format!("cannot write to `{}`", folder.display()))?;
    printer.note(&format!("see `man -l {}`", folder.join("qontract.1").display()));
    Ok(Exit::Ok)
}

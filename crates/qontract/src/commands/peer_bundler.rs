//! `qontract peer bundler`: takes the arguments of qontract-bundler and writes the same bytes to stdout.

use qontract_bundle::{CommitStamp, Layout, Repo};
use qontract_cli::PeerBundlerArgs;
use qontract_cli::printer::Printer;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::opened_repo::OpenedRepo;

use crate::commands::bundle;

pub fn run(arguments: PeerBundlerArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let PeerBundlerArgs {
        schema_dir,
        graphql_schema_file,
        data_dir,
        resource_dir,
        git_commit,
        git_commit_timestamp,
        ..
    } = arguments;
    for path in [&schema_dir, &graphql_schema_file, &data_dir, &resource_dir] {
        if !std::path::Path::new(path).exists() {
            return Err(UsageError(format!("`{path}` does not exist")).into());
        }
    }
    let folder = |path: String| if path == "/" { path } else { path.trim_end_matches('/').to_owned() };
    let layout = Layout {
        data: folder(data_dir),
        resources: folder(resource_dir),
        schemas: folder(schema_dir),
        graphql: graphql_schema_file,
    };
    let stamp = CommitStamp { commit: git_commit, timestamp: git_commit_timestamp };
    let options = bundle::BundleOptions { strict: false, validate: false, output: None };
    let opened = OpenedRepo { repo: Repo::with_separate_parts(layout), stamp };
    bundle::build_and_write(&opened, &options, printer)
}

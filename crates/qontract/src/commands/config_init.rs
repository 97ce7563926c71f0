//! `qontract config init`: writes a configuration template in which every line is a comment.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;
use qontract_cli::printer::Printer;
use qontract_config::ConfigLocation;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_files::private_files;

/// The content of the file. `#key` is a key that can be uncommented; `# text` is an explanation.
const TEMPLATE: &str = r#"# Configuration of qontract. Remove the `#` in front of the keys that you need.
# All keys: `qontract config reference`. Check the file: `qontract config check --config FILE`.

# Clusters that integrations reconcile. Without this table they need `--sandbox DIR`.
#[kubernetes]
#ca = "ca.pem"                  # PEM file of the CA that signed the certificates of the API servers
#validate_in_dry_run = true     # dry runs let the API server validate the objects

# A cluster by its name in the data: log in with a kubeconfig instead of the token that the data names.
#[kubernetes.clusters.NAME]
#kubeconfig = "kubeconfig"
#context = "admin"

# Vault has the secrets that the data names, such as tokens of clusters.
#[vault]
#server = "https://vault.example.com"
#role_id = "ROLE"
#secret_id = "SECRET"

# Without `[vault]`, secrets are tables: this is `{path: creds/NAME, field: token}`.
#[creds.NAME]
#token = "TOKEN"

# Read the data from a server instead of a directory.
#[graphql]
#server = "http://127.0.0.1:4000/graphql"

# A program as integration: docs/specs/process-integration.md
#[integrations.hello]
#command = ["sh", "hello.sh"]
"#;

/// Writes the file with mode 0600, because it may hold credentials. An existing file is not replaced.
pub fn init(file: &Path, printer: &Printer) -> anyhow::Result<Exit> {
    let written = private_files::options().write(true).create_new(true).open(file);
    match written.and_then(|mut file| file.write_all(TEMPLATE.as_bytes())) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(UsageError(format!("`{}` already exists", file.display())).into());
        }
        result => result.with_context(|| format!("cannot write `{}`", file.display()))?,
    }
    printer.text(&format!("wrote {}\n", file.display()))?;
    if ConfigLocation::find(None).file() != Some(file) {
        printer.note(&format!(
            "note: it is not in a default location: pass `--config {}`, or set `QONTRACT_CONFIG`",
            file.display()
        ));
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use qontract_config::Config;

    #[test]
    fn the_file_is_a_configuration_with_and_without_its_comments() {
        let scratch = qontract_testkit::Scratch::new();
        let read = |text: &str| {
            let file = scratch.path().join("config.toml");
            std::fs::write(&file, text).unwrap();
            Config::read(Some(&file))
        };
        read(TEMPLATE).unwrap();
        let uncommented = TEMPLATE.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => format!("{key}\n"),
            _ => format!("{line}\n"),
        });
        let config = read(&uncommented.collect::<String>()).unwrap();
        assert!(config.kubernetes.is_some() && config.vault.is_some() && config.graphql.is_some());
        assert!(config.integrations.contains_key("hello"));
        assert_eq!(config.secret_tables().keys().collect::<Vec<_>>(), ["creds"], "every other table is ours");
    }
}

//! Reads the configuration: where it is, and what in it is not a key.
//!
//! Secrets share the top level with our tables, as in the established runtime's `config.toml`: a table of another name is a table of secrets. One whose name is almost that of one of our tables,
//! and that is empty or has a key of that table, is a misspelling and refused.

use std::path::{Path, PathBuf};

use qontract_diagnostics::suggest::nearest;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::keys::{children, find};
use crate::cli::variable;

/// The configuration is missing or wrong. The command ends with exit code 2; a loop tries again, since a mounted file may appear later.
#[derive(Debug)]
pub struct ConfigError(pub String);

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The name of the configuration in the working directory.
const LOCAL: &str = "qontract.toml";

/// A configuration file, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `--config`.
    Option(PathBuf),
    /// `$QONTRACT_CONFIG`.
    Variable(PathBuf),
    /// One of the default places.
    Default(PathBuf),
    /// There is none.
    None {
        /// A file in a default place that is not read, because a data repo may bring it.
        ignored: Option<PathBuf>,
    },
}

impl Location {
    /// The file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Option(file) | Self::Variable(file) | Self::Default(file) => Some(file),
            Self::None { .. } => None,
        }
    }

    /// The file that is named: by `--config`, else by `$QONTRACT_CONFIG`.
    pub fn named(file: Option<&Path>) -> Self {
        match (file, variable("QONTRACT_CONFIG")) {
            (Some(file), _) => Self::Option(file.to_owned()),
            (None, Some(file)) => Self::Variable(file.into()),
            (None, None) => Self::None { ignored: None },
        }
    }

    /// The file that is named, else `./qontract.toml`, else `$XDG_CONFIG_HOME/qontract/config.toml`.
    ///
    /// **Invariant:** a data repo brings no configuration, which could name programs to run: `./qontract.toml` is not read inside a data repo or a Git work tree.
    pub fn find(file: Option<&Path>) -> Self {
        let named = Self::named(file);
        if named.file().is_some() {
            return named;
        }
        let local = Path::new(LOCAL).is_file().then(|| PathBuf::from(LOCAL));
        let is_trusted = local.is_some() && !std::env::current_dir().is_ok_and(|folder| is_in_repo(&folder));
        match local {
            Some(local) if is_trusted => Self::Default(local),
            ignored => match user_file().filter(|file| file.is_file()) {
                Some(file) => Self::Default(file),
                None => Self::None { ignored },
            },
        }
    }

    /// What to report about a file that is not read.
    pub fn note(&self) -> Option<String> {
        let Self::None { ignored: Some(file) } = self else { return None };
        let file = file.display();
        Some(format!(
            "note: `{file}` is not read, because it is inside a data repo or a Git work tree; pass `--config {file}`"
        ))
    }
}

/// The configuration of the user: `$XDG_CONFIG_HOME/qontract/config.toml`.
fn user_file() -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(home.join("qontract/config.toml"))
}

/// Whether a folder is inside a data repo or a Git work tree; as for Git, nothing above `GIT_CEILING_DIRECTORIES` is looked at.
fn is_in_repo(folder: &Path) -> bool {
    let ceilings = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
    let ceilings: Vec<PathBuf> = std::env::split_paths(&ceilings).collect();
    folder
        .ancestors()
        .take_while(|folder| !ceilings.iter().any(|ceiling| ceiling == folder))
        .any(|folder| folder.join(".git").exists() || folder.join("graphql-schemas/schema.yml").is_file())
}

/// A key that is not one, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// Its line.
    pub line: usize,
    /// What is wrong with it.
    pub text: String,
}

/// Reads a file.
pub fn read(file: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError(format!("cannot read `{}`: {error}", file.display())))?;
    let mut config = parse(&text).map_err(|UnknownKey { line, text }| {
        ConfigError(format!("`{}`, line {line}: {text}", file.display()))
    })?;
    config.resolve(file.parent().unwrap_or(Path::new("")));
    Ok(config)
}

/// Parses the text of a configuration.
fn parse(text: &str) -> Result<Config, UnknownKey> {
    let at = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let wrong = |error: &toml::de::Error| UnknownKey {
        line: line(text, at(error)),
        text: error.message().to_owned(),
    };
    let root = DeTable::parse(text).map_err(|error| wrong(&error))?;
    let mut unknown = unknown_keys(root.get_ref(), text);
    if !unknown.is_empty() {
        let more = unknown.len() - 1;
        let mut first = unknown.swap_remove(0);
        if more > 0 {
            first.text = format!("{} (and {more} more unknown)", first.text);
        }
        return Err(first);
    }
    toml::from_str(text).map_err(|error| {
        let mut wrong = wrong(&error);
        let mut path = Vec::new();
        descend(root.get_ref(), at(&error), &mut path);
        // The message may hold the value, which may be secret.
        wrong.text = match find(&path) {
            Some(key) => format!("`{}` must be {}", path.join("."), key.holds.as_str()),
            None if path.is_empty() => wrong.text,
            None => format!("`[{}]`: {}", path.join("."), wrong.text),
        };
        wrong
    })
}

/// The line of a byte, counted from 1.
fn line(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// The names of the innermost value that a byte is in.
fn descend<'t>(table: &'t DeTable<'_>, at: usize, path: &mut Vec<&'t str>) {
    for (name, value) in table {
        let holds = |table: &DeTable<'_>| contains(table, at);
        let inside = value.span().contains(&at) || value.get_ref().as_table().is_some_and(holds);
        if inside {
            path.push(name.get_ref());
            if let Some(inner) = value.get_ref().as_table() {
                descend(inner, at, path);
            }
            return;
        }
    }
}

/// Whether a byte is in a value of this table; the parts of a table may be in several places.
fn contains(table: &DeTable<'_>, at: usize) -> bool {
    table.values().any(|value| {
        value.span().contains(&at) || value.get_ref().as_table().is_some_and(|inner| contains(inner, at))
    })
}

/// Every key that is not one, in the order of the file.
pub fn unknown_keys(root: &DeTable<'_>, text: &str) -> Vec<UnknownKey> {
    let mut found = Vec::new();
    walk(root, &mut Vec::new(), &mut found);
    found.sort();
    found.into_iter().map(|(at, what)| UnknownKey { line: line(text, at), text: what }).collect()
}

fn walk<'t>(table: &'t DeTable<'_>, path: &mut Vec<&'t str>, found: &mut Vec<(usize, String)>) {
    let names = children(path);
    for (key, value) in table {
        let name: &str = key.get_ref();
        let is_known = names.contains(&"*") || names.contains(&name);
        let (at, inner) = (key.span().start, value.get_ref().as_table());
        match (is_known, inner) {
            (true, Some(inner)) => {
                path.push(name);
                if !children(path).is_empty() {
                    walk(inner, path, found);
                }
                path.pop();
            }
            (true, None) => {}
            (false, _) if path.is_empty() => {
                if let Some(meant) = misspelt(name, value.get_ref()) {
                    found.push((at, format!("unknown table `[{name}]`: did you mean `[{meant}]`?")));
                }
            }
            (false, _) => {
                let what = format!("unknown key `{}.{name}`", path.join("."));
                found.push((
                    at,
                    match nearest(name, names.iter().copied()) {
                        Some(meant) => format!("{what}: did you mean `{meant}`?"),
                        None => format!("{what}: expected one of {}", listed(&names)),
                    },
                ));
            }
        }
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The table that a table of another name is meant to be, unless it is one of secrets.
fn misspelt(name: &str, value: &DeValue<'_>) -> Option<&'static str> {
    let own = children(&[]);
    let is_derived =
        |own: &&str| name.strip_prefix(*own).is_some_and(|rest| !rest.starts_with(char::is_alphabetic));
    if own.iter().any(is_derived) {
        return None;
    }
    let meant = nearest(name, own.iter().copied())?;
    match value.as_table() {
        Some(table) if !table.is_empty() && !resembles(table, &mut vec![meant]) => None,
        _ => Some(meant),
    }
}

/// Whether a table has a key of ours.
fn resembles<'t>(table: &'t DeTable<'_>, path: &mut Vec<&'t str>) -> bool {
    let names = children(path);
    table.iter().any(|(key, value)| {
        let name: &str = key.get_ref();
        if !names.contains(&"*") {
            return names.contains(&name);
        }
        path.push(name);
        let resembles = value.get_ref().as_table().is_some_and(|inner| resembles(inner, path));
        path.pop();
        resembles
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<(), (usize, &str)>) {
        let read = parse(text).map(drop).map_err(|wrong| (wrong.line, wrong.text));
        assert_eq!(read, expect.map_err(|(line, text)| (line, text.to_owned())), "{text}");
    }

    #[test]
    fn every_key_is_taken() {
        let values = |key: &super::super::keys::Key| match key.holds {
            super::super::keys::KeyType::Number => "1",
            super::super::keys::KeyType::Boolean => "true",
            super::super::keys::KeyType::Texts => "[]",
            _ => "\"x\"",
        };
        let required = "graphql.server = \"x\"\nvault.server = \"x\"\nsandbox.directory = \"x\"\nintegrations.x.command = []\ntemplates.github_token.path = \"x\"\ntemplates.github_token.field = \"x\"\n";
        for key in super::super::keys::KEYS {
            let path = key.path.replace('*', "x");
            let rest: String = required
                .lines()
                .filter(|line| !line.starts_with(&format!("{path} ")))
                .fold(String::new(), |text, line| format!("{text}{line}\n"));
            check(&format!("{path} = {}\n{rest}", values(key)), Ok(()));
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        check(
            "\n[guards]\nshard_removal = 1\n",
            Err((3, "unknown key `guards.shard_removal`: did you mean `shard_removals`?")),
        );
        check("[promtool]\ncolour = 1\n", Err((2, "unknown key `promtool.colour`: expected one of `path`")));
        check(
            "[kubernetes.clusters.c1]\nserver = \"a\"\ncas = \"b\"\n",
            Err((3, "unknown key `kubernetes.clusters.c1.cas`: did you mean `ca`?")),
        );
        check(
            "[graphql]\nserver = \"a\"\ntokn = \"b\"\n",
            Err((3, "unknown key `graphql.tokn`: did you mean `token`?")),
        );
        check(
            "[guards]\na = 1\nb = 2\n[promtool]\nc = 1\n",
            Err((
                2,
                "unknown key `guards.a`: expected one of `shard_removals`, `shard_percent`, `caller_removals`, `caller_percent`, `integration_removals`, `integration_percent`, `run_removals`, `run_percent`, `window_hours` (and 2 more unknown)",
            )),
        );
    }

    #[test]
    fn a_misspelt_table_is_refused() {
        check("[kubernets]\n", Err((1, "unknown table `[kubernets]`: did you mean `[kubernetes]`?")));
        check(
            "[kubernets.clusters.c1]\nca = \"x\"\n",
            Err((1, "unknown table `[kubernets]`: did you mean `[kubernetes]`?")),
        );
        check(
            "[integration.x]\ncommand = []\n",
            Err((1, "unknown table `[integration]`: did you mean `[integrations]`?")),
        );
        check("guard = 1\n", Err((1, "unknown table `[guard]`: did you mean `[guards]`?")));
        check("[Vault]\nserver = \"x\"\n", Err((1, "unknown table `[Vault]`: did you mean `[vault]`?")));
    }

    #[test]
    fn other_tables_are_secrets() {
        for secrets in [
            "[creds.shop-prod]\ntoken = \"x\"\nserver = \"y\"\n",
            "[smtp]\nserver = \"x\"\n",
            "[qontract-api]\nserver = \"x\"\n",
            "[vault-dev]\nserver = \"x\"\n",
            "[vault2]\nserver = \"x\"\n",
            "[integration.forge]\ntoken = \"x\"\n",
            "[kubernets]\npassword = \"x\"\n",
            "debug = true\n",
        ] {
            check(secrets, Ok(()));
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_by_its_key_and_not_shown() {
        check(
            "[guards]\nshard_removals = \"ten\"\n",
            Err((2, "`guards.shard_removals` must be a whole number")),
        );
        check("[vault]\nserver = \"x\"\ntoken = 12345\n", Err((3, "`vault.token` must be a text (secret)")));
        check(
            "[kubernetes]\nrequests_per_second = 0\n",
            Err((2, "`kubernetes.requests_per_second` must be a whole number")),
        );
        check("[graphql]\ntoken = \"x\"\n", Err((1, "`[graphql]`: missing field `server`")));
    }
}

//! Reads the configuration, and refuses what in it is not a key.
//!
//! Secrets share the top level with our tables, as in the established runtime's `config.toml`: a table of another name is a table of secrets. One whose name is almost that of one of our tables,
//! and that is empty or has a key of that table, is a misspelling and refused.

use std::path::Path;

use qontract_diagnostics::counted;
use qontract_diagnostics::suggest::nearest;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::keys::{children, find};

/// The configuration is missing or wrong. The command ends with exit code 2; a loop tries again, since a mounted file may appear later.
#[derive(Debug)]
pub struct ConfigError(pub String);

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// An error in the text of a configuration, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextError {
    line: usize,
    /// What is wrong there. **Invariant:** a value of the configuration, which may be secret, is never part of it.
    text: String,
}

/// Reads a file.
pub fn read(file: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError(format!("cannot read `{}`: {error}", file.display())))?;
    let mut config = parse(&text).map_err(|TextError { line, text }| {
        ConfigError(format!("`{}`, line {line}: {text}", file.display()))
    })?;
    config.resolve(file.parent().unwrap_or(Path::new("")));
    Ok(config)
}

/// Parses the text of a configuration.
fn parse(text: &str) -> Result<Config, TextError> {
    let at = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let wrong =
        |error: &toml::de::Error| TextError { line: line(text, at(error)), text: error.message().to_owned() };
    let root = DeTable::parse(text).map_err(|error| wrong(&error))?;
    let mut wrong_keys = wrong_keys(root.get_ref(), text);
    if !wrong_keys.is_empty() {
        let more = wrong_keys.len() - 1;
        let mut first = wrong_keys.swap_remove(0);
        if more > 0 {
            first.text = format!("{} (and {})", first.text, counted(more, "more error"));
        }
        return Err(first);
    }
    toml::from_str(text).map_err(|error| {
        let mut wrong = wrong(&error);
        let mut path = Vec::new();
        descend(root.get_ref(), at(&error), &mut path);
        let name = path.join(".");
        // Only these messages hold names alone; others may hold the value.
        let has_names_only =
            ["missing field ", "duplicate field "].iter().any(|start| wrong.text.starts_with(start));
        wrong.text = match find(&path) {
            Some(key) => format!("`{name}` must be {}", key.holds.as_str()),
            None if has_names_only && path.is_empty() => wrong.text,
            None if has_names_only => format!("`[{name}]`: {}", wrong.text),
            None if path.is_empty() => "a value has the wrong type".to_owned(),
            None => format!("`{name}` has the wrong type"),
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

/// Every key that is not one, and every value in place of a table, in the order of the file.
fn wrong_keys(root: &DeTable<'_>, text: &str) -> Vec<TextError> {
    let mut found = Vec::new();
    walk(root, &mut Vec::new(), &mut found);
    found.sort();
    found.into_iter().map(|(at, what)| TextError { line: line(text, at), text: what }).collect()
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
            (true, None) => {
                path.push(name);
                if !children(path).is_empty() {
                    found.push((at, format!("`{}` must be a table", path.join("."))));
                }
                path.pop();
            }
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
        let values = |key: &crate::keys::Key| match key.holds {
            crate::keys::KeyType::Number => "1",
            crate::keys::KeyType::Boolean => "true",
            crate::keys::KeyType::Texts => "[]",
            _ => "\"x\"",
        };
        let required = "graphql.server = \"x\"\nvault.server = \"x\"\nsandbox.directory = \"x\"\nintegrations.x.command = []\ntemplates.github_token.path = \"x\"\ntemplates.github_token.field = \"x\"\n";
        for key in crate::keys::KEYS {
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
                "unknown key `guards.a`: expected one of `shard_removals`, `shard_percent`, `caller_removals`, `caller_percent`, `integration_removals`, `integration_percent`, `run_removals`, `run_percent`, `window_hours`, `keys` (and 2 more errors)",
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
    #[test]
    fn a_value_in_place_of_a_table_is_not_shown() {
        for path in [
            "vault",
            "templates.github_token",
            "kubernetes.clusters.c1",
            "integrations.x",
            "guards.keys",
            "graphql",
        ] {
            for value in [
                "\"c4nary\"",
                "[\"c4nary\"]",
                "[[\"c4nary\"]]",
                "[{server = \"c4nary\"}]",
                "true",
                "4242",
                "1979-05-27",
            ] {
                check(&format!("{path} = {value}\n"), Err((1, &format!("`{path}` must be a table"))));
            }
        }
        check("\n[[vault]]\ntoken = \"c4nary\"\n", Err((2, "`vault` must be a table")));
        check("guards = 1\nvault = \"c4nary\"\n", Err((1, "`guards` must be a table (and 1 more error)")));
    }

    #[test]
    fn no_message_holds_a_value() {
        for key in crate::keys::KEYS {
            let path = key.path.replace('*', "x");
            for value in [
                "\"c4nary\"",
                "[\"c4nary\", 1]",
                "[{a = \"c4nary\"}]",
                "{c = \"c4nary\"}",
                "{c.d = [\"c4nary\"]}",
                "c4nary",
                "\"c4nary",
                "'''c4nary",
                "4c4nary",
                "\"c4nary\" c4nary",
                "[\"c4nary\" \"c4nary\"]",
                "\"\\c4nary\"",
                "true4c4nary",
                "1979-05-27Tc4nary",
            ] {
                for text in [format!("{path} = {value}\n"), format!("[{path}]\nc = {value}\n")] {
                    let Err(TextError { text: message, .. }) = parse(&text) else { continue };
                    assert!(!message.contains("c4nary"), "{text}: {message}");
                }
            }
        }
    }

    #[test]
    fn a_key_that_is_set_by_both_names_is_named() {
        check(
            "[guards]\nrun_percent = 1\nintegration_percent = 2\n",
            Err((1, "`[guards]`: duplicate field `integration_percent`")),
        );
    }
}

//! Reads the configuration and refuses unknown keys.
//!
//! As in the `config.toml` of qontract-reconcile, tables with unknown names hold secrets. A table is refused
//! as misspelt if its name is similar to that of a known table and it is empty or has a key of the known
//! table.

use std::path::Path;

use qontract_diagnostics::pluralize;
use qontract_diagnostics::suggest::nearest;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::keys::{ALSO_BELOW_TARGETS, children, find};

/// The configuration is missing or invalid. The command exits with code 2; a loop retries, because a mounted
/// file may appear later.
///
/// `Display` prints the first error and the number of further errors, so that it fits a log line.
#[derive(Debug)]
pub struct ConfigError {
    first: String,
    more: Vec<String>,
}

impl ConfigError {
    /// One error.
    pub fn new(text: String) -> Self {
        Self { first: text, more: Vec::new() }
    }

    /// Every error, in file order.
    pub fn errors(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.first).chain(&self.more).map(String::as_str)
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.first)?;
        if self.more.is_empty() {
            return Ok(());
        }
        write!(f, " (and {}: `qontract config check` lists them)", pluralize(self.more.len(), "more error"))
    }
}

impl std::error::Error for ConfigError {}

/// An error in the text of a configuration, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextError {
    line: usize,
    /// The message. **Invariant:** it never contains a value of the configuration, which may be secret.
    text: String,
}

/// The errors in the text of a configuration, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextErrors {
    first: TextError,
    more: Vec<TextError>,
}

impl From<TextError> for TextErrors {
    fn from(first: TextError) -> Self {
        Self { first, more: Vec::new() }
    }
}

/// Reads a file.
pub fn read(file: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::new(format!("cannot read `{}`: {error}", file.display())))?;
    let in_file = |TextError { line, text }| format!("`{}`, line {line}: {text}", file.display());
    let mut config = parse(&text).map_err(|TextErrors { first, more }| ConfigError {
        first: in_file(first),
        more: more.into_iter().map(in_file).collect(),
    })?;
    config.resolve(file.parent().unwrap_or(Path::new("")));
    Ok(config)
}

/// Parses the text of a configuration.
fn parse(text: &str) -> Result<Config, TextErrors> {
    let at = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let wrong =
        |error: &toml::de::Error| TextError { line: line(text, at(error)), text: error.message().to_owned() };
    let root = DeTable::parse(text).map_err(|error| wrong(&error))?;
    let mut wrong_keys = wrong_keys(root.get_ref(), text).into_iter();
    if let Some(first) = wrong_keys.next() {
        return Err(TextErrors { first, more: wrong_keys.collect() });
    }
    let mut config: Config = toml::from_str(text).map_err(|error| {
        let mut wrong = wrong(&error);
        let mut path = Vec::new();
        descend(root.get_ref(), at(&error), &mut path);
        let name = path.join(".");
        // These messages contain only names; other messages may contain the value.
        let has_names_only =
            ["missing field ", "duplicate field "].iter().any(|start| wrong.text.starts_with(start));
        wrong.text = match find(&path) {
            Some(key) => format!("`{name}` must be {}", key.value_type.as_str()),
            None if has_names_only && path.is_empty() => wrong.text,
            None if has_names_only => format!("`[{name}]`: {}", wrong.text),
            None if path.is_empty() => "a value has the wrong type".to_owned(),
            None => format!("`{name}` has the wrong type"),
        };
        TextErrors::from(wrong)
    })?;
    if let Err(error) = config.guards.write_bounds() {
        let writes = root
            .get_ref()
            .get("guards")
            .and_then(|guards| guards.get_ref().as_table()?.get_key_value("writes"));
        let at = writes.map_or(0, |(key, _)| key.span().start);
        return Err(TextError { line: line(text, at), text: format!("`guards.writes`: {error}") }.into());
    }
    config.unify_targets();
    Ok(config)
}

/// The line of a byte, counted from 1.
fn line(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// Collects the path of the innermost value that contains a byte.
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

/// Whether a byte is in a value of this table. The parts of a table can be anywhere in the file.
fn contains(table: &DeTable<'_>, at: usize) -> bool {
    table.values().any(|value| {
        value.span().contains(&at) || value.get_ref().as_table().is_some_and(|inner| contains(inner, at))
    })
}

/// Every unknown key, and every value in place of a table, in file order.
fn wrong_keys(root: &DeTable<'_>, text: &str) -> Vec<TextError> {
    let mut found = Vec::new();
    walk(root, &mut Vec::new(), &mut found);
    let below = root.get("targets").and_then(|targets| targets.get_ref().as_table());
    for (key, _) in below.into_iter().flatten() {
        let name: &str = key.get_ref();
        if ALSO_BELOW_TARGETS.contains(&name) && root.contains_key(name) {
            let text = format!("`[targets.{name}]` and `[{name}]` are the same table: keep one of them");
            found.push((key.span().start, text));
        }
    }
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

/// The known table whose name is misspelt as `name`; `None` if it is a table of secrets.
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

/// Whether a table has a key that the table at `path` may have.
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
        let read = parse(text).map(drop).map_err(|wrong| (wrong.first.line, wrong.first.text));
        assert_eq!(read, expect.map_err(|(line, text)| (line, text.to_owned())), "{text}");
    }

    #[test]
    fn every_key_is_accepted() {
        let values = |key: &crate::keys::Key| match key.value_type {
            crate::keys::KeyType::Number => "1",
            crate::keys::KeyType::Boolean => "true",
            crate::keys::KeyType::Texts | crate::keys::KeyType::WriteBounds => "[]",
            _ => "\"x\"",
        };
        let required = "graphql.server = \"x\"\nvault.server = \"x\"\nsandbox.directory = \"x\"\nintegrations.x.command = []\nforeign.x.command = []\ntemplates.github_token.path = \"x\"\ntemplates.github_token.field = \"x\"\ntargets.blobs.x.bucket = \"x\"\ntargets.state.bucket = \"x\"\ntargets.journal.bucket = \"x\"\ntargets.prometheus.url = \"x\"\n";
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
    }

    #[test]
    fn unknown_keys_of_targets_are_refused_with_the_nearest() {
        check("[targets.blob]\n", Err((1, "unknown key `targets.blob`: did you mean `blobs`?")));
        check(
            "[targets.forge]\n",
            Err((
                1,
                "unknown key `targets.forge`: expected one of `kubernetes`, `vault`, `blobs`, `queue`, `state`, `journal`, `prometheus`",
            )),
        );
        check("[targets.queues]\n", Err((1, "unknown key `targets.queues`: did you mean `queue`?")));
        check("[targets.queue]\nurl = \"x\"\n", Err((2, "`targets.queue.url` must be a table")));
        check(
            "[targets.queue.orders]\nqueue = \"a\"\n",
            Err((
                2,
                "unknown key `targets.queue.orders.queue`: expected one of `url`, `name`, `region`, `endpoint`, `secret`",
            )),
        );
        check(
            "[targets.blobs.reports]\nbucket = \"a\"\nregoin = \"b\"\n",
            Err((3, "unknown key `targets.blobs.reports.regoin`: did you mean `region`?")),
        );
        check(
            "[targets.kubernetes.clusters.c1]\ncas = \"b\"\n",
            Err((2, "unknown key `targets.kubernetes.clusters.c1.cas`: did you mean `ca`?")),
        );
        check("targets = \"c4nary\"\n", Err((1, "`targets` must be a table")));
        check("[targets.state]\n", Err((1, "`[targets.state]`: missing field `bucket`")));
        check(
            "[target.state]\nbucket = \"a\"\n",
            Err((1, "unknown table `[target]`: did you mean `[targets]`?")),
        );
        check("[target.shop]\ntoken = \"a secret\"\n", Ok(()));
    }

    #[test]
    fn clusters_and_vault_may_be_below_targets_but_not_twice() {
        let config = parse("[targets.kubernetes]\nca = \"x\"\n[targets.vault]\nserver = \"y\"\n").unwrap();
        assert_eq!(config.kubernetes.map(|table| table.key()), Some("targets.kubernetes"));
        assert_eq!(config.vault.map(|table| table.server), Some("y".to_owned()));
        check(
            "[vault]\nserver = \"x\"\n[targets.vault]\nserver = \"y\"\n",
            Err((3, "`[targets.vault]` and `[vault]` are the same table: keep one of them")),
        );
        check(
            "[targets.vault]\nserver = \"x\"\ntoken = 1\n",
            Err((3, "`targets.vault.token` must be a string (secret)")),
        );
    }

    #[test]
    fn bounds_of_writes_are_exact() {
        let bound = |origin: &str, methods: &str, path: &str| {
            format!(
                "[guards]\nwrites = [{{ origin = {origin:?}, methods = [{methods}], paths = [{path:?}] }}]\n"
            )
        };
        let config = parse(&bound("https://c1.example.com", "\"PATCH\"", "/api/v1/namespaces/shop")).unwrap();
        let bounds = config.guards.write_bounds().unwrap().unwrap();
        assert_eq!(bounds.to_string(), "`PATCH https://c1.example.com/api/v1/namespaces/shop`");
        let nothing = parse("[guards]\nwrites = []\n").unwrap().guards.write_bounds().unwrap();
        assert_eq!(nothing.unwrap().to_string(), "nothing");
        assert!(parse("[guards]\n").unwrap().guards.write_bounds().unwrap().is_none());
        let wrong = |text: &str, expect: &str| check(text, Err((2, expect)));
        wrong(
            &bound("c1.example.com", "\"PATCH\"", "/"),
            "`guards.writes`: `c1.example.com` is not an origin such as `https://forge.example.com`",
        );
        wrong(
            &bound("https://h", "", "/"),
            "`guards.writes`: the methods must be at least one name in capital letters",
        );
        wrong(
            &bound("https://h", "\"PUT\"", "/a/../b"),
            "`guards.writes`: `/a/../b` is not an absolute path without escapes, `//`, `.` and `..`",
        );
        let shape = "`guards.writes` must be a list of tables with `origin`, `methods` and `paths`";
        wrong("[guards]\nwrites = \"everything\"\n", shape);
        wrong(
            "[guards]\nwrites = [{ origin = \"https://h\", methods = [\"PUT\"], path = [\"/\"] }]\n",
            shape,
        );
    }

    #[test]
    fn every_unknown_key_is_reported_in_file_order() {
        let errors = parse("[guards]\nkeyz = 1\nwindow_hour = 2\n[promtool]\npth = 1\n").unwrap_err();
        let errors: Vec<String> = std::iter::once(errors.first)
            .chain(errors.more)
            .map(|TextError { line, text }| format!("{line}: {text}"))
            .collect();
        assert_eq!(
            errors,
            [
                "2: unknown key `guards.keyz`: did you mean `keys`?",
                "3: unknown key `guards.window_hour`: did you mean `window_hours`?",
                "5: unknown key `promtool.pth`: did you mean `path`?",
            ]
        );
    }

    #[test]
    fn an_error_displays_as_the_first_one_and_the_number_of_the_others() {
        let text = |more: &[&str]| {
            let more = more.iter().map(|text| (*text).to_owned()).collect();
            ConfigError { first: "a".to_owned(), more }.to_string()
        };
        assert_eq!(text(&[]), "a");
        assert_eq!(text(&["b"]), "a (and 1 more error: `qontract config check` lists them)");
        assert_eq!(text(&["b", "c"]), "a (and 2 more errors: `qontract config check` lists them)");
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
        check("[guards]\nshard_removals = \"ten\"\n", Err((2, "`guards.shard_removals` must be an integer")));
        check(
            "[vault]\nserver = \"x\"\ntoken = 12345\n",
            Err((3, "`vault.token` must be a string (secret)")),
        );
        check(
            "[kubernetes]\nrequests_per_second = 0\n",
            Err((2, "`kubernetes.requests_per_second` must be an integer")),
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
        check("guards = 1\nvault = \"c4nary\"\n", Err((1, "`guards` must be a table")));
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
                    let Err(TextErrors { first: TextError { text: message, .. }, .. }) = parse(&text) else {
                        continue;
                    };
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

//! `peer run-integration`: the loop of the established runtime, told by the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use qontract_cli::{Cli, Command, CommandLine, PeerTool, RunOptions};
use qontract_client_http::{Secret, Url};
use qontract_config::ConfigError;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::push::Push;
use qontract_daemon::run_loop::Keeping;
use qontract_runtime::looping::Pace;
use qontract_telemetry::log::{Form, Level, Line, Log};

use crate::allocator::{self, GiveBack};
use crate::commands::reconcile::run_in_loop;
use crate::integrations;

pub fn run() -> anyhow::Result<Exit> {
    // One that is no text is none of ours.
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables: BTreeMap<String, String> = texts.collect();
    let settings = Settings::of(&variables)?;
    if !settings.once {
        allocator::begin_anew(GiveBack::AtOnce);
    }
    let mut log = Log::new(settings.level).to(settings.form, std::io::stderr());
    if let Some(file) = &settings.log_file {
        let form = if settings.prefix { Form::Levelled } else { Form::Plain };
        log = log.to_file(form, file).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    let log = Arc::new(log);
    for name in UNUSED.iter().filter(|name| variables.get(**name).is_some_and(|value| !value.is_empty())) {
        log.write(&Line::new(Level::Warning, format!("`{name}` has no meaning here and is passed over")));
    }
    let pace = Pace { every: settings.every, retry: settings.retry, jitter: 0.1 };
    let keeping = Keeping {
        pace,
        once: settings.once,
        log: Arc::clone(&log),
        listen: Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, settings.port))),
        shard: settings.shard,
        push: settings.push,
    };
    let mut failures = 0;
    loop {
        let error = match begin(&settings.words, &keeping) {
            Ok(exit) => return Ok(exit),
            Err(error) => error,
        };
        let hint = if error.is::<ConfigError>() && !settings.is_config_named {
            " (neither `CONFIG` nor `QONTRACT_CONFIG` names the configuration)"
        } else {
            ""
        };
        log.write(&Line::new(Level::Error, format!("cannot begin: {error:#}{hint}")));
        // What was asked wrongly stays wrong; anything else may come right: a server, a mount.
        if settings.once || error.is::<UsageError>() {
            // A configuration that is missing is no usage error to the established tool.
            return Ok(if error.is::<ConfigError>() { Exit::Failure } else { Exit::of(&error) });
        }
        failures += 1;
        std::thread::sleep(pace.pause(failures, fastrand::f64()));
    }
}

fn begin(words: &[String], keeping: &Keeping) -> anyhow::Result<Exit> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    // The configuration that the environment names may know more integrations, and it may have come since the last try.
    qontract_cli::know(integrations::known(&words));
    let cli = Cli::try_parse_from(&words).map_err(|error| {
        crate::unknown_integration(&error, &words).unwrap_or_else(|| UsageError(error.to_string()).into())
    })?;
    let Command::Peer(peer) = cli.command else { unreachable!("the words begin with `peer`") };
    let PeerTool::Reconcile(arguments) = peer.tool else { unreachable!("and go on with `reconcile`") };
    let options = RunOptions { line: CommandLine::Peer, ..arguments.options.with_environment()? };
    run_in_loop(&options, &arguments.integration, keeping)
}

/// Variables of the established runtime that mean nothing to a program that is not in Python.
const UNUSED: [&str; 3] = ["COMMAND_NAME", "ENABLE_PROFILING", "PROFILE_DUMP_FILE"];

/// What the environment says.
#[derive(Debug)]
struct Settings {
    words: Vec<String>,
    /// Whether a variable names the configuration.
    is_config_named: bool,
    every: Duration,
    retry: Duration,
    once: bool,
    level: Level,
    form: Form,
    prefix: bool,
    push: Option<Push>,
    log_file: Option<PathBuf>,
    port: u16,
    shard: Option<String>,
}

impl Settings {
    /// The variables of the established runtime; booleans mean what they say.
    fn of(variables: &BTreeMap<String, String>) -> Result<Self, UsageError> {
        let get = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(String::as_str);
        let name =
            get("INTEGRATION_NAME").ok_or_else(|| UsageError("`INTEGRATION_NAME` is not set".to_owned()))?;
        let config = get("CONFIG").or(get("QONTRACT_CONFIG"));
        let is_config_named = config.is_some();
        let config = config.unwrap_or("/config/config.toml");
        let mut words: Vec<String> =
            ["qontract", "peer", "reconcile", "--config", config].map(str::to_owned).into();
        let dry_run = if name == "integrations-manager" { "MANAGER_DRY_RUN" } else { "DRY_RUN" };
        match get(dry_run) {
            None => {}
            Some(flag @ ("--dry-run" | "--no-dry-run")) => words.push(flag.to_owned()),
            Some(_) => {
                let text = format!("`{dry_run}` is `--dry-run` or `--no-dry-run`, or is not set");
                return Err(UsageError(text));
            }
        }
        words.push(name.to_owned());
        words.extend(split(get("INTEGRATION_EXTRA_ARGS").unwrap_or_default())?);
        let seconds = |name: &str, usual: u64| match get(name).map(str::parse::<u64>) {
            None => Ok(Duration::from_secs(usual)),
            Some(Ok(seconds)) => Ok(Duration::from_secs(seconds.max(1))),
            Some(Err(_)) => Err(UsageError(format!("`{name}` is no number of seconds"))),
        };
        let port = match get("PROMETHEUS_PORT").map(str::parse) {
            None => 9090,
            Some(Ok(port)) => port,
            Some(Err(_)) => return Err(UsageError("`PROMETHEUS_PORT` is no port".to_owned())),
        };
        let boolean = |name: &str| match get(name).map(str::to_lowercase).as_deref() {
            None | Some("false" | "0" | "no" | "off") => Ok(false),
            Some("true" | "1" | "yes" | "on") => Ok(true),
            Some(_) => Err(UsageError(format!("`{name}` is `true` or `false`"))),
        };
        let level = get("LOG_LEVEL").unwrap_or("INFO").parse();
        let level = level.map_err(|error| UsageError(format!("`LOG_LEVEL`: {error}")))?;
        let form = match get("QONTRACT_LOG_FORMAT") {
            None | Some("text") => Form::Text,
            Some("json") => Form::Json,
            Some(_) => return Err(UsageError("`QONTRACT_LOG_FORMAT` is `text` or `json`".to_owned())),
        };
        let push = if boolean("PUSHGATEWAY_ENABLED")? { Some(push(&get)?) } else { None };
        Ok(Self {
            words,
            is_config_named,
            every: seconds("SLEEP_DURATION_SECS", 600)?,
            retry: seconds("SLEEP_ON_ERROR", 10)?,
            once: boolean("RUN_ONCE")?,
            level,
            form,
            prefix: boolean("PREFIX_LOG_LEVEL")?,
            push,
            log_file: get("LOG_FILE").map(PathBuf::from),
            port,
            shard: get("SHARD_KEY").map(str::to_owned),
        })
    }
}

/// The gateway for metrics: all of it, or nothing.
fn push<'v>(get: &impl Fn(&str) -> Option<&'v str>) -> Result<Push, UsageError> {
    let needed = |name: &str| {
        get(name).ok_or_else(|| UsageError(format!("`PUSHGATEWAY_ENABLED` is on, and `{name}` is not set")))
    };
    let url = needed("PUSHGATEWAY_URL")?;
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let url = Url::parse(&with_scheme)
        .map_err(|error| UsageError(format!("`PUSHGATEWAY_URL` is no address: {error}")))?;
    let user = needed("PUSHGATEWAY_USERNAME")?.to_owned();
    Ok(Push { url, user, password: Secret::new(needed("PUSHGATEWAY_PASSWORD")?) })
}

/// The words of a text, as a shell sees them: quotes keep words together, a backslash keeps a letter.
fn split(text: &str) -> Result<Vec<String>, UsageError> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (_, None) if letter.is_whitespace() => words.extend(word.take()),
            (_, _) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(UsageError("a quote in `INTEGRATION_EXTRA_ARGS` has no end".to_owned()));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::{Settings, split};
    use std::time::Duration;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::of(&variables.collect()).map_err(|error| error.0)
    }

    #[test]
    fn the_variables_become_a_command_line() {
        let told = settings(&[
            ("INTEGRATION_NAME", "openshift-namespaces"),
            ("DRY_RUN", "--dry-run"),
            ("INTEGRATION_EXTRA_ARGS", "--cluster-name 'a b'"),
            ("CONFIG", "c.toml"),
        ])
        .unwrap();
        let words = "qontract peer reconcile --config c.toml --dry-run openshift-namespaces --cluster-name";
        assert_eq!(told.words[..8], words.split(' ').collect::<Vec<_>>());
        assert_eq!(told.words[8], "a b");
        assert_eq!((told.every, told.retry), (Duration::from_mins(10), Duration::from_secs(10)));
        assert_eq!((told.once, told.port), (false, 9090));
        let config = |variables: &[(&str, &str)]| {
            let told = settings(&[&[("INTEGRATION_NAME", "a")], variables].concat()).unwrap();
            (told.words[4].clone(), told.is_config_named)
        };
        assert_eq!(config(&[("CONFIG", "a"), ("QONTRACT_CONFIG", "b")]), ("a".to_owned(), true));
        assert_eq!(config(&[("QONTRACT_CONFIG", "b")]), ("b".to_owned(), true));
        assert_eq!(config(&[]), ("/config/config.toml".to_owned(), false));
    }

    #[test]
    fn booleans_mean_what_they_say() {
        for (value, expect) in [("true", true), ("1", true), ("false", false), ("0", false), ("", false)] {
            assert_eq!(
                settings(&[("INTEGRATION_NAME", "a"), ("RUN_ONCE", value)]).unwrap().once,
                expect,
                "{value}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let wrong = |name, value| settings(&[("INTEGRATION_NAME", "a"), (name, value)]).unwrap_err();
        assert_eq!(settings(&[]).unwrap_err(), "`INTEGRATION_NAME` is not set");
        assert_eq!(wrong("DRY_RUN", "true"), "`DRY_RUN` is `--dry-run` or `--no-dry-run`, or is not set");
        assert_eq!(wrong("SLEEP_DURATION_SECS", "soon"), "`SLEEP_DURATION_SECS` is no number of seconds");
        assert_eq!(wrong("RUN_ONCE", "maybe"), "`RUN_ONCE` is `true` or `false`");
        let level = "`LOG_LEVEL`: `LOUD` is none of DEBUG, INFO, WARNING, ERROR and CRITICAL";
        assert_eq!(wrong("LOG_LEVEL", "LOUD"), level);
        assert_eq!(
            wrong("PUSHGATEWAY_ENABLED", "true"),
            "`PUSHGATEWAY_ENABLED` is on, and `PUSHGATEWAY_URL` is not set"
        );
        assert_eq!(wrong("INTEGRATION_EXTRA_ARGS", "'a"), "a quote in `INTEGRATION_EXTRA_ARGS` has no end");
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let check = |text: &str, expect: &[&str]| assert_eq!(split(text).unwrap(), expect, "{text}");
        check("a  b\tc", &["a", "b", "c"]);
        check(r#"--x='a b' "c \"d\"" e\ f '' "#, &["--x=a b", "c \"d\"", "e f", ""]);
        check("", &[]);
    }
}

//! Settings of `run-integration` from the peer's environment variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use qontract_client_http::{Secret, Url};
use qontract_config::UsageError;
use qontract_telemetry::log::{Level, LineFormat};

use crate::pushgateway::PushgatewayConfig;

/// Variables of the peer that have no effect, because they configure only the Python implementation.
pub const IGNORED_VARIABLES: [&str; 3] = ["COMMAND_NAME", "ENABLE_PROFILING", "PROFILE_DUMP_FILE"];

/// Settings from environment variables.
#[derive(Debug)]
pub struct Settings {
    /// The equivalent command line.
    pub arguments: Vec<String>,
    /// Whether a variable names the configuration file.
    pub is_config_named: bool,
    /// The time between two runs.
    pub interval: Duration,
    /// The back-off after the first failed run.
    pub retry: Duration,
    /// Whether the process exits after the first run.
    pub once: bool,
    /// The log level.
    pub level: Level,
    /// The format of log lines on stderr.
    pub log_format: LineFormat,
    /// Whether log file lines begin with their level.
    pub has_level_prefix: bool,
    /// The Pushgateway, if metrics are pushed.
    pub pushgateway: Option<PushgatewayConfig>,
    /// A file to which log lines are written in addition to stderr.
    pub log_file: Option<PathBuf>,
    /// The port of the health listener.
    pub port: u16,
    /// The name of this shard in metrics.
    pub shard_label: Option<String>,
    /// The dimension of shard keys by which the shards of the integration are balanced.
    pub balanced_by: Option<String>,
}

impl Settings {
    /// Reads the variables. Unlike in the peer, the values `false` and `0` turn a setting off.
    pub fn of(variables: &BTreeMap<String, String>) -> Result<Self, UsageError> {
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
                let text = format!("`{dry_run}` must be `--dry-run` or `--no-dry-run`, or unset");
                return Err(UsageError(text));
            }
        }
        words.push(name.to_owned());
        words.extend(split_words(get("INTEGRATION_EXTRA_ARGS").unwrap_or_default())?);
        let seconds = |name: &str, default: u64| match get(name).map(str::parse::<u64>) {
            None => Ok(Duration::from_secs(default)),
            Some(Ok(seconds)) => Ok(Duration::from_secs(seconds.max(1))),
            Some(Err(_)) => Err(UsageError(format!("`{name}` is not a number of seconds"))),
        };
        let port = match get("PROMETHEUS_PORT").map(str::parse) {
            None => 9090,
            Some(Ok(port)) => port,
            Some(Err(_)) => return Err(UsageError("`PROMETHEUS_PORT` is not a port number".to_owned())),
        };
        let boolean = |name: &str| match get(name).map(str::to_lowercase).as_deref() {
            None | Some("false" | "0" | "no" | "off") => Ok(false),
            Some("true" | "1" | "yes" | "on") => Ok(true),
            Some(_) => Err(UsageError(format!("`{name}` must be `true` or `false`"))),
        };
        let level = get("LOG_LEVEL").unwrap_or("INFO").parse();
        let level = level.map_err(|error| UsageError(format!("`LOG_LEVEL`: {error}")))?;
        let form = match get("QONTRACT_LOG_FORMAT") {
            None | Some("text") => LineFormat::Text,
            Some("json") => LineFormat::Json,
            Some(_) => return Err(UsageError("`QONTRACT_LOG_FORMAT` must be `text` or `json`".to_owned())),
        };
        let push = if boolean("PUSHGATEWAY_ENABLED")? { Some(pushgateway_config(&get)?) } else { None };
        Ok(Self {
            arguments: words,
            is_config_named,
            interval: seconds("SLEEP_DURATION_SECS", 600)?,
            retry: seconds("SLEEP_ON_ERROR", 10)?,
            once: boolean("RUN_ONCE")?,
            level,
            log_format: form,
            has_level_prefix: boolean("PREFIX_LOG_LEVEL")?,
            pushgateway: push,
            log_file: get("LOG_FILE").map(PathBuf::from),
            port,
            shard_label: get("SHARD_KEY").map(str::to_owned),
            balanced_by: get("QONTRACT_BALANCED_BY").map(str::to_owned),
        })
    }
}

/// Marks the end of a log file: while the value exists, the file `FILE.end` does not; afterwards it does, so that a
/// process that ships the log knows that no further lines follow.
#[derive(Debug)]
pub struct LogEndMark(PathBuf);

impl LogEndMark {
    /// Removes the mark of an earlier run.
    pub fn new(log_file: &Path) -> Self {
        let mut name = log_file.as_os_str().to_owned();
        name.push(".end");
        let mark = PathBuf::from(name);
        let _ = std::fs::remove_file(&mark);
        Self(mark)
    }
}

impl Drop for LogEndMark {
    fn drop(&mut self) {
        // The run has its result; without the mark, only the sidecar keeps running.
        let _ = std::fs::write(&self.0, "");
    }
}

/// Reads the settings of the Pushgateway; fails unless all of its variables are set.
fn pushgateway_config<'v>(get: &impl Fn(&str) -> Option<&'v str>) -> Result<PushgatewayConfig, UsageError> {
    let needed = |name: &str| {
        get(name).ok_or_else(|| UsageError(format!("`PUSHGATEWAY_ENABLED` is set, but `{name}` is not")))
    };
    let url = needed("PUSHGATEWAY_URL")?;
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let url = Url::parse(&with_scheme)
        .map_err(|error| UsageError(format!("`PUSHGATEWAY_URL` is not a URL: {error}")))?;
    let user = needed("PUSHGATEWAY_USERNAME")?.to_owned();
    Ok(PushgatewayConfig { url, user, password: Secret::new(needed("PUSHGATEWAY_PASSWORD")?) })
}

/// Splits a string into words as a shell does, with quotes and backslashes.
fn split_words(text: &str) -> Result<Vec<String>, UsageError> {
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
        return Err(UsageError("unterminated quote in `INTEGRATION_EXTRA_ARGS`".to_owned()));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::{LogEndMark, Settings, split_words};
    use std::time::Duration;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::of(&variables.collect()).map_err(|error| error.0)
    }

    #[test]
    fn the_variables_become_a_command_line() {
        let parsed = settings(&[
            ("INTEGRATION_NAME", "openshift-namespaces"),
            ("DRY_RUN", "--dry-run"),
            ("INTEGRATION_EXTRA_ARGS", "--cluster-name 'a b'"),
            ("CONFIG", "c.toml"),
        ])
        .unwrap();
        let words = "qontract peer reconcile --config c.toml --dry-run openshift-namespaces --cluster-name";
        assert_eq!(parsed.arguments[..8], words.split(' ').collect::<Vec<_>>());
        assert_eq!(parsed.arguments[8], "a b");
        assert_eq!((parsed.interval, parsed.retry), (Duration::from_mins(10), Duration::from_secs(10)));
        assert_eq!((parsed.once, parsed.port), (false, 9090));
        let config = |variables: &[(&str, &str)]| {
            let parsed = settings(&[&[("INTEGRATION_NAME", "a")], variables].concat()).unwrap();
            (parsed.arguments[4].clone(), parsed.is_config_named)
        };
        assert_eq!(config(&[("CONFIG", "a"), ("QONTRACT_CONFIG", "b")]), ("a".to_owned(), true));
        assert_eq!(config(&[("QONTRACT_CONFIG", "b")]), ("b".to_owned(), true));
        assert_eq!(config(&[]), ("/config/config.toml".to_owned(), false));
    }

    #[test]
    fn the_end_of_a_log_is_marked_after_the_run() {
        let scratch = qontract_testkit::Scratch::new();
        let (log, mark) = (scratch.path().join("a.log"), scratch.path().join("a.log.end"));
        scratch.write("a.log.end", "");
        let end = LogEndMark::new(&log);
        assert!(!mark.exists());
        drop(end);
        assert!(mark.exists());
    }

    #[test]
    fn false_and_0_are_false() {
        for (value, expect) in [("true", true), ("1", true), ("false", false), ("0", false), ("", false)] {
            assert_eq!(
                settings(&[("INTEGRATION_NAME", "a"), ("RUN_ONCE", value)]).unwrap().once,
                expect,
                "{value}"
            );
        }
    }

    #[test]
    fn invalid_values_are_errors() {
        let wrong = |name, value| settings(&[("INTEGRATION_NAME", "a"), (name, value)]).unwrap_err();
        assert_eq!(settings(&[]).unwrap_err(), "`INTEGRATION_NAME` is not set");
        assert_eq!(wrong("DRY_RUN", "true"), "`DRY_RUN` must be `--dry-run` or `--no-dry-run`, or unset");
        assert_eq!(wrong("SLEEP_DURATION_SECS", "soon"), "`SLEEP_DURATION_SECS` is not a number of seconds");
        assert_eq!(wrong("RUN_ONCE", "maybe"), "`RUN_ONCE` must be `true` or `false`");
        let level = "`LOG_LEVEL`: `LOUD` is not one of DEBUG, INFO, WARNING, ERROR and CRITICAL";
        assert_eq!(wrong("LOG_LEVEL", "LOUD"), level);
        assert_eq!(
            wrong("PUSHGATEWAY_ENABLED", "true"),
            "`PUSHGATEWAY_ENABLED` is set, but `PUSHGATEWAY_URL` is not"
        );
        assert_eq!(wrong("INTEGRATION_EXTRA_ARGS", "'a"), "unterminated quote in `INTEGRATION_EXTRA_ARGS`");
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let check = |text: &str, expect: &[&str]| assert_eq!(split_words(text).unwrap(), expect, "{text}");
        check("a  b\tc", &["a", "b", "c"]);
        check(r#"--x='a b' "c \"d\"" e\ f '' "#, &["--x=a b", "c \"d\"", "e f", ""]);
        check("", &[]);
    }
}

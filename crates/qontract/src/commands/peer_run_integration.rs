//! `run-integration`: runs an integration in a loop, configured by the peer's environment variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use qontract_cli::{CliFlavor, ColorWhen, Command, PeerTool, RunOptions};
use qontract_config::ConfigError;
use qontract_daemon::allocator::{self, PurgeDelay};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::run_integration::{IGNORED_VARIABLES, LogEndMark, Settings};
use qontract_daemon::run_loop::LoopOptions;
use qontract_runtime::reconcile_loop::Schedule;
use qontract_telemetry::log::{Level, LineFormat, Log, LogLine};

use crate::commands::reconcile::run_in_loop;
use crate::integrations::KnownIntegrations;

pub fn run() -> anyhow::Result<Exit> {
    // All variables of `run-integration` must be UTF-8.
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables: BTreeMap<String, String> = texts.collect();
    let settings = Settings::of(&variables)?;
    if !settings.once {
        allocator::reexec_with_purge_delay(PurgeDelay::Zero);
    }
    let mut log = Log::new(settings.level).with_output(settings.log_format, std::io::stderr());
    if let Some(file) = &settings.log_file {
        let form = if settings.has_level_prefix { LineFormat::Levelled } else { LineFormat::Plain };
        log = log.with_file(form, file).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    let log = Arc::new(log);
    // The sidecar of a job ends when this file exists.
    let _end_mark = settings.log_file.as_deref().filter(|_| settings.once).map(LogEndMark::new);
    for name in
        IGNORED_VARIABLES.iter().filter(|name| variables.get(**name).is_some_and(|value| !value.is_empty()))
    {
        log.write(&LogLine::new(
            Level::Warning,
            format!("`{name}` is ignored: it applies only to the Python implementation"),
        ));
    }
    let schedule =
        Schedule { interval: settings.interval, initial_backoff: settings.retry, ..Schedule::default() };
    let loop_options = LoopOptions {
        pace: schedule,
        once: settings.once,
        log: Arc::clone(&log),
        listen: Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, settings.port))),
        shard_label: settings.shard_label,
        balanced_by: settings.balanced_by,
        pushgateway: settings.pushgateway,
    };
    let mut failures = 0;
    loop {
        let error = match start(&settings.arguments, &loop_options) {
            Ok(exit) => return Ok(exit),
            Err(error) => error,
        };
        let hint = if error.is::<ConfigError>() && !settings.is_config_named {
            " (neither `CONFIG` nor `QONTRACT_CONFIG` names the configuration)"
        } else {
            ""
        };
        log.write(&LogLine::new(Level::Error, format!("cannot start: {error:#}{hint}")));
        // A usage error is permanent. Other errors, such as an unreachable server or a missing mount, are
        // retried.
        if settings.once || error.is::<UsageError>() {
            // For the peer, a missing configuration is not a usage error.
            return Ok(if error.is::<ConfigError>() { Exit::Failure } else { Exit::of(&error) });
        }
        failures += 1;
        std::thread::sleep(schedule.pause(failures, fastrand::f64()));
    }
}

/// The message and the tips of a usage error, on one line, because it is logged.
fn summary(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let parts = text.lines().map(str::trim).filter(|line| !line.is_empty());
    parts.take_while(|line| !line.starts_with("Usage:")).collect::<Vec<_>>().join("; ")
}

fn start(words: &[String], loop_options: &LoopOptions) -> anyhow::Result<Exit> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    // The configuration may define further integrations, and may have been created since the last attempt.
    let known = KnownIntegrations::of(&words);
    let cli = match crate::parse(ColorWhen::Never, &words, &known) {
        Ok(cli) => cli,
        Err(error) => {
            let unknown = crate::unknown_integration(&error, known);
            return Err(unknown.unwrap_or_else(|| UsageError(summary(&error.to_string())).into()));
        }
    };
    let flavor = CliFlavor::QontractReconcile;
    let Command::Peer(peer) = cli.command else { unreachable!("the arguments begin with `peer`") };
    let PeerTool::Reconcile(arguments) = peer.tool else { unreachable!("`peer` is followed by `reconcile`") };
    let options = RunOptions { flavor, ..arguments.options.with_environment()? };
    let config = known.config.unwrap_or_else(|| flavor.read_config(options.config.as_deref()));
    run_in_loop(&options, &arguments.integration, config, loop_options)
}

//! `run-integration`: runs an integration in a loop, configured by the peer's environment variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser as _;
use qontract_cli::{Cli, Command, CommandLine, PeerTool, RunOptions};
use qontract_config::ConfigError;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::run_integration::{Settings, UNUSED};
use qontract_daemon::run_loop::LoopOptions;
use qontract_runtime::looping::Pace;
use qontract_telemetry::log::{Form, Level, Line, Log};

use crate::allocator::{self, PurgeDelay};
use crate::commands::reconcile::run_in_loop;
use crate::integrations;

pub fn run() -> anyhow::Result<Exit> {
    // Variables that are not UTF-8 are not ours.
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables: BTreeMap<String, String> = texts.collect();
    let settings = Settings::of(&variables)?;
    if !settings.once {
        allocator::reexec_with_purge_delay(PurgeDelay::AtOnce);
    }
    let mut log = Log::new(settings.level).to(settings.form, std::io::stderr());
    if let Some(file) = &settings.log_file {
        let form = if settings.prefix { Form::Levelled } else { Form::Plain };
        log = log.to_file(form, file).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    let log = Arc::new(log);
    for name in UNUSED.iter().filter(|name| variables.get(**name).is_some_and(|value| !value.is_empty())) {
        log.write(&Line::new(
            Level::Warning,
            format!("`{name}` is ignored: it concerns the Python implementation"),
        ));
    }
    let pace = Pace { every: settings.every, retry: settings.retry, jitter: 0.1 };
    let keeping = LoopOptions {
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
        log.write(&Line::new(Level::Error, format!("cannot start: {error:#}{hint}")));
        // A usage error is permanent. Other errors, such as an unreachable server or a missing mount, are
        // retried.
        if settings.once || error.is::<UsageError>() {
            // For the peer, a missing configuration is not a usage error.
            return Ok(if error.is::<ConfigError>() { Exit::Failure } else { Exit::of(&error) });
        }
        failures += 1;
        std::thread::sleep(pace.pause(failures, fastrand::f64()));
    }
}

fn begin(words: &[String], keeping: &LoopOptions) -> anyhow::Result<Exit> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    // The configuration may define further integrations, and may have appeared since the last attempt.
    qontract_cli::register_integrations(integrations::known(&words));
    let cli = Cli::try_parse_from(&words).map_err(|error| {
        crate::unknown_integration(&error, &words).unwrap_or_else(|| UsageError(error.to_string()).into())
    })?;
    let Command::Peer(peer) = cli.command else { unreachable!("the words begin with `peer`") };
    let PeerTool::Reconcile(arguments) = peer.tool else { unreachable!("and go on with `reconcile`") };
    let options = RunOptions { line: CommandLine::Peer, ..arguments.options.with_environment()? };
    run_in_loop(&options, &arguments.integration, keeping)
}

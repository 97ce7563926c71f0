//! Operating system signals: `SIGINT`, `SIGTERM` and `SIGHUP` shut down gracefully, and `SIGUSR1` logs the activities
//! of every loop.
//!
//! After the first signal, child processes that only read are ended, no further step starts, and the process waits
//! for steps in progress. The second signal, or the end of the timeout, abandons the steps in progress: the run ends
//! with a record that names the steps, and their child processes are ended. See
//! `docs/adr/0030-graceful-shutdown-and-child-processes.md`.

use std::sync::Arc;
use std::time::Duration;

use qontract_child::Purpose;
use qontract_config::environment::stall_timeout;
use qontract_config::variable;
use qontract_diagnostics::pluralize;
use qontract_runtime::IntegrationMeta;
use qontract_runtime::reconcile_loop::{ShutdownTrigger, TerminationSignal, WatchdogLimits};
use qontract_telemetry::log::{Level, Log, LogLine};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::exit::{Exit, UsageError};
use crate::reporter::{LoopReporter, LoopStatus};

/// Time limit of steps in progress during a shutdown. Together with the timeouts below, it is less than the
/// 30 seconds that Kubernetes waits.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// Time that a shutdown waits, while no step is in progress, for records to be written and metrics to be pushed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval at which a shutdown checks whether a step is in progress.
const STEP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time after which the process exits during a forced shutdown, even if threads are blocked.
const EXIT_TIMEOUT: Duration = Duration::from_secs(6);

/// Time that the shutdown waits for a log line to be written.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

/// The environment variable that sets the timeout.
const TIMEOUT_VARIABLE: &str = "QONTRACT_SHUTDOWN_SECONDS";

/// Maximum number of steps that a log line names.
const MAX_NAMED_STEPS: usize = 10;

/// Handles signals until the process ends.
pub fn listen(
    stopper: ShutdownTrigger,
    reporters: impl Fn() -> Vec<Arc<LoopReporter>> + Send + 'static,
    log: Arc<Log>,
) -> anyhow::Result<()> {
    let timeout = ShutdownTimeout::configured()?;
    // The handlers are registered before any work starts, because an unhandled signal ends the process immediately.
    let termination = TerminationSignals::listen()?;
    let signals = Signals { termination, dump: signal(SignalKind::user_defined1())? };
    tokio::spawn(handle(signals, Shutdown { stopper, timeout, log }, reporters));
    Ok(())
}

/// Time limit of steps in progress during a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownTimeout {
    /// A time limit that the operator has set.
    Fixed(Duration),
    /// The default, or the time that the integrations of the steps in progress need, whichever is longer.
    ByIntegration,
}

impl ShutdownTimeout {
    /// The timeout that the environment sets, or the default.
    pub fn configured() -> Result<Self, UsageError> {
        Self::parse(variable(TIMEOUT_VARIABLE).as_deref())
    }

    fn parse(seconds: Option<&str>) -> Result<Self, UsageError> {
        let Some(seconds) = seconds else { return Ok(Self::ByIntegration) };
        let seconds = seconds.parse().map_err(|_| {
            UsageError(format!("`{TIMEOUT_VARIABLE}` is not a number of seconds: `{seconds}`"))
        })?;
        Ok(Self::Fixed(Duration::from_secs(seconds)))
    }

    /// The timeout if the slowest step in progress needs `longest`.
    fn of_steps(self, longest: Duration) -> Duration {
        match self {
            Self::Fixed(timeout) => timeout,
            Self::ByIntegration => DEFAULT_TIMEOUT.max(longest),
        }
    }

    /// The watchdog limits of an integration, raised so that the watchdog does not end a shutdown early.
    pub fn watchdog_limits(self, limits: WatchdogLimits, meta: &IntegrationMeta) -> WatchdogLimits {
        let own = meta.limits.shutdown_timeout.unwrap_or_default();
        limits.for_integration(meta).for_shutdown(self.of_steps(own))
    }

    /// The warning that an integration needs more time than the operator allows; `None` if it does not.
    pub fn warning(self, meta: &IntegrationMeta) -> Option<String> {
        let needed = meta.limits.shutdown_timeout?;
        let Self::Fixed(allowed) = self else { return None };
        (needed > allowed).then(|| {
            let (needed, allowed) = (needed.as_secs(), allowed.as_secs());
            format!(
                "a shutdown waits {allowed} s for steps in progress, but a step of `{}` may need {needed} s; \
                 raise `{TIMEOUT_VARIABLE}`",
                meta.name
            )
        })
    }
}

/// The exit code of a loop: a shutdown that abandoned a step is not a success.
pub fn exit_of_loop(stopper: &ShutdownTrigger, otherwise: Exit) -> Exit {
    match stopper.interruption() {
        Some(by) if !stopper.abandoned().is_empty() => Exit::Signal(by),
        _ => otherwise,
    }
}

/// Waits for a signal that ends the process. From this call on, the process handles these signals.
pub fn shutdown_signal() -> std::io::Result<impl Future<Output = TerminationSignal>> {
    let mut signals = TerminationSignals::listen()?;
    Ok(async move { signals.recv().await })
}

/// The watchdog limits of loops, before they are raised for their integrations.
pub fn watchdog_limits() -> Result<WatchdogLimits, UsageError> {
    let limits = WatchdogLimits { heartbeat_interval: Duration::from_secs(1), ..WatchdogLimits::default() };
    let stall_timeout = stall_timeout()?.unwrap_or(limits.stall_timeout);
    Ok(WatchdogLimits { stall_timeout, ..limits })
}

struct Signals {
    termination: TerminationSignals,
    dump: Signal,
}

/// The signals that end the process.
struct TerminationSignals {
    terminate: Signal,
    interrupt: Signal,
    /// The handler of `SIGHUP`; `None` if the process was started with this signal ignored, as by `nohup`. In this
    /// case, the signal stays ignored.
    hangup: Option<Signal>,
}

impl TerminationSignals {
    /// Handles the signals from now on.
    fn listen() -> std::io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = (!ignores_hangup(&status)).then(|| signal(SignalKind::hangup())).transpose()?;
        let [terminate, interrupt] = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        Ok(Self { terminate: terminate?, interrupt: interrupt?, hangup })
    }

    /// Waits for one of the signals.
    async fn recv(&mut self) -> TerminationSignal {
        let Self { terminate, interrupt, hangup } = self;
        let hangup = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => TerminationSignal::Terminate,
            _ = interrupt.recv() => TerminationSignal::Interrupt,
            _ = hangup => TerminationSignal::Hangup,
        }
    }
}

/// Whether a process ignores `SIGHUP`, according to its `/proc/PID/status`.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit belongs to signal 1.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// The inputs of a shutdown.
struct Shutdown {
    stopper: ShutdownTrigger,
    timeout: ShutdownTimeout,
    log: Arc<Log>,
}

async fn handle(mut signals: Signals, shutdown: Shutdown, reporters: impl Fn() -> Vec<Arc<LoopReporter>>) {
    let Shutdown { stopper, timeout, log } = shutdown;
    let by = loop {
        tokio::select! {
            _ = signals.dump.recv() => {
                for reporter in reporters() {
                    for text in activity_lines(&reporter.status()) {
                        log.write(&LogLine::new(Level::Warning, text).with("integration", reporter.integration()));
                    }
                }
            }
            by = signals.termination.recv() => break by,
        }
    };
    stopper.request_by(by);
    tokio::task::spawn_blocking(|| qontract_child::stop(Purpose::InterruptibleWrite));
    let timeout = timeout.of_steps(stopper.longest_shutdown_timeout());
    let line = shutdown_line(stopper.steps().len(), timeout);
    write_with_timeout(&log, LogLine::new(Level::Info, line)).await;
    let why = tokio::select! {
        _ = signals.termination.recv() => Some("forced shutdown".to_owned()),
        () = tokio::time::sleep(timeout) => Some(format!("shutdown timed out after {} s", timeout.as_secs())),
        () = wait_until_idle(&stopper) => None,
    };
    if let Some(why) = why {
        write_with_timeout(&log, LogLine::new(Level::Warning, forced_line(&why, stopper.steps().len())))
            .await;
    }
    stopper.force();
    // During this time, the run ends and stores a record that names the steps, unless one of its threads is blocked.
    tokio::time::sleep(EXIT_TIMEOUT).await;
    write_with_timeout(&log, LogLine::new(Level::Error, exiting_line(&stopper.steps()))).await;
    let ending = tokio::task::spawn_blocking(qontract_child::shut_down);
    let _ = tokio::time::timeout(EXIT_TIMEOUT, ending).await;
    std::process::exit(by.exit_code().into())
}

/// Writes a log line. A stalled reader of stderr delays the shutdown but does not prevent it.
async fn write_with_timeout(log: &Arc<Log>, line: LogLine) {
    let log = Arc::clone(log);
    let writing = tokio::task::spawn_blocking(move || log.write(&line));
    let _ = tokio::time::timeout(LOG_TIMEOUT, writing).await;
}

/// Waits until no step has been in progress for [`IDLE_TIMEOUT`], so that the remaining work, such as writing
/// records, can finish.
async fn wait_until_idle(stopper: &ShutdownTrigger) {
    let mut since = Instant::now();
    while since.elapsed() < IDLE_TIMEOUT {
        tokio::time::sleep(STEP_POLL_INTERVAL).await;
        if !stopper.steps().is_empty() {
            since = Instant::now();
        }
    }
}

/// The log line at the start of a shutdown.
fn shutdown_line(steps: usize, timeout: Duration) -> String {
    if steps == 0 {
        return "shutting down; no step in progress".to_owned();
    }
    let is_long = timeout > DEFAULT_TIMEOUT;
    let limit = if is_long { format!(" for up to {} s", timeout.as_secs()) } else { String::new() };
    let steps = pluralize(steps, "step");
    format!("shutting down; waiting{limit} for {steps} in progress (Ctrl-C again to force)")
}

/// The log line of a forced shutdown. The run itself names the steps that it abandons.
fn forced_line(why: &str, steps: usize) -> String {
    match steps {
        0 => format!("{why}; no step in progress"),
        _ => format!("{why}; abandoning {} in progress", pluralize(steps, "step")),
    }
}

/// The log line of a process that exits although a run has not ended.
fn exiting_line(steps: &[String]) -> String {
    let mut text =
        "exiting without a record: a thread is blocked, for example by an unresponsive server".to_owned();
    if !steps.is_empty() {
        let named = steps[..steps.len().min(MAX_NAMED_STEPS)].join("; ");
        let more = if steps.len() > MAX_NAMED_STEPS { "; …" } else { "" };
        text.push_str(&format!("; may be partially applied: {named}{more}"));
    }
    text
}

/// The activities of a loop, one line each.
fn activity_lines(status: &LoopStatus) -> Vec<String> {
    let mut lines = vec![match status.next {
        Some(next) => {
            let seconds = next.saturating_duration_since(Instant::now()).as_secs();
            format!("{}, next run in {seconds} s", status.phase.as_str())
        }
        None => format!("{}, {} active", status.phase.as_str(), pluralize(status.doing.len(), "operation")),
    }];
    lines.extend(status.doing.iter().map(|one| format!("in progress: {one}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::{
        DEFAULT_TIMEOUT, IDLE_TIMEOUT, MAX_NAMED_STEPS, ShutdownTimeout, exit_of_loop, exiting_line,
        forced_line, shutdown_line, wait_until_idle,
    };
    use crate::exit::Exit;
    use qontract_runtime::reconcile_loop::{ShutdownSignal, TerminationSignal, WatchdogLimits};
    use qontract_runtime::{IntegrationLimits, IntegrationMeta};
    use std::time::Duration;

    #[test]
    fn an_ignored_hangup_is_recognised() {
        let status =
            |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t01\n");
        assert!(super::ignores_hangup(&status("0000000000001001")));
        assert!(!super::ignores_hangup(&status("0000000000001000")));
        assert!(!super::ignores_hangup(""));
    }

    #[test]
    fn log_lines_count_the_steps_in_progress() {
        assert_eq!(shutdown_line(0, DEFAULT_TIMEOUT), "shutting down; no step in progress");
        let check = |steps, seconds, expect: &str| {
            let line = shutdown_line(steps, Duration::from_secs(seconds));
            assert_eq!(line, format!("shutting down; waiting {expect} in progress (Ctrl-C again to force)"));
        };
        check(1, 20, "for 1 step");
        check(2, 0, "for 2 steps");
        check(1, 62, "for up to 62 s for 1 step");
        let steps = |count: usize| (0..count).map(|step| step.to_string()).collect::<Vec<_>>();
        assert_eq!(forced_line("forced shutdown", 0), "forced shutdown; no step in progress");
        assert_eq!(forced_line("forced shutdown", 1), "forced shutdown; abandoning 1 step in progress");
        assert_eq!(forced_line("forced shutdown", 2), "forced shutdown; abandoning 2 steps in progress");
        assert!(exiting_line(&[]).ends_with("unresponsive server"));
        assert!(exiting_line(&steps(2)).ends_with("unresponsive server; may be partially applied: 0; 1"));
        assert!(exiting_line(&steps(MAX_NAMED_STEPS)).ends_with("8; 9"));
        assert!(exiting_line(&steps(MAX_NAMED_STEPS + 1)).ends_with("8; 9; …"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_continues_only_after_the_idle_timeout_without_a_step() {
        let (stopper, stop) = ShutdownSignal::pair();
        let half = IDLE_TIMEOUT / 2;
        let waits = |time| {
            let stopper = stopper.clone();
            async move { tokio::time::timeout(time, wait_until_idle(&stopper)).await.is_err() }
        };
        assert!(waits(half).await);
        let later = async {
            tokio::time::sleep(half).await;
            let step = stop.begin_step("a").unwrap();
            tokio::time::sleep(IDLE_TIMEOUT * 3).await;
            step.finish();
        };
        let (waited, ()) = tokio::join!(waits(IDLE_TIMEOUT * 4), later);
        assert!(waited, "a step that begins late is waited for");
        assert!(!waits(IDLE_TIMEOUT + half).await);
    }

    #[test]
    fn the_timeout_is_a_number_of_seconds() {
        let check = |text, longest, expect| {
            let timeout = ShutdownTimeout::parse(text).unwrap();
            assert_eq!(
                timeout.of_steps(Duration::from_secs(longest)),
                Duration::from_secs(expect),
                "{text:?}"
            );
        };
        check(None, 0, DEFAULT_TIMEOUT.as_secs());
        check(None, 62, 62);
        check(Some("0"), 62, 0);
        check(Some("55"), 0, 55);
        assert!(ShutdownTimeout::parse(Some("soon")).is_err());
    }

    #[test]
    fn an_integration_that_needs_more_time_than_allowed_causes_a_warning() {
        let needed = IntegrationLimits {
            shutdown_timeout: Some(Duration::from_mins(1)),
            ..IntegrationLimits::default()
        };
        let meta = IntegrationMeta::new("deploy", "").limits(needed);
        let fixed = |seconds| ShutdownTimeout::Fixed(Duration::from_secs(seconds));
        assert_eq!(ShutdownTimeout::ByIntegration.warning(&meta), None);
        assert_eq!(fixed(60).warning(&meta), None);
        let warning = fixed(59).warning(&meta).unwrap();
        assert!(warning.contains("waits 59 s") && warning.contains("`deploy` may need 60 s"), "{warning}");
        let limits = |timeout: ShutdownTimeout| {
            timeout.watchdog_limits(WatchdogLimits::default(), &meta).shutdown_timeout
        };
        assert!(limits(fixed(600)) > Duration::from_mins(10), "the watchdog does not end it earlier");
        assert!(limits(ShutdownTimeout::ByIntegration) > Duration::from_mins(1));
    }

    #[test]
    fn a_loop_that_abandoned_a_step_fails() {
        let (stopper, stop) = ShutdownSignal::pair();
        let check = |expect| assert_eq!(exit_of_loop(&stopper, Exit::Ok), expect);
        stop.begin_step("a").unwrap().finish();
        check(Exit::Ok);
        let step = stop.begin_step("b").unwrap();
        stopper.request_by(TerminationSignal::Interrupt);
        check(Exit::Ok);
        drop(step);
        check(Exit::Signal(TerminationSignal::Interrupt));
    }
}

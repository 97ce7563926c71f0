//! Operating system signals: `SIGINT` and `SIGTERM` shut down in an orderly way, `SIGUSR1` logs what every loop is doing.
//!
//! The first signal ends what only reads, waits for steps in progress, and lets no other step begin. The second one, or the end of the timeout, abandons the steps in
//! progress: the run ends with a record that names them, and their processes are ended. See `docs/adr/0030-stopping.md`.

use std::sync::Arc;
use std::time::Duration;

use qontract_child::Purpose;
use qontract_config::variable;
use qontract_diagnostics::counted;
use qontract_runtime::looping::{Interruption, Stopper};
use qontract_telemetry::log::{Level, Line, Log};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::exit::{Exit, UsageError};
use crate::reporter::{Status, Voice};

/// How long steps in progress may take once a shutdown is asked for. With what follows it stays below the 30 seconds that Kubernetes waits.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a shutdown waits while no step is in progress: for records to be written, and metrics to be pushed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval between two checks whether a step is in progress.
const STEP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a forced shutdown may take before the process exits regardless.
const EXIT_TIMEOUT: Duration = Duration::from_secs(6);

/// The variable that sets another timeout.
const TIMEOUT_VARIABLE: &str = "QONTRACT_SHUTDOWN_SECONDS";

/// How many steps a log line names.
const MAX_NAMED_STEPS: usize = 10;

/// Listens for signals from now on, for as long as the process lives.
pub fn listen(
    stopper: Stopper,
    voices: impl Fn() -> Vec<Arc<Voice>> + Send + 'static,
    log: Arc<Log>,
) -> anyhow::Result<()> {
    let timeout = timeout(variable(TIMEOUT_VARIABLE).as_deref())?;
    // Before anything is begun: a signal without a listener ends the process at once.
    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::user_defined1()];
    let [terminate, interrupt, dump] = signals.map(signal);
    let signals = Signals { terminate: terminate?, interrupt: interrupt?, dump: dump? };
    tokio::spawn(handle(signals, Shutdown { stopper, timeout, log }, voices));
    Ok(())
}

/// The timeout that a variable sets.
fn timeout(seconds: Option<&str>) -> Result<Duration, UsageError> {
    let Some(seconds) = seconds else { return Ok(DEFAULT_TIMEOUT) };
    let seconds = seconds
        .parse()
        .map_err(|_| UsageError(format!("`{TIMEOUT_VARIABLE}` is not a number of seconds: `{seconds}`")))?;
    Ok(Duration::from_secs(seconds))
}

/// The exit code of a loop: a shutdown that abandoned a step is not a success.
pub fn exit_of_loop(stopper: &Stopper, otherwise: Exit) -> Exit {
    match stopper.interruption() {
        Some(by) if !stopper.abandoned().is_empty() => Exit::Run(by.exit_code()),
        _ => otherwise,
    }
}

/// Ends when `SIGTERM` or `SIGINT` comes, which are listened for from now on.
pub fn end() -> std::io::Result<impl Future<Output = ()>> {
    let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = end.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    dump: Signal,
}

impl Signals {
    /// Waits for a signal that asks to end.
    async fn end(&mut self) -> Interruption {
        tokio::select! {
            _ = self.terminate.recv() => Interruption::Terminate,
            _ = self.interrupt.recv() => Interruption::Interrupt,
        }
    }
}

/// How a shutdown goes.
struct Shutdown {
    stopper: Stopper,
    timeout: Duration,
    log: Arc<Log>,
}

async fn handle(mut signals: Signals, shutdown: Shutdown, voices: impl Fn() -> Vec<Arc<Voice>>) {
    let Shutdown { stopper, timeout, log } = shutdown;
    let by = loop {
        tokio::select! {
            _ = signals.dump.recv() => {
                for voice in voices() {
                    for text in doing(&voice.status()) {
                        log.write(&Line::new(Level::Warning, text).with("integration", voice.integration()));
                    }
                }
            }
            _ = signals.terminate.recv() => break Interruption::Terminate,
            _ = signals.interrupt.recv() => break Interruption::Interrupt,
        }
    };
    stopper.ask_by(by);
    log.write(&Line::new(Level::Info, asked(stopper.steps().len())));
    tokio::task::spawn_blocking(|| qontract_child::stop(Purpose::Read));
    let why = tokio::select! {
        _ = signals.end() => Some("forced shutdown".to_owned()),
        () = tokio::time::sleep(timeout) => Some(format!("shutdown timed out after {} s", timeout.as_secs())),
        () = idle(&stopper) => None,
    };
    if let Some(why) = why {
        log.write(&Line::new(Level::Warning, forced(&why, &stopper.steps())));
    }
    stopper.force();
    // The run ends now and leaves a record, unless one of its threads is blocked.
    tokio::time::sleep(EXIT_TIMEOUT).await;
    let text =
        "exiting without a record: a thread is still blocked, by a server that does not answer for example";
    log.write(&Line::new(Level::Error, text));
    let _ = tokio::task::spawn_blocking(|| qontract_child::stop(Purpose::Write)).await;
    std::process::exit(by.exit_code().into())
}

/// Waits until no step is in progress, and what is left to do without one has had its time.
async fn idle(stopper: &Stopper) {
    while !stopper.steps().is_empty() {
        tokio::time::sleep(STEP_POLL_INTERVAL).await;
    }
    tokio::time::sleep(IDLE_TIMEOUT).await;
}

/// The log line of a shutdown that is asked for.
fn asked(steps: usize) -> String {
    match steps {
        0 => "shutting down; no step in progress".to_owned(),
        _ => format!(
            "shutting down; waiting for {} in progress (Ctrl-C again to force)",
            counted(steps, "step")
        ),
    }
}

/// The log line of a shutdown that is forced.
fn forced(why: &str, steps: &[String]) -> String {
    if steps.is_empty() {
        return format!("{why}; no step in progress");
    }
    let mut named = steps[..steps.len().min(MAX_NAMED_STEPS)].join("; ");
    if steps.len() > MAX_NAMED_STEPS {
        named.push_str("; …");
    }
    format!("{why}; {} abandoned: {named}", counted(steps.len(), "step"))
}

/// What a loop is doing: a line for each thing that is under way.
fn doing(status: &Status) -> Vec<String> {
    let mut lines = vec![match status.next {
        Some(next) => {
            let seconds = next.saturating_duration_since(Instant::now()).as_secs();
            format!("{}, runs again in {seconds} s", status.word)
        }
        None => format!("{}, {} under way", status.word, counted(status.doing.len(), "thing")),
    }];
    lines.extend(status.doing.iter().map(|one| format!("under way: {one}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_TIMEOUT, MAX_NAMED_STEPS, asked, exit_of_loop, forced, timeout};
    use crate::exit::Exit;
    use qontract_runtime::looping::{Interruption, Stop};
    use std::time::Duration;

    #[test]
    fn log_lines_count_the_steps_in_progress() {
        assert_eq!(asked(0), "shutting down; no step in progress");
        let check = |steps, expect: &str| assert!(asked(steps).contains(expect), "{}", asked(steps));
        check(1, "waiting for 1 step in progress (Ctrl-C again to force)");
        check(2, "waiting for 2 steps in progress");
        let steps = |count: usize| (0..count).map(|step| step.to_string()).collect::<Vec<_>>();
        assert_eq!(forced("forced shutdown", &[]), "forced shutdown; no step in progress");
        assert_eq!(forced("forced shutdown", &steps(2)), "forced shutdown; 2 steps abandoned: 0; 1");
        assert!(forced("x", &steps(MAX_NAMED_STEPS)).ends_with("8; 9"));
        assert!(forced("x", &steps(MAX_NAMED_STEPS + 1)).ends_with("8; 9; …"));
    }

    #[test]
    fn the_timeout_is_a_number_of_seconds() {
        assert_eq!(timeout(None).unwrap(), DEFAULT_TIMEOUT);
        assert_eq!(timeout(Some("0")).unwrap(), Duration::ZERO);
        assert_eq!(timeout(Some("55")).unwrap(), Duration::from_secs(55));
        assert!(timeout(Some("soon")).is_err());
    }

    #[test]
    fn a_loop_that_abandoned_a_step_did_not_end_well() {
        let (stopper, stop) = Stop::pair();
        let check = |expect| assert_eq!(exit_of_loop(&stopper, Exit::Ok), expect);
        check(Exit::Ok);
        stopper.ask_by(Interruption::Interrupt);
        stop.step("a").finish();
        check(Exit::Ok);
        drop(stop.step("b"));
        check(Exit::Run(130));
    }
}

//! Signals of the operating system: to end, and to tell what is being done.

use std::sync::Arc;

use qontract_diagnostics::counted;
use qontract_runtime::looping::Stopper;
use qontract_telemetry::log::{Level, Line, Log};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::keep::voice::{Status, Voice};

/// Listens from now on until it is asked to end: `SIGTERM` and `SIGINT` end, `SIGUSR1` tells what every loop is doing.
pub fn listen(
    stopper: Stopper,
    voices: impl Fn() -> Vec<Arc<Voice>> + Send + 'static,
    log: Arc<Log>,
) -> std::io::Result<()> {
    // Before anything is begun: a signal that nobody listens for ends the process on the spot.
    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::user_defined1()];
    let [end, interrupt, dump] = signals.map(signal);
    tokio::spawn(hear((end?, interrupt?, dump?), stopper, voices, log));
    Ok(())
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

async fn hear(
    (mut end, mut interrupt, mut dump): (Signal, Signal, Signal),
    stopper: Stopper,
    voices: impl Fn() -> Vec<Arc<Voice>>,
    log: Arc<Log>,
) {
    loop {
        tokio::select! {
            _ = end.recv() => break,
            _ = interrupt.recv() => break,
            _ = dump.recv() => {
                for voice in voices() {
                    for text in doing(&voice.status()) {
                        log.write(&Line::new(Level::Warning, text).with("integration", voice.integration()));
                    }
                }
            }
        }
    }
    log.write(&Line::new(Level::Info, "asked to end: what is under way is finished"));
    stopper.ask();
    tokio::select! {
        _ = end.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Asked twice, it ends at once; the next run finishes what was begun.
    log.write(&Line::new(Level::Warning, "asked again: it ends at once"));
    std::process::exit(130)
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

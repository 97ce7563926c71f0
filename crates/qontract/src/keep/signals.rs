//! Signals of the operating system: to end, and to tell what is being done.

use std::sync::Arc;

use qontract_runtime::looping::Stopper;
use qontract_telemetry::log::{Level, Line, Log};
use tokio::signal::unix::{SignalKind, signal};

use crate::keep::voice::Voice;

/// Listens until it is asked to end: `SIGTERM` and `SIGINT` end, `SIGUSR1` tells what every loop is doing.
pub async fn listen(
    stopper: Stopper,
    voices: impl Fn() -> Vec<Arc<Voice>>,
    log: Arc<Log>,
) -> std::io::Result<()> {
    let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut dump = signal(SignalKind::user_defined1())?;
    loop {
        tokio::select! {
            _ = end.recv() => break,
            _ = interrupt.recv() => break,
            _ = dump.recv() => {
                for voice in voices() {
                    let status = voice.status();
                    let waits = status.waits_for.map_or_else(String::new, |activity| format!(", waits: {activity}"));
                    let text = format!("{}{waits}", status.doing);
                    log.write(&Line::new(Level::Warning, text).with("integration", voice.integration()));
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

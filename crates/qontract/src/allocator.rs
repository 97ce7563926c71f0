//! How soon the allocator gives back memory that is free.

use std::env;
use std::hint::black_box;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qontract_server::ReleaseHook;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// What tells the allocator, in milliseconds. It looks before anything of the program runs, so it cannot be told later.
const DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// When memory that is free is given back; after a second, unless it is said.
#[derive(Clone, Copy)]
pub enum PurgeDelay {
    /// After a tenth of a second. Whoever replaces bundles again and again has a quarter less memory by it, and the same at the end as at the
    /// beginning; answers take no longer.
    Soon,
    /// On the spot. Whoever works now and then, and waits the rest of the time, has a tenth less memory by it: nobody looks for what is free while nothing is
    /// done.
    AtOnce,
}

/// Begins the program anew in the same process, with an allocator that gives memory back so, unless somebody has said otherwise. Where that cannot be done, it goes
/// on as it is. What was done before is done again, so it comes first: before anything is read, written or locked.
pub fn reexec_with_purge_delay(give_back: PurgeDelay) {
    if env::var_os(DELAY).is_some() {
        return;
    }
    if let Some(program) = this_program() {
        let mut words = env::args_os();
        let mut again = std::process::Command::new(&program);
        // By its name it is known whose part it plays.
        again.arg0(words.next().unwrap_or_else(|| program.into_os_string()));
        let delay = match give_back {
            PurgeDelay::Soon => "100",
            PurgeDelay::AtOnce => "0",
        };
        qontract_child::retire_watchdog();
        let _failed = again.args(words).env(DELAY, delay).exec();
        // To write to who has gone became a signal for the sake of the new one. Heard by anybody, it ends nothing.
        let hears = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let _ = hears.map(|hears| hears.block_on(async { signal(SignalKind::pipe()).map(drop) }));
    }
}

/// A hook that gives memory back to the system soon after it is called.
///
/// The allocator looks for memory that has been free for its purge delay only when it is used. A server that gave up large answers and gets no further request
/// would keep their memory, so it is made to look: once the delay is over, and again when the threads that allocated it have ended, which is `keep_alive` later.
pub fn purge_when_released(keep_alive: Duration) -> ReleaseHook {
    let released = Arc::new(Notify::new());
    let waiting = Arc::clone(&released);
    tokio::spawn(async move {
        loop {
            waiting.notified().await;
            for pause in [Duration::ZERO, keep_alive] {
                tokio::time::sleep(pause + purge_delay() + PURGE_MARGIN).await;
                purge();
            }
        }
    });
    Arc::new(move || released.notify_one())
}

/// What the purge delay is exceeded by before the allocator is made to look.
const PURGE_MARGIN: Duration = Duration::from_millis(100);

/// The purge delay of the allocator; it does not give memory back if that is negative.
fn purge_delay() -> Duration {
    let delay = env::var(DELAY).ok().and_then(|text| text.parse().ok());
    Duration::from_millis(delay.unwrap_or(1000))
}

/// Gives back all memory whose purge delay is over: the allocator does that when a thread ends that has allocated something.
fn purge() {
    // Without a thread, memory goes back later.
    let _ = std::thread::Builder::new().spawn(|| drop(black_box(Box::new([0_u8; 64]))));
}

/// The file of this program, by the name that it was started with; nothing if that is another one, such as a loader that was given the program.
fn this_program() -> Option<PathBuf> {
    let (name, program) = (PathBuf::from(env::args_os().next()?), env::current_exe().ok()?);
    let is_it = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == program);
    if name.components().count() > 1 {
        return Some(name).filter(is_it);
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(&name)).find(is_it)
}

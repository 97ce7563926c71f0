//! Purge delay of the allocator: the time after which it returns freed memory to the system.

use std::env;
use std::hint::black_box;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qontract_server::ReleaseHook;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// The variable that sets the purge delay in milliseconds. The allocator reads it before `main`, so it cannot
/// be set later.
const PURGE_DELAY_VARIABLE: &str = "MIMALLOC_PURGE_DELAY";

/// The time after which freed memory is returned to the system; a second by default.
#[derive(Clone, Copy)]
pub enum PurgeDelay {
    /// After a tenth of a second. A server that replaces bundles repeatedly uses a quarter less memory with
    /// this delay. Its memory use does not grow over time, and responses do not take longer.
    Short,
    /// Immediately. A loop that is idle most of the time uses a tenth less memory with this setting, because
    /// an idle allocator purges nothing.
    Zero,
}

/// Re-executes the program in the same process with a purge delay, unless the variable is already set. If
/// that fails, the program continues without it. Everything before this call runs twice, so this function
/// must be called before anything is read, written or locked.
pub fn reexec_with_purge_delay(delay: PurgeDelay) {
    if env::var_os(PURGE_DELAY_VARIABLE).is_some() {
        return;
    }
    if let Some(program) = this_program() {
        let mut words = env::args_os();
        let mut command = std::process::Command::new(&program);
        // The name of the program selects the tool.
        command.arg0(words.next().unwrap_or_else(|| program.into_os_string()));
        let delay = match delay {
            PurgeDelay::Short => "100",
            PurgeDelay::Zero => "0",
        };
        qontract_child::retire_watchdog();
        let _failed = command.args(words).env(PURGE_DELAY_VARIABLE, delay).exec();
        // `exec` has reset SIGPIPE to its default action. A handler is installed again, so that a write to a
        // closed pipe is an error instead of ending the process.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let _ = runtime.map(|runtime| runtime.block_on(async { signal(SignalKind::pipe()).map(drop) }));
    }
}

/// A hook that makes the allocator return freed memory to the system soon after the hook is called.
///
/// The allocator purges only when it is used. Without this hook, a server that freed large responses and gets
/// no further request would keep their memory. The hook triggers two purges: one after the purge delay, and
/// another when the threads that allocated the memory have ended, which is `keep_alive` later.
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

/// Time between the end of the purge delay and the purge.
const PURGE_MARGIN: Duration = Duration::from_millis(100);

/// The purge delay of the allocator, which never purges if the variable is negative.
fn purge_delay() -> Duration {
    let delay = env::var(PURGE_DELAY_VARIABLE).ok().and_then(|text| text.parse().ok());
    Duration::from_millis(delay.unwrap_or(1000))
}

/// Purges all memory whose delay is over. The allocator does this when a thread that has allocated memory
/// ends, so this function starts such a thread.
fn purge() {
    // If the thread cannot be started, memory is purged later.
    let _ = std::thread::Builder::new().spawn(|| drop(black_box(Box::new([0_u8; 64]))));
}

/// The path of this program, found by the name with which it was started; `None` if the path is that of
/// another program, such as a loader.
fn this_program() -> Option<PathBuf> {
    let (name, program) = (PathBuf::from(env::args_os().next()?), env::current_exe().ok()?);
    let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == program);
    if name.components().count() > 1 {
        return Some(name).filter(is_own);
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(&name)).find(is_own)
}

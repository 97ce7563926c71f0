//! How soon the allocator gives back memory that is free.

use std::env;

/// What tells the allocator, in milliseconds. It looks before anything of the program runs, so it cannot be told later.
const DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// Begins the program anew in the same process, with an allocator that gives memory back after a tenth of a second, and not a second, unless somebody has said
/// when. Whoever replaces bundles again and again has a quarter less memory by it, and the same at the end as at the beginning; answers take
/// no longer. Where that cannot be done, it goes on as it was.
pub fn give_back_soon() {
    if env::var_os(DELAY).is_some() {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Ok(program) = env::current_exe() {
        use std::os::unix::process::CommandExt as _;
        let mut words = env::args_os();
        let mut again = std::process::Command::new(&program);
        // By its name it is known whose part it plays.
        again.arg0(words.next().unwrap_or_else(|| program.into_os_string()));
        let _ = again.args(words).env(DELAY, "100").exec();
    }
}

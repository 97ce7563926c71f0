//! The number of connections that the open-file limit allows.

use qontract_telemetry::log::{Level, Log, LogLine};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of open files that are not connections: bundles, caches, watches, child processes.
const OTHER_FILES: u64 = 128;

/// The number of connections to allow: `wanted`, or fewer if the open-file limit is too low. The soft
/// limit is raised as far as the hard limit allows.
pub fn connections(wanted: usize, log: &Log) -> usize {
    let needed = wanted as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < needed) else { return wanted };
    let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let raise = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    let files = if raise.is_ok() { raised } else { current };
    let allowed = allowed(wanted, files);
    if allowed < wanted {
        let text = format!("allowing only {allowed} of {wanted} connections: the open-file limit is {files}");
        log.write(&LogLine::new(Level::Warning, text));
    }
    allowed
}

/// The number of connections that fit into an open-file limit.
fn allowed(wanted: usize, files: u64) -> usize {
    let space = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
    wanted.min(space.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_have_their_share() {
        let check = |wanted: usize, files: u64, expect: usize| assert_eq!(allowed(wanted, files), expect);
        check(1024, 1152, 1024);
        check(1024, 1151, 1023);
        check(10, 4096, 10);
        check(10, 129, 1);
        check(10, 64, 1);
    }
}

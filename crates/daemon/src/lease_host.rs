//! The clocks and processes of this machine, as leases use them.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use qontract_child::ProcessIdentity;
use qontract_journal::{LeaseHost, LeaseProcess};
use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, which continues while the machine is suspended.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
/// The monotonic clock. It may stop while the machine is suspended.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The clocks and processes of this machine.
pub struct LocalHost;

impl LeaseHost for LocalHost {
    fn elapsed(&self) -> Duration {
        let time = clock_gettime(CLOCK);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanoseconds)
    }

    fn wall_time(&self) -> Timestamp {
        Timestamp::now()
    }

    fn is_gone(&self, process: &LeaseProcess) -> bool {
        let LeaseProcess { pid, started, machine, .. } = process.clone();
        ProcessIdentity { pid, started, machine }.is_gone()
    }
}

/// Identifies this process, with a new id.
pub fn this_process() -> LeaseProcess {
    let ProcessIdentity { pid, started, machine } = ProcessIdentity::own();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "unknown host".to_owned() } else { host.trim().to_owned() };
    // The keys of a `RandomState` come from the operating system.
    let id = format!("{:016x}", RandomState::new().hash_one(pid));
    LeaseProcess { id, host, pid, started, machine }
}

#[cfg(test)]
mod tests {
    use super::{LeaseHost as _, LocalHost, this_process};

    #[test]
    fn processes_have_ids_of_their_own() {
        let [one, other] = [this_process(), this_process()];
        assert_ne!(one.id, other.id);
        assert_eq!(one.id.len(), 16);
        assert!(!LocalHost.is_gone(&one));
    }

    #[test]
    fn time_goes_on() {
        let began = LocalHost.elapsed();
        assert!(began.as_secs() > 0);
        assert!(LocalHost.elapsed() >= began);
    }
}

//! Descendants that have left their process group (`setsid`) and outlived the process that started them.
//!
//! As a child sub-reaper, this process becomes their parent. A child that it did not start itself and that is
//! not in its process group is an orphan: it is killed once every group that may have started it has ended.
//!
//! **Invariant:** only direct children are killed. A child that its parent has not reaped keeps its process
//! id, and only this module reaps orphans, so that no id is reused between reading `/proc` and sending the
//! signal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::proc::{Listing, ProcessInfo, children};

/// Selects the orphans that a sweep ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepScope {
    /// Orphans that no running group can have started, because all running groups are younger.
    Unowned,
    /// All.
    All,
}

/// A process group that is registered.
#[derive(Clone, Copy, Debug)]
pub struct RunningGroup {
    /// The id of the group, and of its first process.
    pub id: i32,
    /// When its first process started, in clock ticks since boot.
    pub started: u64,
}

/// The result of one sweep.
#[derive(Debug, Default)]
pub struct Swept {
    /// Orphans that were sent `SIGKILL` and have not been reaped yet.
    pub killed: BTreeSet<i32>,
    /// Orphans that had ended.
    pub reaped: BTreeSet<i32>,
}

/// This process as the parent of orphans.
#[derive(Debug)]
pub struct Adoption {
    proc: PathBuf,
    own: ProcessInfo,
    inherited: Inherited,
}

/// Children that existed before the first orphan could be adopted, and their descendants. They are left
/// alone.
#[derive(Debug, Default)]
struct Inherited {
    processes: BTreeSet<i32>,
    groups: BTreeSet<i32>,
    sessions: BTreeSet<i32>,
}

/// The action of a sweep on one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    /// It has ended, and no other code waits for it.
    Reap,
    /// It alone is killed, since processes that are not its descendants may be in its group.
    Kill,
    KillGroup,
}

/// Selects the processes that a sweep leaves alone, besides inherited ones.
#[derive(Clone, Copy, Debug)]
pub struct Spared<'a> {
    /// The registered groups.
    pub groups: &'a [RunningGroup],
    /// The process id of the watchdog.
    pub watchdog: Option<i32>,
    /// Selects the orphans to end.
    pub scope: SweepScope,
}

impl Adoption {
    /// Becomes the parent of orphans; `None` where that is not possible.
    pub fn begin() -> Option<Self> {
        let proc = PathBuf::from("/proc");
        let own = ProcessInfo::read(&proc.join("self/stat"))?;
        let inherited = Inherited::of(&own, &children(&proc, own.pid, Listing::AllProcesses));
        become_subreaper().ok()?;
        Some(Self { proc, own, inherited })
    }

    /// When a process started, in clock ticks since boot; 0 if that is not known.
    pub fn start_time(pid: Pid) -> u64 {
        let file = format!("/proc/{}/stat", pid.as_raw_nonzero());
        ProcessInfo::read(Path::new(&file)).map_or(0, |process| process.started)
    }

    /// Kills and reaps the orphans that are there now. The caller prevents starts meanwhile.
    pub fn sweep(&self, spared: Spared<'_>) -> Swept {
        let mut swept = Swept::default();
        // The per-thread lists may lack a child while others end. The next sweep finds it; the last sweep has
        // no successor, so that it lists all processes.
        let listing = if spared.scope == SweepScope::All { Listing::AllProcesses } else { Listing::Threads };
        for process in children(&self.proc, self.own.pid, listing) {
            let Some(pid) = Pid::from_raw(process.pid) else { continue };
            let sent = match self.verdict(&process, spared) {
                Verdict::Keep => continue,
                Verdict::Reap => Ok(()),
                Verdict::Kill => kill_process(pid, Signal::KILL),
                Verdict::KillGroup => Pid::from_raw(process.group)
                    .map_or(Ok(()), |group| kill_process_group(group, Signal::KILL))
                    // The group of a process that has just ended may be empty.
                    .or_else(|_| kill_process(pid, Signal::KILL)),
            };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            match waitid(WaitId::Pid(pid), options) {
                Ok(None) if sent == Err(Errno::PERM) => {}
                Ok(None) => _ = swept.killed.insert(process.pid),
                Ok(Some(_)) => _ = swept.reaped.insert(process.pid),
                Err(_) => {}
            }
        }
        swept
    }

    fn verdict(&self, process: &ProcessInfo, spared: Spared<'_>) -> Verdict {
        let ProcessInfo { pid, is_zombie, group, session, started, .. } = *process;
        let Spared { groups, watchdog, scope } = spared;
        // Processes 0 and 1 are never children; our own group may have children of libraries.
        let is_own = pid <= 1 || group == self.own.group || watchdog == Some(pid);
        if is_own || self.inherited.has(process) || groups.iter().any(|running| running.id == pid) {
            return Verdict::Keep;
        }
        if is_zombie {
            return Verdict::Reap;
        }
        let is_registered = groups.iter().any(|running| running.id == group);
        let may_be_owned = groups.iter().any(|running| running.started <= started);
        if is_registered || (scope == SweepScope::Unowned && may_be_owned) {
            return Verdict::Keep;
        }
        // It may have joined a group of our session that it does not lead, for example that of a shell.
        if group > 1 && (group == pid || session != self.own.session) {
            return Verdict::KillGroup;
        }
        Verdict::Kill
    }
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> rustix::io::Result<()> {
    // Any process id switches it on.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Not available on this system.
#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

impl Inherited {
    fn of(own: &ProcessInfo, children: &[ProcessInfo]) -> Self {
        let pick = |id: fn(&ProcessInfo) -> i32| {
            children.iter().map(id).filter(|one| *one != id(own)).collect::<BTreeSet<i32>>()
        };
        Self {
            processes: pick(|process| process.pid),
            groups: pick(|process| process.group),
            sessions: pick(|process| process.session),
        }
    }

    fn has(&self, process: &ProcessInfo) -> bool {
        self.processes.contains(&process.pid)
            || self.groups.contains(&process.group)
            || self.sessions.contains(&process.session)
    }
}

#[cfg(test)]
mod tests {
    use super::{Adoption, Inherited, RunningGroup, Spared, SweepScope, Verdict};
    use crate::proc::ProcessInfo;
    use std::path::PathBuf;

    /// A child of process 10, whose group and session are 10, too.
    fn process(pid: i32, group: i32, session: i32) -> ProcessInfo {
        ProcessInfo { pid, is_zombie: false, parent: 10, group, session, started: 500 }
    }

    fn adoption(inherited: &[ProcessInfo]) -> Adoption {
        let own = ProcessInfo { parent: 1, ..process(10, 10, 10) };
        let inherited = Inherited::of(&own, inherited);
        Adoption { proc: PathBuf::new(), own, inherited }
    }

    #[test]
    fn a_process_that_left_its_group_is_killed_and_others_are_left_alone() {
        let check = |process: ProcessInfo, expect| {
            let spared = Spared {
                groups: &[RunningGroup { id: 20, started: 600 }],
                watchdog: Some(30),
                scope: SweepScope::Unowned,
            };
            assert_eq!(adoption(&[]).verdict(&process, spared), expect, "{process:?}");
        };
        let dead = |process| ProcessInfo { is_zombie: true, ..process };
        check(process(40, 40, 40), Verdict::KillGroup);
        // The member of a session whose leader has ended.
        check(process(41, 40, 40), Verdict::KillGroup);
        check(process(41, 41, 10), Verdict::KillGroup);
        // It joined a group of our session, which may have other members.
        check(process(41, 7, 10), Verdict::Kill);
        check(process(41, 30, 10), Verdict::Kill);
        check(process(41, 1, 40), Verdict::Kill);
        check(process(41, 0, 40), Verdict::Kill);
        check(dead(process(40, 40, 40)), Verdict::Reap);
        check(process(20, 20, 10), Verdict::Keep);
        check(dead(process(20, 20, 10)), Verdict::Keep);
        check(process(21, 20, 10), Verdict::Keep);
        check(dead(process(21, 20, 10)), Verdict::Reap);
        check(process(30, 30, 10), Verdict::Keep);
        check(dead(process(30, 30, 10)), Verdict::Keep);
        check(process(11, 10, 10), Verdict::Keep);
        check(dead(process(11, 10, 10)), Verdict::Keep);
        check(process(1, 1, 1), Verdict::Keep);
        check(process(0, 5, 5), Verdict::Keep);
        check(process(2, 2, 2), Verdict::KillGroup);
    }

    #[test]
    fn an_orphan_lives_while_a_group_runs_that_may_have_started_it() {
        let check = |started: &[u64], scope, expect| {
            let groups: Vec<RunningGroup> =
                started.iter().map(|started| RunningGroup { id: 20, started: *started }).collect();
            let spared = Spared { groups: &groups, watchdog: None, scope };
            assert_eq!(adoption(&[]).verdict(&process(40, 40, 40), spared), expect, "{started:?}");
        };
        check(&[], SweepScope::Unowned, Verdict::KillGroup);
        check(&[501, 700], SweepScope::Unowned, Verdict::KillGroup);
        check(&[501, 500], SweepScope::Unowned, Verdict::Keep);
        check(&[0], SweepScope::Unowned, Verdict::Keep);
        check(&[0, 500], SweepScope::All, Verdict::KillGroup);
    }

    #[test]
    fn inherited_children_and_their_descendants_are_left_alone() {
        let adoption = adoption(&[process(50, 51, 52), process(60, 10, 10)]);
        let check = |process: ProcessInfo, expect| {
            let spared = Spared { groups: &[], watchdog: None, scope: SweepScope::All };
            assert_eq!(adoption.verdict(&process, spared), expect, "{process:?}");
        };
        check(process(50, 51, 52), Verdict::Keep);
        check(ProcessInfo { is_zombie: true, ..process(50, 51, 52) }, Verdict::Keep);
        check(process(50, 70, 70), Verdict::Keep);
        check(process(70, 51, 10), Verdict::Keep);
        check(process(70, 70, 52), Verdict::Keep);
        check(process(60, 61, 61), Verdict::Keep);
        check(process(70, 70, 10), Verdict::KillGroup);
        check(process(70, 70, 70), Verdict::KillGroup);
    }
}

//! Kills orphans: descendants that have left their process group (`setsid`) and outlived their parent.
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

use crate::proc::{ChildListing, ProcessInfo, children};

/// Selects the orphans that a sweep ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepScope {
    /// Orphans that no running group can have started, because all running groups are younger.
    Unowned,
    /// All orphans.
    All,
}

/// A process group that is registered.
#[derive(Clone, Copy, Debug)]
pub struct RunningGroup {
    /// The id of the group, which is also that of its first process.
    pub id: i32,
    /// The start time of the first process of the group, in clock ticks since boot.
    pub started: u64,
}

/// The result of one sweep.
#[derive(Debug, Default)]
pub struct SweepResult {
    /// Orphans that were sent `SIGKILL` and have not been reaped yet.
    pub killed: BTreeSet<i32>,
    /// Orphans that had already ended.
    pub reaped: BTreeSet<i32>,
}

/// This process as the parent of orphans.
#[derive(Debug)]
pub struct Adoption {
    proc: PathBuf,
    own: ProcessInfo,
    inherited: InheritedChildren,
}

/// Children that existed before the first orphan could be adopted, and their descendants. They are left
/// alone.
#[derive(Debug, Default)]
struct InheritedChildren {
    processes: BTreeSet<i32>,
    groups: BTreeSet<i32>,
    sessions: BTreeSet<i32>,
}

/// The action of a sweep on one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepAction {
    Keep,
    /// The process has ended, and no other code waits for it.
    Reap,
    /// Only the process itself is killed, because processes that are not its descendants may be in its group.
    Kill,
    KillGroup,
}

/// Selects the processes that a sweep leaves alone, besides inherited children.
#[derive(Clone, Copy, Debug)]
pub struct SweepFilter<'a> {
    /// The registered groups.
    pub groups: &'a [RunningGroup],
    /// The process id of the watchdog.
    pub watchdog: Option<i32>,
    /// Selects the orphans to end.
    pub scope: SweepScope,
}

impl Adoption {
    /// Becomes the parent of orphans; `None` if the system does not support it.
    pub fn begin() -> Option<Self> {
        let proc = PathBuf::from("/proc");
        let own = ProcessInfo::read(&proc.join("self/stat"))?;
        let inherited = InheritedChildren::of(&own, &children(&proc, own.pid, ChildListing::AllProcesses));
        become_subreaper().ok()?;
        Some(Self { proc, own, inherited })
    }

    /// The start time of a process, in clock ticks since boot; 0 if it is unknown.
    pub fn start_time(pid: Pid) -> u64 {
        let file = format!("/proc/{}/stat", pid.as_raw_nonzero());
        ProcessInfo::read(Path::new(&file)).map_or(0, |process| process.started)
    }

    /// Kills and reaps the current orphans. The caller prevents new children during the call.
    pub fn sweep(&self, spared: SweepFilter<'_>) -> SweepResult {
        let mut swept = SweepResult::default();
        // The per-thread lists may miss a child while other children end. The next sweep finds that child.
        // The last sweep lists all processes, because no sweep follows it.
        let listing =
            if spared.scope == SweepScope::All { ChildListing::AllProcesses } else { ChildListing::Threads };
        for process in children(&self.proc, self.own.pid, listing) {
            let Some(pid) = Pid::from_raw(process.pid) else { continue };
            let sent = match self.action(&process, spared) {
                SweepAction::Keep => continue,
                SweepAction::Reap => Ok(()),
                SweepAction::Kill => kill_process(pid, Signal::KILL),
                SweepAction::KillGroup => Pid::from_raw(process.group)
                    .map_or(Ok(()), |group| kill_process_group(group, Signal::KILL))
                    // If the process has just ended, its group may be empty, so the process itself is killed.
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

    fn action(&self, process: &ProcessInfo, spared: SweepFilter<'_>) -> SweepAction {
        let ProcessInfo { pid, is_zombie, group, session, started, .. } = *process;
        let SweepFilter { groups, watchdog, scope } = spared;
        // Processes 0 and 1 are never children; our own group may contain children that libraries have started.
        let is_own = pid <= 1 || group == self.own.group || watchdog == Some(pid);
        if is_own || self.inherited.contains(process) || groups.iter().any(|running| running.id == pid) {
            return SweepAction::Keep;
        }
        if is_zombie {
            return SweepAction::Reap;
        }
        let is_registered = groups.iter().any(|running| running.id == group);
        let may_be_owned = groups.iter().any(|running| running.started <= started);
        if is_registered || (scope == SweepScope::Unowned && may_be_owned) {
            return SweepAction::Keep;
        }
        // The process may have joined another group of our session, for example that of a shell.
        if group > 1 && (group == pid || session != self.own.session) {
            return SweepAction::KillGroup;
        }
        SweepAction::Kill
    }
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> rustix::io::Result<()> {
    // Any process id enables the attribute.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Fails, because this system has no child sub-reapers.
#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

impl InheritedChildren {
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

    fn contains(&self, process: &ProcessInfo) -> bool {
        self.processes.contains(&process.pid)
            || self.groups.contains(&process.group)
            || self.sessions.contains(&process.session)
    }
}

#[cfg(test)]
mod tests {
    use super::{Adoption, InheritedChildren, RunningGroup, SweepAction, SweepFilter, SweepScope};
    use crate::proc::ProcessInfo;
    use std::path::PathBuf;

    /// A child of process 10, whose group and session also have the id 10.
    fn process(pid: i32, group: i32, session: i32) -> ProcessInfo {
        ProcessInfo { pid, is_zombie: false, parent: 10, group, session, started: 500 }
    }

    fn adoption(inherited: &[ProcessInfo]) -> Adoption {
        let own = ProcessInfo { parent: 1, ..process(10, 10, 10) };
        let inherited = InheritedChildren::of(&own, inherited);
        Adoption { proc: PathBuf::new(), own, inherited }
    }

    #[test]
    fn a_process_that_left_its_group_is_killed_and_others_are_left_alone() {
        let check = |process: ProcessInfo, expect| {
            let spared = SweepFilter {
                groups: &[RunningGroup { id: 20, started: 600 }],
                watchdog: Some(30),
                scope: SweepScope::Unowned,
            };
            assert_eq!(adoption(&[]).action(&process, spared), expect, "{process:?}");
        };
        let dead = |process| ProcessInfo { is_zombie: true, ..process };
        check(process(40, 40, 40), SweepAction::KillGroup);
        // The member of a session whose leader has ended.
        check(process(41, 40, 40), SweepAction::KillGroup);
        check(process(41, 41, 10), SweepAction::KillGroup);
        // The process joined a group of our session, which may have other members.
        check(process(41, 7, 10), SweepAction::Kill);
        check(process(41, 30, 10), SweepAction::Kill);
        check(process(41, 1, 40), SweepAction::Kill);
        check(process(41, 0, 40), SweepAction::Kill);
        check(dead(process(40, 40, 40)), SweepAction::Reap);
        check(process(20, 20, 10), SweepAction::Keep);
        check(dead(process(20, 20, 10)), SweepAction::Keep);
        check(process(21, 20, 10), SweepAction::Keep);
        check(dead(process(21, 20, 10)), SweepAction::Reap);
        check(process(30, 30, 10), SweepAction::Keep);
        check(dead(process(30, 30, 10)), SweepAction::Keep);
        check(process(11, 10, 10), SweepAction::Keep);
        check(dead(process(11, 10, 10)), SweepAction::Keep);
        check(process(1, 1, 1), SweepAction::Keep);
        check(process(0, 5, 5), SweepAction::Keep);
        check(process(2, 2, 2), SweepAction::KillGroup);
    }

    #[test]
    fn an_orphan_lives_while_a_group_runs_that_may_have_started_it() {
        let check = |started: &[u64], scope, expect| {
            let groups: Vec<RunningGroup> =
                started.iter().map(|started| RunningGroup { id: 20, started: *started }).collect();
            let spared = SweepFilter { groups: &groups, watchdog: None, scope };
            assert_eq!(adoption(&[]).action(&process(40, 40, 40), spared), expect, "{started:?}");
        };
        check(&[], SweepScope::Unowned, SweepAction::KillGroup);
        check(&[501, 700], SweepScope::Unowned, SweepAction::KillGroup);
        check(&[501, 500], SweepScope::Unowned, SweepAction::Keep);
        check(&[0], SweepScope::Unowned, SweepAction::Keep);
        check(&[0, 500], SweepScope::All, SweepAction::KillGroup);
    }

    #[test]
    fn inherited_children_and_their_descendants_are_left_alone() {
        let adoption = adoption(&[process(50, 51, 52), process(60, 10, 10)]);
        let check = |process: ProcessInfo, expect| {
            let spared = SweepFilter { groups: &[], watchdog: None, scope: SweepScope::All };
            assert_eq!(adoption.action(&process, spared), expect, "{process:?}");
        };
        check(process(50, 51, 52), SweepAction::Keep);
        check(ProcessInfo { is_zombie: true, ..process(50, 51, 52) }, SweepAction::Keep);
        check(process(50, 70, 70), SweepAction::Keep);
        check(process(70, 51, 10), SweepAction::Keep);
        check(process(70, 70, 52), SweepAction::Keep);
        check(process(60, 61, 61), SweepAction::Keep);
        check(process(70, 70, 10), SweepAction::KillGroup);
        check(process(70, 70, 70), SweepAction::KillGroup);
    }
}

//! Descendants that have left their process group (`setsid`) and outlived the process that started them.
//!
//! As a child sub-reaper, this process becomes their parent. What it did not start itself and does not share its process group is an orphan: it is
//! killed once every group that may have started it has ended.
//!
//! **Invariant:** only direct children are killed. A child that its parent has not reaped keeps its process id, and nothing but this module reaps
//! orphans, so that no id is given to another process between reading `/proc` and sending the signal.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// Which orphans a sweep ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepScope {
    /// Those that no running group can have started: all running groups are younger.
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

/// What one sweep did.
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

/// Children that were there before the first orphan could be adopted, and what they may start. They are not ours to end.
#[derive(Debug, Default)]
struct Inherited {
    processes: BTreeSet<i32>,
    groups: BTreeSet<i32>,
    sessions: BTreeSet<i32>,
}

/// A process as `/proc/PID/stat` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessInfo {
    pid: i32,
    is_zombie: bool,
    parent: i32,
    group: i32,
    session: i32,
    /// In clock ticks since boot.
    started: u64,
}

/// What is done with a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    /// It has ended, and no other code waits for it.
    Reap,
    /// It alone is killed, since processes that are not its descendants may be in its group.
    Kill,
    KillGroup,
}

/// What a sweep leaves alone, besides what was inherited.
#[derive(Clone, Copy, Debug)]
pub struct Spared<'a> {
    /// The registered groups.
    pub groups: &'a [RunningGroup],
    /// The process id of the watchdog.
    pub watchdog: Option<i32>,
    /// Which orphans are ended.
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
        // The lists of threads may lack a child while others end, which the next sweep makes up for. After the last one there is none.
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
        // A group of our own session that it does not lead may be one that it joined: that of a shell, for example.
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

impl ProcessInfo {
    fn read(file: &Path) -> Option<Self> {
        Self::parse(&String::from_utf8_lossy(&fs::read(file).ok()?))
    }

    /// Reads `PID (NAME) STATE PPID PGRP SESSION …`, in which the name may contain anything, and the start is the 22nd field.
    fn parse(stat: &str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (pid, _) = before.split_once(" (")?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Where children are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    /// In the lists of our threads where the kernel has them, and else among all processes.
    Threads,
    AllProcesses,
}

/// The direct children of this process.
fn children(proc: &Path, own: i32, listing: Listing) -> Vec<ProcessInfo> {
    let listed = if listing == Listing::Threads { listed_children(proc) } else { None };
    let pids = listed.unwrap_or_else(|| numbers(proc));
    let read = |pid: &i32| ProcessInfo::read(&proc.join(pid.to_string()).join("stat"));
    pids.iter().filter_map(read).filter(|process| process.parent == own).collect()
}

/// The children of each thread of this process (`CONFIG_PROC_CHILDREN`); `None` if one of the lists cannot be read.
fn listed_children(proc: &Path) -> Option<Vec<i32>> {
    let folder = proc.join("self/task");
    let mut pids = Vec::new();
    for task in numbers(&folder) {
        let task = folder.join(task.to_string());
        match fs::read_to_string(task.join("children")) {
            Ok(text) => pids.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // A thread that has ended handed its children over to another one.
            Err(_) if !task.exists() => {}
            Err(_) => return None,
        }
    }
    Some(pids)
}

/// The entries of a folder that are numbers.
fn numbers(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        Adoption, Inherited, Listing, ProcessInfo, RunningGroup, Spared, SweepScope, Verdict, children,
        listed_children,
    };
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
    fn what_left_its_group_is_killed_and_all_else_is_left_alone() {
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
        // It joined a group of our session, which others may be in.
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
    fn children_from_before_and_what_they_start_are_left_alone() {
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

    #[test]
    fn processes_are_read_whatever_their_name() {
        let check = |stat: &str, expect| assert_eq!(ProcessInfo::parse(stat), expect, "{stat}");
        let rest = "0 0 0 0 0 0 0 0 0 0 0 20 0 1 0";
        let expect = ProcessInfo { pid: 7, is_zombie: false, parent: 6, group: 5, session: 4, started: 99 };
        check(&format!("7 (a) S 6 5 4 {rest} 99 1 2"), Some(expect));
        check(&format!("7 (a) b) (Z 1 1) S 6 5 4 {rest} 99"), Some(expect));
        check(&format!("7 (a) Z 6 5 4 {rest} 99 1"), Some(ProcessInfo { is_zombie: true, ..expect }));
        check(&format!("7 (a) S 6 5 4 {rest}"), None);
        check("7 (a) S 6 5", None);
        check("7", None);
        check("", None);
    }

    /// A folder in place of `/proc`.
    struct FakeProc(PathBuf);

    impl FakeProc {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("qontract-child-{name}-{}", std::process::id()));
            std::fs::create_dir_all(folder.join("self/task")).unwrap();
            Self(folder)
        }

        fn write(&self, file: &str, text: &str) {
            let file = self.0.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }

        fn process(&self, pid: i32, parent: i32) {
            let rest = "0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 1";
            self.write(&format!("{pid}/stat"), &format!("{pid} (x) S {parent} {pid} {pid} {rest}"));
        }
    }

    impl Drop for FakeProc {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn direct_children_are_found_with_and_without_the_lists_of_threads() {
        let proc = FakeProc::new("lists");
        proc.process(20, 10);
        proc.process(21, 20);
        proc.process(22, 10);
        proc.write("self/task/10/stat", "");
        let check = |listing, expect: &[i32]| {
            let mut pids: Vec<i32> =
                children(&proc.0, 10, listing).iter().map(|process| process.pid).collect();
            pids.sort_unstable();
            assert_eq!(pids, expect);
        };
        check(Listing::Threads, &[20, 22]);
        proc.write("self/task/10/children", "20 ");
        proc.write("self/task/11/children", "99 21\n");
        assert_eq!(listed_children(&proc.0).map(|pids| pids.len()), Some(3));
        // What is gone, or not a direct child, is left out.
        check(Listing::Threads, &[20]);
        check(Listing::AllProcesses, &[20, 22]);
        proc.write("self/task/12/stat", "");
        check(Listing::Threads, &[20, 22]);
    }
}

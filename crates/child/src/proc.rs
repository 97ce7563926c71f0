//! Reads the processes of this machine from `/proc`.

use std::fs;
use std::path::Path;

/// A process as `/proc/PID/stat` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The process id.
    pub pid: i32,
    /// Whether the process has ended and its parent has not reaped it.
    pub is_zombie: bool,
    /// The id of the parent process.
    pub parent: i32,
    /// The id of the process group.
    pub group: i32,
    /// The id of the session.
    pub session: i32,
    /// The start time, in clock ticks since boot.
    pub started: u64,
}

impl ProcessInfo {
    /// Reads a `stat` file; `None` if the process no longer exists.
    pub fn read(file: &Path) -> Option<Self> {
        Self::parse(&String::from_utf8_lossy(&fs::read(file).ok()?))
    }

    /// Parses `PID (NAME) STATE PPID PGRP SESSION …`, in which the name may contain any character, and the
    /// start time is the 22nd field.
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

/// The source from which children are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildListing {
    /// The per-thread lists of children if the kernel has them, otherwise all processes.
    Threads,
    /// All processes.
    AllProcesses,
}

/// The direct children of this process.
pub fn children(proc: &Path, own: i32, listing: ChildListing) -> Vec<ProcessInfo> {
    let listed = if listing == ChildListing::Threads { listed_children(proc) } else { None };
    let pids = listed.unwrap_or_else(|| numbers(proc));
    let read = |pid: &i32| ProcessInfo::read(&proc.join(pid.to_string()).join("stat"));
    pids.iter().filter_map(read).filter(|process| process.parent == own).collect()
}

/// The children of each thread of this process (`CONFIG_PROC_CHILDREN`); `None` if one of the lists cannot be
/// read.
fn listed_children(proc: &Path) -> Option<Vec<i32>> {
    let folder = proc.join("self/task");
    let mut pids = Vec::new();
    for task in numbers(&folder) {
        let task = folder.join(task.to_string());
        match fs::read_to_string(task.join("children")) {
            Ok(text) => pids.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // The children of a thread that has ended belong to another thread, so an error is ignored.
            Err(_) if !task.exists() => {}
            Err(_) => return None,
        }
    }
    Some(pids)
}

/// The entries of a directory whose names are numbers.
fn numbers(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{ChildListing, ProcessInfo, children, listed_children};
    use std::path::PathBuf;

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

    /// A directory that is used instead of `/proc`.
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
        check(ChildListing::Threads, &[20, 22]);
        proc.write("self/task/10/children", "20 ");
        proc.write("self/task/11/children", "99 21\n");
        assert_eq!(listed_children(&proc.0).map(|pids| pids.len()), Some(3));
        // Processes that have ended or are not direct children are omitted.
        check(ChildListing::Threads, &[20]);
        check(ChildListing::AllProcesses, &[20, 22]);
        proc.write("self/task/12/stat", "");
        check(ChildListing::Threads, &[20, 22]);
    }
}

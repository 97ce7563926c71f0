//! `qontract up` on the example: what it takes to the first line, and what it holds when there is nothing to do.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends on what it does not expect"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// CPU time of a process, in milliseconds.
fn cpu(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    // User and system time, in hundredths of a second.
    (ticks(11) + ticks(12)) * 10
}

/// Resident memory of a process, in megabytes.
fn memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn main() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let binary = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("qontract");
    for round in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(&binary)
            .current_dir(top)
            .args(["up", "--sandbox"])
            .arg(folder.path().join("sandbox"))
            .arg("--runs")
            .arg(folder.path().join("runs"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        let first = cpu(child.id());
        std::thread::sleep(std::time::Duration::from_secs(10));
        let (busy, held) = (cpu(child.id()), memory(child.id()));
        std::thread::sleep(std::time::Duration::from_secs(10));
        let idle = cpu(child.id()) - busy;
        println!(
            "round {round}: first line after {first} ms of CPU; idle: {held:.0} MB, {idle} ms of CPU in 10 s"
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

//! `qontract up` on the example: CPU time to the first line of output, and memory when idle. Fails if they
//! are more than promised.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics on unexpected errors"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum CPU time to the first line, in milliseconds.
const MAX_FIRST_LINE_CPU_MS: f64 = 20.0;
/// Maximum memory when idle, in megabytes.
const MAX_IDLE_MB: f64 = 40.0;

/// CPU time of a process with all its threads, including ended ones, in milliseconds; with a resolution of 10
/// ms.
fn total_cpu_ms(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) * 10.0
}

/// Exact CPU time of the current threads of a process, in milliseconds.
fn live_threads_cpu_ms(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let nanoseconds = threads.map(|thread| {
        // A thread that has just ended is not counted.
        let schedstat = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap_or_default();
        schedstat.split_whitespace().next().map_or(0.0, |ran| ran.parse::<f64>().unwrap())
    });
    nanoseconds.sum::<f64>() / 1e6
}

/// Resident memory of a process, in megabytes.
fn memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// CPU time to the first line, in milliseconds, of a process that ends right after it because there is no
/// data: a process that continues would use more CPU time until it is read.
fn first_line(program: &Path) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.arg("up").arg(folder.path()).arg("--sandbox").arg(folder.path().join("sandbox"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines: Vec<String> =
        BufReader::new(child.stdout.take().unwrap()).lines().collect::<Result<_, _>>().unwrap();
    assert!(matches!(&lines[..], [only] if only.contains("up: ")), "{lines:?}");
    // It has exited and was not waited for: its CPU time can still be read.
    while !std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") Z ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    let cpu = live_threads_cpu_ms(child.id());
    child.wait().unwrap();
    cpu
}

fn main() {
    // Next to this benchmark: target/release/deps/up-…, target/release/qontract.
    let me = std::env::current_exe().unwrap();
    let program = me.parent().and_then(Path::parent).unwrap().join("qontract");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface");
    for round in 1..=3 {
        let first = first_line(&program);
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(&program)
            .arg("up")
            .arg(&example)
            .arg("--sandbox")
            .arg(folder.path().join("sandbox"))
            .arg("--runs")
            .arg(folder.path().join("runs"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Drain the output, so that the process does not block.
        let reader = std::thread::spawn(move || lines.count());
        std::thread::sleep(Duration::from_secs(10));
        let (busy, held) = (total_cpu_ms(child.id()), memory(child.id()));
        std::thread::sleep(Duration::from_secs(10));
        let idle = total_cpu_ms(child.id()) - busy;
        child.kill().unwrap();
        child.wait().unwrap();
        let count = reader.join().unwrap();
        println!(
            "round {round}: first line after {first:.1} ms of CPU; {count} lines; idle: {held:.1} MB, {idle:.0} ms of CPU in 10 s"
        );
        assert!(
            first <= MAX_FIRST_LINE_CPU_MS,
            "more than {MAX_FIRST_LINE_CPU_MS} ms of CPU to the first line"
        );
        assert!(held <= MAX_IDLE_MB, "more than {MAX_IDLE_MB} MB when idle");
    }
}

//! Measures whole commands: wall time, CPU time, peak memory, bytes read from disk. Each benchmark uses a
//! part of it.
#![allow(dead_code, reason = "each benchmark uses its part of this module")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The measurements of one run.
#[derive(Clone, Copy, Debug)]
pub struct CommandMeasurement {
    /// Wall time in seconds.
    pub wall: f64,
    /// CPU time of all cores, user and system, in seconds.
    pub cpu: f64,
    /// Peak memory in kilobytes; 0 if it is not available.
    pub peak: u64,
    /// Bytes read from disk, because they were not in the page cache.
    pub disk_bytes: u64,
}

/// Runs a command under `time`. It must succeed.
pub fn run(program: &str, arguments: &[&str]) -> CommandMeasurement {
    run_with(program, arguments, &[])
}

/// Runs a command under `time`, with additional environment variables. It must succeed.
pub fn run_with(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> CommandMeasurement {
    let output = Command::new("/usr/bin/time")
        .args(["-f", "measured %e %U %S %M %I", program])
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("/usr/bin/time runs (Debian: the package `time`)");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    let line = stderr.lines().rev().find_map(|line| line.strip_prefix("measured ")).expect("a measured line");
    let numbers: Vec<f64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [wall, user, system, peak, blocks] = numbers[..] else { panic!("five numbers, not {line}") };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "kilobytes and blocks are whole and positive"
    )]
    CommandMeasurement { wall, cpu: user + system, peak: peak as u64, disk_bytes: blocks as u64 * 512 }
}

/// The median of three runs, by CPU time.
pub fn median(mut run: impl FnMut() -> CommandMeasurement) -> CommandMeasurement {
    let mut runs = [run(), run(), run()];
    runs.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    runs[1]
}

/// The path of the optimized binary, next to this benchmark.
pub fn binary(name: &str) -> String {
    let mut path: PathBuf = std::env::current_exe().expect("this program has a path");
    path.pop();
    path.pop();
    path.push(name);
    path.display().to_string()
}

/// Current memory of this process, in bytes.
pub fn memory() -> f64 {
    status("VmRSS:")
}

/// Peak memory of this process since [`reset_peak`], in bytes.
pub fn peak() -> f64 {
    status("VmHWM:")
}

/// Resets the peak memory.
pub fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
}

fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// Prints a line of the report.
#[expect(clippy::print_stdout, reason = "the table is the result")]
pub fn print_line(line: &str) {
    println!("{line}");
}

/// Copies a directory recursively.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file");
        }
    }
}

/// Prints a figure, and records it as missed if it is promised and does not hold.
pub fn check_promise(missed: &mut Vec<String>, is_promised: bool, holds: bool, what: String) {
    print_line(&format!("- {what}{}", if !is_promised || holds { "" } else { " **(missed)**" }));
    if is_promised && !holds {
        missed.push(what);
    }
}

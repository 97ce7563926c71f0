//! Whole commands, measured: wall time, CPU time, peak memory, what had to be fetched from the disk. Each benchmark uses its part.
#![allow(dead_code, reason = "each benchmark uses its part of this module")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// What one run cost.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Seconds on the clock.
    pub wall: f64,
    /// Seconds of all cores, user and system.
    pub cpu: f64,
    /// Most memory, in kilobytes; 0 where it cannot be told.
    pub peak: u64,
    /// Bytes that the kernel fetched from the disk: what is waited for, and was not in its memory any more.
    pub fetched: u64,
}

/// Runs a command under `time`, which has to succeed.
pub fn run(program: &str, arguments: &[&str]) -> Measured {
    run_with(program, arguments, &[])
}

/// The same, with more environment variables.
pub fn run_with(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Measured {
    let output = Command::new("/usr/bin/time")
        .args(["-f", "measured %e %U %S %M %I", program])
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("/usr/bin/time runs (Debian: the package `time`)");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    let line = said.lines().rev().find_map(|line| line.strip_prefix("measured ")).expect("a measured line");
    let numbers: Vec<f64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [wall, user, system, peak, blocks] = numbers[..] else { panic!("five numbers, not {line}") };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "kilobytes and blocks are whole and positive"
    )]
    Measured { wall, cpu: user + system, peak: peak as u64, fetched: blocks as u64 * 512 }
}

/// The run in the middle of three, by CPU time.
pub fn median(mut run: impl FnMut() -> Measured) -> Measured {
    let mut runs = [run(), run(), run()];
    runs.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    runs[1]
}

/// The optimised binary, beside this benchmark.
pub fn binary(name: &str) -> String {
    let mut path: PathBuf = std::env::current_exe().expect("this program has a path");
    path.pop();
    path.pop();
    path.push(name);
    path.display().to_string()
}

/// Memory of this process now, in bytes.
pub fn memory() -> f64 {
    status("VmRSS:")
}

/// The most that it had since [`forget_peak`].
pub fn peak() -> f64 {
    status("VmHWM:")
}

/// Begins to look for the most memory anew.
pub fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
}

fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// Prints a line of the table.
#[expect(clippy::print_stdout, reason = "the table is the result")]
pub fn say(line: &str) {
    println!("{line}");
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file");
        }
    }
}

/// Compares a figure with what is promised, where it is.
pub fn promise(missed: &mut Vec<String>, is_promised: bool, holds: bool, what: String) {
    say(&format!("- {what}{}", if !is_promised || holds { "" } else { " **(missed)**" }));
    if is_promised && !holds {
        missed.push(what);
    }
}

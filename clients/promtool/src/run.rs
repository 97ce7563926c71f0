//! One run of the program, within its limits.
//!
//! **Invariant:** the program and all that it starts are in a process group of their own, which outlives neither the verdict nor
//! whoever waits for it.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qontract_child::Group;
use serde_json::Value;

use crate::{Limits, PromtoolError, Verdict};

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(3);
/// What it gets of our own environment.
const INHERITED: [&str; 3] = ["PATH", "LANG", "TZ"];
/// What it says, in files: nobody has to read along, and whoever still holds them keeps nobody waiting.
const SAID: [&str; 2] = ["stdout", "stderr"];

/// Runs the program in a folder that has these files.
pub async fn run(
    program: &Path,
    words: [&str; 3],
    files: &[(&str, &Value)],
    limits: Limits,
) -> Result<Verdict, PromtoolError> {
    let ours_alone = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("qontract-promtool-").permissions(ours_alone).tempdir();
    let folder = folder.map_err(PromtoolError::Files)?;
    for (name, value) in files {
        // JSON is YAML, too.
        fs::write(folder.path().join(name), format!("{value:#}\n")).map_err(PromtoolError::Files)?;
    }
    let mut group = start(program, words, folder.path())?;
    let began = Instant::now();
    let status = loop {
        if let Ok(Some(status)) = group.ended() {
            break status;
        }
        if began.elapsed() >= limits.deadline {
            return Err(PromtoolError::Late(limits.deadline));
        }
        let is_loud =
            |name: &&str| fs::metadata(folder.path().join(name)).is_ok_and(|file| file.len() > limits.output);
        if SAID.iter().any(is_loud) {
            return Err(PromtoolError::Loud(limits.output));
        }
        tokio::time::sleep(LOOK).await;
    };
    drop(group);
    let [stdout, stderr] = SAID.map(|name| said(&folder.path().join(name), limits.output));
    let said = words_of(&stdout?, &stderr?);
    match status.code() {
        Some(0) => Ok(Verdict::Passed),
        Some(1) => Ok(Verdict::Failed(said)),
        Some(code) => Err(PromtoolError::Broken { how: format!("exit code {code}"), said }),
        None => {
            let how = format!("signal {}", status.signal().unwrap_or_default());
            Err(PromtoolError::Broken { how, said })
        }
    }
}

fn start(program: &Path, words: [&str; 3], folder: &Path) -> Result<Group, PromtoolError> {
    let [stdout, stderr] = SAID.map(|name| File::create_new(folder.join(name)).map_err(PromtoolError::Files));
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(stdout?).stderr(stderr?);
    Group::start(&mut command)
        .map_err(|cause| PromtoolError::Start { program: program.display().to_string(), cause })
}

/// What a file has, if it is not too much.
fn said(file: &Path, limit: u64) -> Result<String, PromtoolError> {
    let mut bytes = Vec::new();
    let file = File::open(file).map_err(PromtoolError::Files)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(PromtoolError::Files)?;
    if bytes.len() as u64 > limit {
        return Err(PromtoolError::Loud(limit));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The words of a verdict: complaints, without the lines that only say that there are some, and without the places in files of
/// ours, which nobody else has seen. What stands on stdout counts if there are none.
fn words_of(stdout: &str, stderr: &str) -> String {
    let is_news = |line: &&str| {
        let line = line.trim();
        !line.is_empty()
            && line != "FAILED:"
            && line != "SUCCESS"
            && !line.starts_with("Checking ")
            && !line.starts_with("Unit Testing:")
    };
    let told = |text: &str| {
        let lines: Vec<&str> = text.lines().filter(is_news).map(|line| placeless(line).trim_end()).collect();
        let margin = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
        lines.iter().map(|line| &line[margin..]).collect::<Vec<_>>().join("\n")
    };
    let words = told(stderr);
    if words.is_empty() { told(stdout) } else { words }
}

/// A line without `rules.yaml: 5:11: ` at its beginning.
fn placeless(line: &str) -> &str {
    let Some(rest) = line.strip_prefix(crate::RULES).and_then(|rest| rest.strip_prefix(": ")) else {
        return line;
    };
    let is_place = |text: &str| text.chars().all(|letter| letter.is_ascii_digit() || letter == ':');
    match rest.split_once(": ") {
        Some((place, words)) if is_place(place) => words,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::words_of;

    #[test]
    fn words_are_complaints_without_our_own_files() {
        let check = |stdout, stderr, expect| assert_eq!(words_of(stdout, stderr), expect);
        check(
            "Checking rules.yaml\n\n",
            "  FAILED:\nrules.yaml: 5:11: group \"a\", rule 1, \"A\": no\nrules.yaml: the group is odd\n",
            "group \"a\", rule 1, \"A\": no\nthe group is odd",
        );
        check(
            "Unit Testing:  test.yaml\n",
            "  FAILED:\n    alertname: A, time: 3m, \n        exp:[], \n",
            "alertname: A, time: 3m,\n    exp:[],",
        );
        check("1 duplicate rule(s) found.\n", "", "1 duplicate rule(s) found.");
    }
}

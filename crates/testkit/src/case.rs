//! Cases of integrations: Markdown files with data, the sandbox before, the expected plan, and the sandbox
//! after.
//!
//! A case is a heading and fenced code blocks. The info string of a block determines its meaning:
//!
//! | block | meaning |
//! |---|---|
//! | `yaml data/PATH` | a datafile; `resources/PATH` is a resource |
//! | `yaml base data/PATH` | the file before the proposed change; with any of these, the run is compared with base |
//! | `text base without` | files that base does not have, one per line |
//! | `yaml world` | the sandbox before: file ↦ content |
//! | `toml config` | the configuration file, instead of that of the harness |
//! | `text flags` | flags of the run, one per line |
//! | `text plan` | the plan of a dry run; empty by default |
//! | `text notes` | the notes of a dry run, if the case checks them |
//! | `text exit` | the exit codes of the dry run and, if it differs, of the real run; 0 by default |
//! | `yaml after` | the sandbox after; by default the same as before |
//!
//! A case may have later steps. Their blocks begin with `at TIME`, which is the time since the start of the
//! case (`30s`, `10m`, `2h`, `3d`); the clock of the runs and the age of the sandbox files correspond to this
//! time. A step changes the data, the sandbox, or both, and then runs a dry run and a real run:
//!
//! | block | meaning |
//! |---|---|
//! | `yaml at TIME do data/PATH` | a datafile or resource that changes |
//! | `text at TIME remove` | files of the data that disappear, one per line |
//! | `yaml at TIME world` | files of the sandbox that change: file ↦ content; `null` removes a file |
//! | `text at TIME fault` | faults, one per line: see [`CaseFault`] |
//! | `text at TIME run` | flags of the real run, one per line |
//! | `text at TIME expect plan` | the plan of the dry run, if the step checks it |
//! | `text at TIME expect exit` | the exit codes of the dry run and, if it differs, of the real run; 0 by default |
//! | `yaml at TIME expect after` | the sandbox after the real run, if the step checks it |
//!
//! After the last step, a dry run has nothing to change.

use std::collections::BTreeMap;
use std::time::Duration;

/// A parsed case.
#[derive(Debug, Default)]
pub struct Case {
    /// The heading.
    pub title: String,
    /// Files of the data repo.
    pub files: BTreeMap<String, String>,
    /// Files that differ in base.
    pub base: BTreeMap<String, String>,
    /// Files that base does not have.
    pub base_without: Vec<String>,
    /// The sandbox before.
    pub world: String,
    /// The configuration file, instead of that of the harness.
    pub config: Option<String>,
    /// Flags of the run.
    pub flags: Vec<String>,
    /// The plan of a dry run.
    pub plan: String,
    /// The notes of a dry run.
    pub notes: Option<String>,
    /// The exit codes of the dry run and of the real run.
    pub exit: (i32, i32),
    /// The sandbox after.
    pub after: Option<String>,
    /// The later steps, by time.
    pub steps: BTreeMap<Duration, CaseStep>,
}

/// A later step of a case.
#[derive(Debug, Default)]
pub struct CaseStep {
    /// Files of the data repo that change.
    pub files: BTreeMap<String, String>,
    /// Files of the data repo that disappear.
    pub removed: Vec<String>,
    /// Files of the sandbox that change.
    pub world: String,
    /// Faults that occur after the changes of the step.
    pub faults: Vec<CaseFault>,
    /// Further flags of the real run.
    pub flags: Vec<String>,
    /// The plan of the dry run.
    pub plan: Option<String>,
    /// The exit codes of the dry run and of the real run.
    pub exit: (i32, i32),
    /// The sandbox after the real run.
    pub after: Option<String>,
}

/// A fault from outside. The last step of a case with faults must converge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseFault {
    /// `truncate PATH`: a file of the sandbox loses its second half.
    Truncate(String),
    /// `garble PATH`: a file of the sandbox has bytes that are not text.
    Garble(String),
    /// `remove PATH`: a file of the sandbox disappears.
    Remove(String),
    /// `kill after write N`: the real run is killed after it has written this number of files of clusters.
    KillAfterWrite(u32),
}

impl CaseFault {
    fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["truncate", path] => Ok(Self::Truncate(path.to_owned())),
            ["garble", path] => Ok(Self::Garble(path.to_owned())),
            ["remove", path] => Ok(Self::Remove(path.to_owned())),
            ["kill", "after", "write", count] => {
                count.parse().map(Self::KillAfterWrite).map_err(|error| format!("`{count}`: {error}"))
            }
            _ => Err(format!("unknown fault `{line}`")),
        }
    }
}

impl Case {
    /// Parses a case.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut case = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(title) = line.strip_prefix("# ") {
                title.clone_into(&mut case.title);
            }
            let Some(words) = line.strip_prefix("```") else { continue };
            let mut body = String::new();
            loop {
                match lines.next() {
                    None => return Err(format!("the block `{words}` is not closed")),
                    Some("```") => break,
                    Some(line) => body = body + line + "\n",
                }
            }
            case.add_block(words, body)?;
        }
        if case.title.is_empty() {
            return Err("the case has no heading: `# what happens`".to_owned());
        }
        Ok(case)
    }

    fn add_block(&mut self, words: &str, body: String) -> Result<(), String> {
        let listed = lines;
        let words: Vec<&str> = words.split_whitespace().skip(1).collect();
        match words[..] {
            ["base", "without"] => self.base_without = listed(&body),
            ["base", path] => drop(self.base.insert(path.to_owned(), body)),
            ["world"] => self.world = body,
            ["after"] => self.after = Some(body),
            ["config"] => self.config = Some(body),
            ["flags"] => self.flags = self::words(&body),
            ["at", time, ref rest @ ..] => {
                let step = self.steps.entry(duration(time)?).or_default();
                step.add_block(rest, body)?;
            }
            ["plan"] => self.plan = body,
            ["notes"] => self.notes = Some(body),
            ["exit"] => {
                self.exit = exit_codes(&body)?;
            }
            [path] if path.contains('/') => drop(self.files.insert(path.to_owned(), body)),
            _ => return Err(format!("unknown block `{}`", words.join(" "))),
        }
        Ok(())
    }

    /// Whether the run is compared with base.
    pub fn has_base(&self) -> bool {
        !self.base.is_empty() || !self.base_without.is_empty()
    }
}

impl CaseStep {
    fn add_block(&mut self, words: &[&str], body: String) -> Result<(), String> {
        match words {
            ["do", path] if path.contains('/') => drop(self.files.insert((*path).to_owned(), body)),
            ["remove"] => self.removed = lines(&body),
            ["world"] => self.world = body,
            ["fault"] => self.faults = body.lines().map(CaseFault::parse).collect::<Result<_, _>>()?,
            ["run"] => self.flags = self::words(&body),
            ["expect", "plan"] => self.plan = Some(body),
            ["expect", "exit"] => self.exit = exit_codes(&body)?,
            ["expect", "after"] => self.after = Some(body),
            _ => return Err(format!("unknown block of a step: `{}`", words.join(" "))),
        }
        Ok(())
    }
}

fn lines(body: &str) -> Vec<String> {
    body.lines().map(str::to_owned).collect()
}

fn words(body: &str) -> Vec<String> {
    body.split_whitespace().map(str::to_owned).collect()
}

fn exit_codes(body: &str) -> Result<(i32, i32), String> {
    let codes: Result<Vec<i32>, _> = body.split_whitespace().map(str::parse).collect();
    let codes = codes.map_err(|error| format!("not an exit code: {error}"))?;
    let (Some(dry), Some(real)) = (codes.first(), codes.last()) else {
        return Err("the block `exit` is empty".to_owned());
    };
    Ok((*dry, *real))
}

/// Parses `30s`, `10m`, `2h`, `3d`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time such as `30s`, `10m`, `2h` or `3d`");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u64 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_secs(number * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_sorted_by_time() {
        let text = "# title\n```text at 10m fault\ntruncate blobs/a\nkill after write 3\n```\n\
            ```yaml at 90s do data/a.yml\nname: a\n```\n```text at 90s expect exit\n0 75\n```\n\
            ```text at 90s run\n--wait\n```\n```text at 10m remove\ndata/a.yml\n```\n";
        let case = Case::parse(text).unwrap();
        assert_eq!(case.steps.keys().map(Duration::as_secs).collect::<Vec<_>>(), [90, 600]);
        let first = &case.steps[&Duration::from_secs(90)];
        assert_eq!((first.exit, first.files["data/a.yml"].as_str()), ((0, 75), "name: a\n"));
        assert_eq!((&first.flags[..], first.plan.as_deref()), (&["--wait".to_owned()][..], None));
        let second = &case.steps[&Duration::from_mins(10)];
        assert_eq!(second.removed, ["data/a.yml"]);
        assert_eq!(second.faults, [CaseFault::Truncate("blobs/a".to_owned()), CaseFault::KillAfterWrite(3)]);
    }

    #[test]
    fn a_wrong_step_is_an_error() {
        for (block, expect) in [
            ("text at 10 run", "`10` is not a time"),
            ("text at 5s fault", "unknown fault `x`"),
            ("text at 5s expect", "unknown block of a step: `expect`"),
            ("text at 5s do file", "unknown block of a step"),
            ("text at 5s expect exit", "not an exit code"),
        ] {
            let error = Case::parse(&format!("# t\n```{block}\nx\n```\n")).unwrap_err();
            assert!(error.starts_with(expect), "{block}: {error}");
        }
    }
}

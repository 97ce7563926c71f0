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

use std::collections::BTreeMap;

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
        let listed = |body: &str| body.lines().map(str::to_owned).collect();
        let words: Vec<&str> = words.split_whitespace().skip(1).collect();
        match words[..] {
            ["base", "without"] => self.base_without = listed(&body),
            ["base", path] => drop(self.base.insert(path.to_owned(), body)),
            ["world"] => self.world = body,
            ["after"] => self.after = Some(body),
            ["config"] => self.config = Some(body),
            ["flags"] => self.flags = body.split_whitespace().map(str::to_owned).collect(),
            ["plan"] => self.plan = body,
            ["notes"] => self.notes = Some(body),
            ["exit"] => {
                let codes: Result<Vec<i32>, _> = body.split_whitespace().map(str::parse).collect();
                let codes = codes.map_err(|error| format!("not an exit code: {error}"))?;
                let (Some(dry), Some(real)) = (codes.first(), codes.last()) else {
                    return Err("the block `exit` is empty".to_owned());
                };
                self.exit = (*dry, *real);
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

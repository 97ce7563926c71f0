//! Cases of rooms: Markdown files that tell data, the world before, the plan, and the world after.
//!
//! A case is a heading and fenced blocks. The words behind the fence say what a block is:
//!
//! | block | what |
//! |---|---|
//! | `yaml data/PATH` | a datafile; `resources/PATH` is a resource |
//! | `yaml base data/PATH` | the file before the proposed change; with any of these, the run is compared with base |
//! | `text base without` | files that base has not, a line each |
//! | `yaml world` | the sandbox before: file ↦ content |
//! | `toml config` | what the operator configured, in place of what the harness does |
//! | `text flags` | flags of the run, a line each |
//! | `text plan` | what a dry run shows; empty by default |
//! | `text notes` | what a dry run says besides, if the case is about that |
//! | `text exit` | the exit codes of the dry run and, if it differs, of the real run; 0 by default |
//! | `yaml after` | the sandbox after; the one before by default |

use std::collections::BTreeMap;

/// A case.
#[derive(Debug, Default)]
pub struct Case {
    /// Its heading.
    pub title: String,
    /// Files of the data repo.
    pub files: BTreeMap<String, String>,
    /// Files that are different in base.
    pub base: BTreeMap<String, String>,
    /// Files that base has not.
    pub base_without: Vec<String>,
    /// The world before.
    pub world: String,
    /// What the operator configured, in place of what the harness does.
    pub config: Option<String>,
    /// Flags of the run.
    pub flags: Vec<String>,
    /// What a dry run shows.
    pub plan: String,
    /// What a dry run says besides.
    pub notes: Option<String>,
    /// The exit codes of the dry run and of the real run.
    pub exit: (i32, i32),
    /// The world after.
    pub after: Option<String>,
}

impl Case {
    /// Reads a case.
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
                    None => return Err(format!("the block `{words}` has no end")),
                    Some("```") => break,
                    Some(line) => body = body + line + "\n",
                }
            }
            case.block(words, body)?;
        }
        if case.title.is_empty() {
            return Err("a case has a heading: `# what happens`".to_owned());
        }
        Ok(case)
    }

    fn block(&mut self, words: &str, body: String) -> Result<(), String> {
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
                let codes = codes.map_err(|error| format!("an exit code: {error}"))?;
                let (Some(dry), Some(real)) = (codes.first(), codes.last()) else {
                    return Err("which exit code?".to_owned());
                };
                self.exit = (*dry, *real);
            }
            [path] if path.contains('/') => drop(self.files.insert(path.to_owned(), body)),
            _ => return Err(format!("a block `{}` is not known", words.join(" "))),
        }
        Ok(())
    }

    /// Whether it is compared with base.
    pub fn has_base(&self) -> bool {
        !self.base.is_empty() || !self.base_without.is_empty()
    }
}

//! A document that is being generated, with the YAML styles that people use: block and flow, comments,
//! quotes, folded text.

use super::prose;
use super::random::CorpusRng;

/// The YAML style of references in a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Block,
    Flow,
}

/// The text of one document.
pub(super) struct DocumentWriter {
    text: String,
    spelling: Spelling,
}

impl DocumentWriter {
    /// Starts a document with this schema.
    pub(super) fn new(schema: &str, random: &mut CorpusRng) -> Self {
        let spelling = if random.chance(25) { Spelling::Flow } else { Spelling::Block };
        let start = if random.chance(95) { "---\n" } else { "" };
        let mut page = Self { text: start.to_owned(), spelling };
        if random.chance(6) {
            page.comment(0, random);
        }
        page.line(0, &format!("$schema: {schema}"));
        page.blank();
        page
    }

    /// Starts a file that is not a datafile: it has no schema, or has it in its first lines.
    pub(super) fn raw(text: String) -> Self {
        Self { text, spelling: Spelling::Block }
    }

    /// Adds an indented line.
    pub(super) fn line(&mut self, indent: usize, text: &str) {
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds an empty line.
    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a comment line.
    pub(super) fn comment(&mut self, indent: usize, random: &mut CorpusRng) {
        let remark = prose::remark(random);
        self.line(indent, &format!("# {remark}"));
    }

    /// Adds `key:` with a reference to another document.
    pub(super) fn reference(&mut self, indent: usize, key: &str, target: &str) {
        match self.spelling {
            Spelling::Block => {
                self.line(indent, &format!("{key}:"));
                self.line(indent + 2, &format!("$ref: {target}"));
            }
            Spelling::Flow => self.line(indent, &format!("{key}: {{$ref: {target}}}")),
        }
    }

    /// Adds `key:` with a list of references; nothing if the list is empty.
    pub(super) fn references(&mut self, indent: usize, key: &str, targets: &[String]) {
        if targets.is_empty() {
            return;
        }
        self.line(indent, &format!("{key}:"));
        for target in targets {
            match self.spelling {
                Spelling::Block => self.line(indent, &format!("- $ref: {target}")),
                Spelling::Flow => self.line(indent, &format!("- {{$ref: {target}}}")),
            }
        }
    }

    /// Adds `key:` with a list of plain scalars, in block or flow style.
    pub(super) fn list(&mut self, indent: usize, key: &str, items: &[&str]) {
        if self.spelling == Spelling::Flow {
            self.line(indent, &format!("{key}: [{}]", items.join(", ")));
            return;
        }
        self.line(indent, &format!("{key}:"));
        for item in items {
            self.line(indent, &format!("- {item}"));
        }
    }

    /// Adds `key:` with one field of a secret.
    pub(super) fn secret(&mut self, indent: usize, key: &str, path: &str, field: &str) {
        match self.spelling {
            Spelling::Block => {
                self.line(indent, &format!("{key}:"));
                self.line(indent + 2, &format!("path: {path}"));
                self.line(indent + 2, &format!("field: {field}"));
            }
            Spelling::Flow => self.line(indent, &format!("{key}: {{path: {path}, field: {field}}}")),
        }
    }

    /// Adds `labels:` with a few pairs.
    pub(super) fn labels(&mut self, random: &mut CorpusRng, service: &str) {
        if random.chance(15) {
            self.line(0, "labels: {}");
            return;
        }
        self.line(0, "labels:");
        self.line(2, &format!("service: {service}"));
        if random.chance(60) {
            let tier = random.between(1, 4);
            self.line(2, &format!("tier: \"{tier}\""));
        }
        if random.chance(40) {
            let zone = random.pick(&["north", "south", "east", "west"]);
            self.line(2, &format!("zone: '{zone}'"));
        }
    }

    /// Adds `description:` in one of the scalar styles of YAML.
    pub(super) fn description(&mut self, indent: usize, random: &mut CorpusRng) {
        let first = prose::sentence(random);
        match random.below(10) {
            0..4 => self.line(indent, &format!("description: {first}")),
            4 | 5 => self.line(indent, &format!("description: \"{first}\"")),
            6 => self.line(indent, &format!("description: '{first}'")),
            7 => {
                let second = prose::sentence(random);
                self.line(indent, "description: >-");
                self.line(indent + 2, &first);
                self.line(indent + 2, &format!("and {second}"));
            }
            _ => {
                let second = prose::sentence(random);
                self.line(indent, "description: |");
                self.line(indent + 2, &format!("{first}."));
                self.blank();
                self.line(indent + 2, &format!("- \"{second}\""));
            }
        }
    }

    /// The text of the document.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

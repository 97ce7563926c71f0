//! The hand-written templates: one per line, or several lines between `<<<` and `>>>`. `[refused]` before a
//! template means that Jinja2 renders it and we refuse it, `[extra]` that its tags have extra curly braces.

use qontract_template::Dialect;
use serde_json::Value as Json;

use super::reader::Case;

pub struct CorpusEntry {
    pub case: Case,
    pub may_be_refused: bool,
}

const FILES: [&str; 6] = [
    include_str!("../corpus/expressions.txt"),
    include_str!("../corpus/filters.txt"),
    include_str!("../corpus/outside.txt"),
    include_str!("../corpus/statements.txt"),
    include_str!("../corpus/tests.txt"),
    include_str!("../corpus/whitespace.txt"),
];

pub fn variables() -> Json {
    serde_json::from_str(include_str!("../corpus/variables.json")).expect("JSON")
}

pub fn read() -> Vec<CorpusEntry> {
    let variables = variables();
    let mut entries = Vec::new();
    for file in FILES {
        let mut lines = file.lines();
        while let Some(line) = lines.next() {
            let text = if line == "<<<" {
                lines.by_ref().take_while(|line| *line != ">>>").collect::<Vec<_>>().join("\n")
            } else {
                line.to_owned()
            };
            let (may_be_refused, text) = strip(&text, "[refused] ");
            let (is_extra, text) = strip(text, "[extra] ");
            let mut case = Case::new(text, &variables);
            if is_extra {
                case.dialect = Dialect::ExtraCurly;
            }
            entries.push(CorpusEntry { case, may_be_refused });
        }
    }
    entries
}

fn strip<'a>(text: &'a str, mark: &str) -> (bool, &'a str) {
    text.strip_prefix(mark).map_or((false, text), |rest| (true, rest))
}

//! Generates random valid requests for given types.

use serde_json::{Map, Value, json};

use super::rng::TestRng;

/// A generator of requests for these types.
pub struct Queries<'q> {
    pub confs: &'q [Value],
    pub rng: TestRng,
    /// Maximum nesting of fields.
    pub depth: usize,
    fragments: Vec<String>,
    aliases: usize,
}

impl<'q> Queries<'q> {
    pub fn new(confs: &'q [Value], seed: u64, depth: usize) -> Self {
        Self { confs, rng: TestRng::new(seed), depth, fragments: Vec::new(), aliases: 0 }
    }

    fn conf(&self, name: &str) -> Option<&'q Value> {
        self.confs.iter().find(|conf| conf["name"] == name)
    }

    /// Generates a request and its variables: `$yes`, `$no` and `$text`.
    pub fn request(&mut self) -> (String, Map<String, Value>) {
        self.fragments.clear();
        self.aliases = 0;
        let set = self.set("Query", 0);
        let fragments = self.fragments.concat();
        let uses = |name: &str| set.contains(name) || fragments.contains(name);
        let mut variables = Vec::new();
        for (name, type_) in [("$yes", "Boolean!"), ("$no", "Boolean = false"), ("$text", "String")] {
            if uses(name) {
                variables.push(format!("{name}: {type_}"));
            }
        }
        let head =
            if variables.is_empty() { String::new() } else { format!("query({}) ", variables.join(", ")) };
        let mut given = Map::new();
        given.insert("yes".to_owned(), json!(true));
        if self.rng.below(2) == 0 {
            given.insert("text".to_owned(), self.rng.pick(&[json!("a"), json!("/o/0.yml"), Value::Null]));
        }
        (format!("{head}{set}{fragments}"), given)
    }

    fn set(&mut self, type_: &str, depth: usize) -> String {
        let conf = self.conf(type_).unwrap();
        let fields = conf["fields"].as_array().unwrap();
        let mut parts = Vec::new();
        let most = if type_ == "Query" { 2 } else { 4 };
        for _ in 0..=self.rng.below(most) {
            let field = &fields[self.rng.below(fields.len())];
            parts.extend(self.field(field, depth));
        }
        if type_ != "Query" {
            match self.rng.below(6) {
                0 => parts.push("__typename".to_owned()),
                1 => parts.extend(self.inline(type_, depth)),
                2 if depth + 1 < self.depth => {
                    let name = format!("F{}", self.fragments.len());
                    self.fragments.push(String::new());
                    let place = self.fragments.len() - 1;
                    let set = self.set(type_, depth + 1);
                    self.fragments[place] = format!(" fragment {name} on {type_} {set}");
                    parts.push(format!("...{name}{}", self.directive()));
                }
                _ => {}
            }
        }
        if parts.is_empty() {
            parts.push("__typename".to_owned());
        }
        format!("{{ {} }}", parts.join(" "))
    }

    fn inline(&mut self, type_: &str, depth: usize) -> Option<String> {
        let conf = self.conf(type_)?;
        let mut types = vec![type_.to_owned()];
        if conf["isInterface"] == true {
            let is_file = |conf: &Value| conf["datafile"].is_string() && conf["isInterface"] != true;
            let implements = |other: &&Value| {
                other["interface"] == type_ || type_ == "DatafileObject_v1" && is_file(other)
            };
            types.extend(
                self.confs
                    .iter()
                    .filter(implements)
                    .filter_map(|conf| conf["name"].as_str().map(str::to_owned)),
            );
        }
        let chosen = types[self.rng.below(types.len())].clone();
        let directive = self.directive();
        Some(format!("... on {chosen}{directive} {}", self.set(&chosen, depth + 1)))
    }

    fn directive(&mut self) -> &'static str {
        self.rng.word(&[
            "",
            "",
            "",
            "",
            " @skip(if: $yes)",
            " @include(if: $yes)",
            " @skip(if: $no)",
            " @include(if: false)",
        ])
    }

    fn field(&mut self, field: &Value, depth: usize) -> Option<String> {
        let name = field["name"].as_str()?;
        let resource = field["resolveResource"] == true && field["isResource"] == true;
        let type_ = if resource { "Resource_v1" } else { field["type"].as_str()? };
        let composite = self.conf(type_).is_some();
        if composite && depth >= self.depth {
            return None;
        }
        // Each gets a unique response key, so that they cannot conflict.
        let alias = if composite || self.rng.below(3) == 0 {
            self.aliases += 1;
            format!("k{}: ", self.aliases)
        } else {
            String::new()
        };
        let arguments = self.arguments(field, type_);
        let directive = self.directive();
        let set = if composite { format!(" {}", self.set(type_, depth + 1)) } else { String::new() };
        Some(format!("{alias}{name}{arguments}{directive}{set}"))
    }

    fn arguments(&mut self, field: &Value, type_: &str) -> String {
        let mut given = Vec::new();
        if field["datafileSchema"].is_string() {
            let conf = self.conf(type_).unwrap();
            for searchable in
                conf["fields"].as_array().unwrap().iter().filter(|field| field["isSearchable"] == true)
            {
                if self.rng.below(6) == 0 {
                    let value = self.rng.word(&["\"a\"", "$text", "null", "\"\""]);
                    given.push(format!("{}: {value}", searchable["name"].as_str().unwrap()));
                }
            }
            match self.rng.below(8) {
                0 => given.push("path: $text".to_owned()),
                1 => given.push("path: \"/t/0.yml\"".to_owned()),
                2..=4 => given.push(format!("filter: {}", self.filter(type_, 0))),
                _ => {}
            }
        } else if field["isResource"] == true && type_ == "Resource_v1" && field["resolveResource"] != true {
            match self.rng.below(5) {
                0 => given.push("path: \"/r/a.txt\"".to_owned()),
                1 => given.push("path: \"/r/none\"".to_owned()),
                2 => given.push("schema: \"/w/other-1.yml\"".to_owned()),
                3 => given.push("path: \"\", schema: null".to_owned()),
                _ => {}
            }
        }
        if given.is_empty() { String::new() } else { format!("({})", given.join(", ")) }
    }

    fn filter(&mut self, type_: &str, depth: usize) -> String {
        if self.rng.below(12) == 0 {
            return self.rng.word(&["{}", "\"text\"", "5", "[]", "{nope: 1}", "[1]"]).to_owned();
        }
        let conf = self.conf(type_).unwrap();
        let fields = conf["fields"].as_array().unwrap();
        let mut names = Vec::new();
        let mut parts = Vec::new();
        for _ in 0..=self.rng.below(2) {
            let field = &fields[self.rng.below(fields.len())];
            let name = field["name"].as_str().unwrap();
            if !names.contains(&name) {
                names.push(name);
                parts.push(format!("{name}: {}", self.condition(field, depth)));
            }
        }
        format!("{{{}}}", parts.join(", "))
    }

    fn condition(&mut self, field: &Value, depth: usize) -> String {
        let type_ = field["type"].as_str().unwrap();
        let plain = |queries: &mut Self| {
            queries
                .rng
                .word(&["null", "\"a\"", "\"b\"", "3", "0.5", "true", "false", "a", "$text"])
                .to_owned()
        };
        match self.rng.below(8) {
            0 => format!("{{in: [{}, {}]}}", plain(self), plain(self)),
            1 => format!("{{in: {}}}", self.rng.word(&["\"ab\"", "null", "[]", "5", "true"])),
            2 => format!("{{ne: {}}}", plain(self)),
            3 => self.rng.word(&["[]", "[\"a\"]", "{}", "{x: 1}"]).to_owned(),
            4 | 5 if self.conf(type_).is_some() && depth < 3 => {
                format!("{{filter: {}}}", self.filter(type_, depth + 1))
            }
            4 => format!("{{filter: {}}}", self.rng.word(&["{}", "null", "\"x\""])),
            _ => plain(self),
        }
    }
}

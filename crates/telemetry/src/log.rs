//! Log lines, as text or JSON.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use parking_lot::Mutex;
use qontract_diagnostics::{sanitize, sanitize_json, sanitize_lines};
use serde_json::{Map, Value};

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
}

impl std::str::FromStr for Level {
    type Err = String;

    /// Parses the level names of qontract-reconcile, case-insensitively.
    fn from_str(word: &str) -> Result<Self, String> {
        match word.to_ascii_uppercase().as_str() {
            "DEBUG" => Ok(Self::Debug),
            "INFO" => Ok(Self::Info),
            "WARNING" | "WARN" => Ok(Self::Warning),
            "ERROR" | "CRITICAL" => Ok(Self::Error),
            _ => Err(format!("`{word}` is not one of DEBUG, INFO, WARNING, ERROR and CRITICAL")),
        }
    }
}

impl Level {
    /// The terminal colour code of the level.
    fn colour(self) -> &'static str {
        match self {
            Level::Debug => "2",
            Level::Info => "32",
            Level::Warning => "33",
            Level::Error => "1;31",
        }
    }

    /// The name of the level in log lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineFormat {
    /// One line with time, level, message and fields.
    #[default]
    Text,
    /// Like `Text`, with colours.
    Coloured,
    /// Like `Text`, without time and level, for a log collector that adds them.
    Plain,
    /// Like `Plain`, with `[LEVEL]` before the message.
    Levelled,
    /// One JSON object per line.
    Json,
}

/// A log line: a message with fields.
#[derive(Clone, Debug)]
pub struct LogLine {
    level: Level,
    text: String,
    fields: Map<String, Value>,
    details: Map<String, Value>,
    /// Additional lines, which the text formats print below the line.
    below: String,
}

impl LogLine {
    /// Creates a line with this level.
    pub fn new(level: Level, text: impl Into<String>) -> Self {
        let (fields, details) = (Map::new(), Map::new());
        Self { level, text: text.into(), fields, details, below: String::new() }
    }

    /// Creates a line from the first line of a string; the other lines follow
    /// [below](Self::with_lines_below) it.
    pub fn of_lines(level: Level, text: &str) -> Self {
        let text = text.trim_end();
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        Self::new(level, first).with_lines_below(rest)
    }

    /// Adds further lines. The text formats print them below the line, each after a bar, so that they cannot
    /// be mistaken for log lines.
    #[must_use]
    pub fn with_lines_below(mut self, text: impl Into<String>) -> Self {
        self.below = text.into();
        self
    }

    /// The level of the line.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Sets the level of the line.
    #[must_use]
    pub fn at_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Adds a field to the line.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field that only the JSON format prints.
    #[must_use]
    pub fn with_detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Formats the line, without a trailing newline. In text formats, the result is one line, followed by the lines
    /// [below](Self::with_lines_below) it.
    pub fn format(&self, form: LineFormat, at: jiff::Timestamp) -> String {
        let at = at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        match form {
            LineFormat::Text => format!("{at} {:<7} {}", self.level.as_str(), self.text_with_fields()),
            LineFormat::Coloured => {
                let (level, colour) = (self.level.as_str(), self.level.colour());
                format!("\x1b[2m{at}\x1b[0m \x1b[{colour}m{level:<7}\x1b[0m {}", self.text_with_fields())
            }
            LineFormat::Plain => self.text_with_fields(),
            LineFormat::Levelled => format!("[{}] {}", self.level.as_str(), self.text_with_fields()),
            LineFormat::Json => {
                let mut map = Map::from_iter([
                    ("time".to_owned(), at.into()),
                    ("level".to_owned(), self.level.as_str().into()),
                    ("message".to_owned(), self.text.as_str().into()),
                ]);
                map.extend(self.fields.clone());
                map.extend(self.details.clone());
                if !self.below.is_empty() {
                    map.insert("below".to_owned(), self.below.as_str().into());
                }
                sanitize_json(&Value::Object(map).to_string()).into_owned()
            }
        }
    }
}

impl LogLine {
    /// The message and its fields, on one line.
    fn text_with_fields(&self) -> String {
        let mut line = sanitize(&self.text).into_owned();
        for (name, value) in &self.fields {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line.push_str(&format!(" {name}={}", sanitize(&text)));
        }
        for below in self.below.lines() {
            line.push_str(&format!("\n    | {}", sanitize_lines(below)));
        }
        line
    }
}

/// A log with one or more outputs.
pub struct Log {
    min_level: Level,
    sinks: Mutex<Vec<(LineFormat, Box<dyn Write + Send>)>>,
}

impl Log {
    /// Creates a log for lines of at least this level, without outputs.
    pub fn new(min_level: Level) -> Self {
        Self { min_level, sinks: Mutex::default() }
    }

    /// Whether lines of this level are written.
    pub fn is_enabled(&self, level: Level) -> bool {
        level >= self.min_level
    }

    /// Adds an output with a format.
    #[must_use]
    pub fn with_output(self, form: LineFormat, sink: impl Write + Send + 'static) -> Self {
        self.sinks.lock().push((form, Box::new(sink)));
        self
    }

    /// Adds a file as an output; lines are appended to the file.
    pub fn with_file(self, form: LineFormat, path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(self.with_output(form, file))
    }

    /// Writes a line to all outputs if its level is enabled. An output that fails does not affect the other outputs.
    pub fn write(&self, line: &LogLine) {
        if !self.is_enabled(line.level) {
            return;
        }
        let now = jiff::Timestamp::now();
        for (form, sink) in self.sinks.lock().iter_mut() {
            let text = line.format(*form, now) + "\n";
            // Errors are ignored, because a failure to write the log cannot be reported anywhere else.
            let _ = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, LineFormat, LogLine};

    fn check(form: LineFormat, expect: &str) {
        let line = LogLine::new(Level::Warning, "two\nlines")
            .with("integration", "a")
            .with("steps", 3)
            .with_detail("run", "r1");
        assert_eq!(line.format(form, jiff::Timestamp::UNIX_EPOCH), expect);
    }

    #[test]
    fn a_line_for_people_is_one_line() {
        check(LineFormat::Text, "1970-01-01T00:00:00.000Z WARNING two\\nlines integration=a steps=3");
    }

    #[test]
    fn on_a_terminal_the_level_has_a_colour() {
        check(
            LineFormat::Coloured,
            "\x1b[2m1970-01-01T00:00:00.000Z\x1b[0m \x1b[33mWARNING\x1b[0m two\\nlines integration=a steps=3",
        );
    }

    #[test]
    fn text_below_a_line_cannot_be_mistaken_for_a_log_line() {
        let line =
            LogLine::new(Level::Error, "wrong").with("file", "a").with_lines_below("one\n[INFO] two\n");
        let print = |form| line.format(form, jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(print(LineFormat::Levelled), "[ERROR] wrong file=a\n    | one\n    | [INFO] two");
        assert!(
            print(LineFormat::Json).contains(r#""below":"one\n[INFO] two\n""#),
            "{}",
            print(LineFormat::Json)
        );
    }

    #[test]
    fn no_line_controls_the_terminal() {
        let hostile = "a\u{1b}[2J\u{9b}\u{202e}";
        let line = LogLine::new(Level::Error, hostile)
            .with("file", hostile)
            .with_detail("run", hostile)
            .with_lines_below(hostile);
        for form in [LineFormat::Text, LineFormat::Plain, LineFormat::Levelled, LineFormat::Json] {
            let text = line.format(form, jiff::Timestamp::UNIX_EPOCH);
            assert!(text.lines().all(qontract_diagnostics::is_safe), "{text:?}");
        }
    }

    #[test]
    fn a_plain_line_has_no_time() {
        check(LineFormat::Plain, "two\\nlines integration=a steps=3");
        check(LineFormat::Levelled, "[WARNING] two\\nlines integration=a steps=3");
    }

    #[test]
    fn a_line_for_machines_is_an_object() {
        check(
            LineFormat::Json,
            r#"{"integration":"a","level":"WARNING","message":"two\nlines","run":"r1","steps":3,"time":"1970-01-01T00:00:00.000Z"}"#,
        );
    }
}

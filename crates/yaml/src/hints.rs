//! Explains syntax errors. The parser reports where it stopped, but the mistake is often on an earlier line.
//! Most mistakes have a common form: an open bracket, a merge conflict, an unquoted value, or a line with one
//! space too many.

mod delimiters;

use qontract_diagnostics::{Diagnostic, Span, position};

/// Adds the probable mistake behind a syntax error in `text`, if it has a common form.
pub fn explain(finding: Diagnostic, text: &str) -> Diagnostic {
    let Some(at) = finding.location.span.map(|span| (span.start as usize).min(text.len())) else {
        return finding;
    };
    let error = ParserError { text, at, message: &finding.message };
    let found = conflict(text)
        .or_else(|| error.tab())
        .or_else(|| error.unclosed())
        .or_else(|| error.reserved())
        .or_else(|| error.colon())
        .or_else(|| error.too_deep_indent())
        .or_else(|| error.unmatched_indent());
    match found {
        Some(mistake) => mistake.describe(finding),
        None => finding,
    }
}

/// Adds a merge conflict, if `text` has one. The parser might not report the conflict, because both sides of
/// a conflict may start a document.
pub fn explain_conflict(finding: Diagnostic, text: &str) -> Diagnostic {
    match conflict(text) {
        Some(mistake) => mistake.describe(finding),
        None => finding,
    }
}

/// A common mistake.
struct Mistake {
    /// A message that replaces that of the parser, if there is a better one.
    message: Option<String>,
    /// The position.
    span: Span,
    /// How to fix the mistake.
    hint: String,
}

impl Mistake {
    /// The finding of the parser, with this mistake as its cause.
    fn describe(self, mut finding: Diagnostic) -> Diagnostic {
        finding.message = self.message.unwrap_or(finding.message);
        finding.location.span = Some(self.span);
        finding.hint(self.hint)
    }
}

/// One line of a YAML file.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    /// The number of the line, counted from 1.
    number: usize,
    start: usize,
    text: &'a str,
}

impl Line<'_> {
    /// Number of leading spaces.
    fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start_matches(' ').len()
    }

    /// Whether the line is blank or a comment.
    fn is_empty(&self) -> bool {
        let text = self.text.trim();
        text.is_empty() || text.starts_with('#')
    }

    /// Offset of the first key or value, after spaces and list dashes.
    fn content(&self) -> usize {
        let mut at = self.indent();
        while let Some(rest) = self.text[at..].strip_prefix("- ") {
            at += 2 + rest.len() - rest.trim_start_matches(' ').len();
        }
        at
    }

    /// Offset of the colon after the key of the line, if the line has a key.
    fn colon(&self) -> Option<usize> {
        let content = self.content();
        let colon = self.text[content..].match_indices(':').map(|(at, _)| content + at);
        colon.into_iter().find(|at| self.text[at + 1..].chars().next().is_none_or(|next| next == ' '))
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut all = Vec::new();
    for (index, whole) in text.split_inclusive('\n').enumerate() {
        let line = whole.trim_end_matches('\n').trim_end_matches('\r');
        all.push(Line { number: index + 1, start, text: line });
        start += whole.len();
    }
    all
}

/// An unresolved Git merge conflict.
fn conflict(text: &str) -> Option<Mistake> {
    let marker = |line: &Line<'_>| line.text == "<<<<<<<" || line.text.starts_with("<<<<<<< ");
    let line = lines(text).into_iter().find(marker)?;
    Some(Mistake {
        message: Some("unresolved merge conflict".to_owned()),
        span: Span::new(line.start, line.start + line.text.len()),
        hint: "resolve it, and remove the lines `<<<<<<<`, `=======` and `>>>>>>>`".to_owned(),
    })
}

/// An error of the parser.
struct ParserError<'a> {
    text: &'a str,
    at: usize,
    message: &'a str,
}

impl<'a> ParserError<'a> {
    /// The lines up to and including the line of the error.
    fn lines(&self) -> Vec<Line<'a>> {
        let mut all = lines(self.text);
        all.retain(|line| line.start <= self.at);
        all
    }

    /// A tab in the indentation.
    fn tab(&self) -> Option<Mistake> {
        if !self.message.contains("tab") {
            return None;
        }
        let here = self.lines().last().map_or(1, |line| line.number);
        // The parser stops at the tab, or at the end of the line before it.
        let near = lines(self.text).into_iter().filter(|line| line.number >= here && line.number <= here + 1);
        let tab = |line: Line<'_>| {
            let blank = line.text.len() - line.text.trim_start().len();
            Some(line.start + line.text[..blank].find('\t')?)
        };
        let at = near.into_iter().find_map(tab)?;
        let message = Some("a tab is used for indentation".to_owned());
        Some(Mistake { message, span: Span::new(at, at + 1), hint: "indent with spaces".to_owned() })
    }

    /// A bracket or a quote that is not closed.
    fn unclosed(&self) -> Option<Mistake> {
        let (at, opening) = delimiters::find(self.text).filter(|(at, _)| *at <= self.at)?;
        let closing = match opening {
            '{' => '}',
            '[' => ']',
            quote => quote,
        };
        let place = position(self.text, at);
        let message = format!("`{opening}` opened at {}:{} is not closed", place.line, place.column);
        Some(Mistake {
            message: Some(message),
            span: Span::new(at, at + 1),
            hint: format!("close it with `{closing}`"),
        })
    }

    /// A character that cannot start an unquoted value.
    fn reserved(&self) -> Option<Mistake> {
        let letter = self.text[self.at..].chars().next()?;
        let message = match letter {
            '@' | '`' | '%' if self.message.starts_with("unexpected character") => {
                format!("an unquoted value cannot begin with `{letter}`")
            }
            '*' if self.message.contains("anchor") => {
                "`*` starts an alias, and the anchor does not exist".to_owned()
            }
            _ => return None,
        };
        let rest = self.text[self.at..].lines().next().unwrap_or_default();
        Some(Mistake {
            message: Some(message),
            span: Span::new(self.at, self.at + 1),
            hint: quote_hint(rest),
        })
    }

    /// A colon within a value.
    fn colon(&self) -> Option<Mistake> {
        if !self.text[self.at..].starts_with(':') {
            return None;
        }
        let line = self.lines().pop()?;
        let key = line.colon().filter(|colon| line.start + colon < self.at)?;
        let value = line.text[key + 1..].trim_start();
        Some(Mistake {
            message: Some("an unquoted value cannot contain `: `".to_owned()),
            span: Span::new(self.at, self.at + 1),
            hint: quote_hint(value),
        })
    }

    /// A line that is indented deeper than the line before, which already has a value.
    fn too_deep_indent(&self) -> Option<Mistake> {
        let mut before = self.lines();
        let line = before.pop()?;
        // The parser stops at the colon or, after a blank line or a comment, at the key.
        let colon = line.colon()?;
        let sibling = before.iter().rev().find(|line| !line.is_empty())?;
        let (indent, level) = (line.content(), sibling.content());
        let is_here = [colon, indent].iter().any(|at| line.start + at == self.at);
        let has_value = |colon: usize| !sibling.text[colon + 1..].trim().is_empty();
        sibling.colon().filter(|colon| is_here && indent > level && has_value(*colon))?;
        let spaces =
            if indent - level == 1 { "1 space".to_owned() } else { format!("{} spaces", indent - level) };
        Some(Mistake {
            message: Some(format!(
                "the line is indented deeper than its siblings on line {}",
                sibling.number
            )),
            span: Span::new(line.start, line.start + line.indent().max(1)),
            hint: format!(
                "remove {spaces}, or quote the value on line {} if it continues here",
                sibling.number
            ),
        })
    }

    /// A line whose indentation matches no line above.
    fn unmatched_indent(&self) -> Option<Mistake> {
        let mut before = self.lines();
        let line = before.pop().filter(|line| self.at == line.start + line.indent())?;
        let indent = line.content();
        let deeper =
            before.iter().rev().filter(|line| !line.is_empty()).find(|line| line.content() > indent)?;
        let outer =
            before.iter().rev().filter(|line| !line.is_empty()).find(|line| line.content() <= indent)?;
        if outer.content() == indent || line.colon().is_none() {
            return None;
        }
        Some(Mistake {
            message: Some("the indentation matches no line above".to_owned()),
            span: Span::new(line.start, line.start + line.indent().max(1)),
            hint: format!("indent it like line {} or like line {}", deeper.number, outer.number),
        })
    }
}

/// A hint to quote a value; shows the quoted value if it is short and simple.
fn quote_hint(value: &str) -> String {
    const MAX_SHOWN: usize = 60;
    let value = value.trim_end();
    let is_plain =
        !value.is_empty() && value.len() <= MAX_SHOWN && !value.contains(['"', '\\', '#', ',', '}', ']']);
    if is_plain { format!("quote the value: \"{value}\"") } else { "quote the value".to_owned() }
}

#[cfg(test)]
mod tests;

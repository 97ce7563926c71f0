//! Regular expressions as the data's authors know them, turned into what our engine reads.
//!
//! Patterns in schemas are Python's, searched for anywhere in the text. The differences that matter: `$` also
//! matches before a final newline, `\d` and `\w` know all scripts, any punctuation may be escaped, `\Z` is the end,
//! a brace that is no repetition stands for itself, and between brackets there are no sets within sets.
//!
//! Patterns without look-around take time in proportion to the text; the others are given up after a fixed number of
//! steps, see [`Pattern::finds`].

use fancy_regex::{Regex, RegexBuilder};

/// How often an expression may turn back before it is given up: long enough for honest patterns, short for bombs.
const MOST_BACKTRACKS: usize = 100_000;
/// Most bytes that a compiled expression may take.
const MOST_BYTES: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern(Regex);

/// Whether a pattern is found could not be decided in reasonable time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly;

impl Pattern {
    /// Compiles a Python pattern; `None` if it is none, or too large a one.
    pub fn new(python: &str) -> Option<Self> {
        let mut builder = RegexBuilder::new(&from_python(python));
        builder.backtrack_limit(MOST_BACKTRACKS).delegate_size_limit(MOST_BYTES);
        builder.build().ok().map(Self)
    }

    /// Whether the pattern is found in `text`.
    pub fn finds(&self, text: &str) -> Result<bool, TooCostly> {
        self.0.is_match(text).map_err(|_| TooCostly)
    }
}

/// Longest text between the braces of a repetition that is looked at.
const LONGEST_REPETITION: usize = 24;

/// Characters that keep their escape; before others it has no meaning.
const KEEP_ESCAPED: &str = r"\.+*?()|[]{}^$#&-~";

/// A Python pattern in the syntax of our engine. What is wrong with it stays wrong.
pub fn from_python(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(character) = rest.next() {
        let at_start = std::mem::take(&mut class_start);
        match character {
            '\\' => {
                let Some(escaped) = rest.next() else {
                    out.push('\\');
                    break;
                };
                escape(escaped, in_class, &mut out);
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                class_start = true;
            }
            ']' if in_class && at_start => out.push_str(r"\]"),
            '[' | '&' | '~' if in_class => out.extend(['\\', character]),
            '-' if in_class && rest.peek() == Some(&'-') => out.push_str(r"\-"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '$' if !in_class => out.push_str(r"(?:\n?$)"),
            '{' if !in_class => {
                match repetition(&rest.clone().take(LONGEST_REPETITION).collect::<String>()) {
                    Some((written, length)) => {
                        out.push_str(&written);
                        for _ in 0..length {
                            rest.next();
                        }
                    }
                    None => out.push_str(r"\{"),
                }
            }
            other => out.push(other),
        }
    }
    out
}

fn escape(escaped: char, in_class: bool, out: &mut String) {
    match escaped {
        'd' => out.push_str(r"\p{Nd}"),
        'w' if in_class => out.push_str(r"\p{L}\p{N}_"),
        'w' => out.push_str(r"[\p{L}\p{N}_]"),
        'D' => out.push_str(r"\P{Nd}"),
        'W' => out.push_str(r"[^\p{L}\p{N}_]"),
        // Python counts the four separators of ASCII as blanks.
        's' if in_class => out.push_str(r"\s\x1c-\x1f"),
        's' => out.push_str(r"[\s\x1c-\x1f]"),
        'S' => out.push_str(r"[^\s\x1c-\x1f]"),
        'Z' => out.push('$'),
        _ if escaped.is_alphanumeric() || KEEP_ESCAPED.contains(escaped) => out.extend(['\\', escaped]),
        _ => out.push(escaped),
    }
}

/// The repetition that `rest` begins with, after its brace, and how many characters of `rest` it takes.
fn repetition(rest: &str) -> Option<(String, usize)> {
    let (inner, _) = rest.split_once('}')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let written = match inner.split_once(',') {
        None if !inner.is_empty() && digits(inner) => format!("{{{inner}}}"),
        Some(("", most)) if digits(most) => format!("{{0,{most}}}"),
        Some((least, most)) if digits(least) && digits(most) => format!("{{{inner}}}"),
        _ => return None,
    };
    Some((written, inner.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::{Pattern, TooCostly, from_python};

    fn check(python: &str, expect: &str) {
        assert_eq!(from_python(python), expect, "{python}");
    }

    #[test]
    fn the_end_is_also_before_a_final_newline() {
        check("^a$", r"^a(?:\n?$)");
        check(r"^[$]\$\Z", r"^[$]\$$");
    }

    #[test]
    fn escapes_without_meaning_are_dropped() {
        check(r#"\/\"\'\-\<\@"#, r#"/"'\-<@"#);
        check(r"[\w\-\/]\w\d", r"[\p{L}\p{N}_\-/][\p{L}\p{N}_]\p{Nd}");
    }

    #[test]
    fn between_brackets_there_are_no_sets_within_sets() {
        check("[[a&&b~]", r"[\[a\&\&b\~]");
    }

    #[test]
    fn a_costly_pattern_is_given_up() {
        let bomb = Pattern::new("^(x+x+(?!z))+y$").expect("a pattern");
        assert_eq!(bomb.finds(&"x".repeat(60)), Err(TooCostly));
        assert_eq!(bomb.finds("xxy"), Ok(true));
        assert!(Pattern::new("((a{1000}){1000}){1000}").is_none());
    }

    #[test]
    fn braces_that_repeat_nothing_stand_for_themselves() {
        check("a{2}b{,3}c{1,}d{x}{", r"a{2}b{0,3}c{1,}d\{x}\{");
        check("[]a]", r"[\]a]");
    }
}

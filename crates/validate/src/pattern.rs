//! Regular expressions as the data's authors know them, turned into what our engine reads.
//!
//! Patterns in schemas are Python's, searched for anywhere in the text. The differences that matter: `$` also
//! matches before a final newline, `\d` and `\w` know all scripts, any punctuation may be escaped, `\Z` is the end,
//! a brace that is no repetition stands for itself.

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
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '$' if !in_class => out.push_str(r"(?:\n?$)"),
            '{' if !in_class => match repetition(&rest.clone().collect::<String>()) {
                Some((written, length)) => {
                    out.push_str(&written);
                    for _ in 0..length {
                        rest.next();
                    }
                }
                None => out.push_str(r"\{"),
            },
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
        'D' if !in_class => out.push_str(r"\P{Nd}"),
        'W' if !in_class => out.push_str(r"[^\p{L}\p{N}_]"),
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
    use super::from_python;

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
    fn braces_that_repeat_nothing_stand_for_themselves() {
        check("a{2}b{,3}c{1,}d{x}{", r"a{2}b{0,3}c{1,}d\{x}\{");
        check("[]a]", r"[\]a]");
    }
}

//! Pretty-prints JSON. Preserves the order of keys and the spelling of values.

/// Indents JSON by two spaces for each level. Input that is not JSON does not cause an error.
pub fn json(text: &str) -> String {
    let (mut out, mut depth, mut in_text, mut is_escaped) =
        (String::with_capacity(text.len() * 2), 0, false, false);
    let mut letters = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if in_text {
            out.push(letter);
            (in_text, is_escaped) = match letter {
                '"' if !is_escaped => (false, false),
                '\\' => (true, !is_escaped),
                _ => (true, false),
            };
            continue;
        }
        match letter {
            '"' => {
                in_text = true;
                out.push(letter);
            }
            '{' | '[' => {
                out.push(letter);
                let closing = if letter == '{' { '}' } else { ']' };
                if letters.next_if_eq(&closing).is_some() {
                    out.push(closing);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            letter if letter.is_ascii_whitespace() => {}
            letter => out.push(letter),
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn json_is_indented_and_keeps_its_key_order() {
        let check = |text: &str, expect: &str| assert_eq!(json(text), expect, "{text}");
        check("{\"b\":1,\"a\":[]}\n", "{\n  \"b\": 1,\n  \"a\": []\n}\n");
        check("[1,{\"a\":null}]", "[\n  1,\n  {\n    \"a\": null\n  }\n]\n");
        check("{}", "{}\n");
        check(r#"["a,\"{","\\"]"#, "[\n  \"a,\\\"{\",\n  \"\\\\\"\n]\n");
        check("1", "1\n");
    }
}

//! Python's `textwrap.dedent`.

/// Removes the common leading whitespace of all lines; whitespace-only lines become empty.
pub(crate) fn dedent(text: &str) -> String {
    let is_blank = |character: char| matches!(character, ' ' | '\t');
    let lines: Vec<&str> =
        text.split('\n').map(|line| if line.trim_matches(is_blank).is_empty() { "" } else { line }).collect();
    let mut margin: Option<&str> = None;
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let indent = &line[..line.len() - line.trim_start_matches(is_blank).len()];
        margin = Some(match margin {
            None => indent,
            Some(margin) => {
                let common = margin.bytes().zip(indent.bytes()).take_while(|(a, b)| a == b).count();
                &margin[..common]
            }
        });
    }
    let margin = margin.unwrap_or_default();
    let lines: Vec<&str> = lines.iter().map(|line| line.strip_prefix(margin).unwrap_or(line)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::dedent;

    #[test]
    fn the_common_margin_is_removed() {
        let check = |text: &str, expect: &str| assert_eq!(dedent(text), expect);
        check("\n  a\n    b\n   \n", "\na\n  b\n\n");
        check("a\n  b", "a\n  b");
        check("\ta\n  b", "\ta\n  b");
    }
}

//! Checks that Kubernetes accepts the name and the value of a label.

/// Checks a label; an error if a cluster would reject it.
pub fn check_label(name: &str, value: &str) -> Result<(), String> {
    let (prefix, rest) = name.rsplit_once('/').map_or((None, name), |(prefix, rest)| (Some(prefix), rest));
    if !is_word(rest, 63) || !prefix.is_none_or(is_host) {
        return Err(format!("`{name}` is not a valid label name"));
    }
    if prefix.is_some_and(|prefix| ["kubernetes.io", "k8s.io"].contains(&prefix)) {
        return Err(format!("the label `{name}` is reserved for Kubernetes itself"));
    }
    if !value.is_empty() && !is_word(value, 63) {
        return Err(format!("`{value}` is not a valid value for the label `{name}`"));
    }
    Ok(())
}

/// Whether a string consists of letters and digits, with hyphens, underscores and dots only between them.
fn is_word(text: &str, most: usize) -> bool {
    let inner = |one: u8| one.is_ascii_alphanumeric() || b"-_.".contains(&one);
    let ends = |one: Option<&u8>| one.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= most && bytes.iter().copied().all(inner) && ends(bytes.first()) && ends(bytes.last())
}

/// Whether a string is a DNS subdomain.
fn is_host(text: &str) -> bool {
    let fine = |part: &str| is_word(part, 63) && !part.contains('_') && part.to_lowercase() == part;
    text.len() <= 253 && text.split('.').all(fine)
}

#[cfg(test)]
mod tests {
    use super::check_label as checked;

    #[track_caller]
    fn check(name: &str, value: &str, expect: Option<&str>) {
        assert_eq!(checked(name, value).err().as_deref(), expect);
    }

    #[test]
    fn invalid_labels_are_detected() {
        check("team", "shop", None);
        check("team", "", None);
        check("pod-security.kubernetes.io/enforce", "baseline", None);
        check("a_b.c-d", "1.2_3", None);
        check("-team", "x", Some("`-team` is not a valid label name"));
        check("a/b/c", "x", Some("`a/b/c` is not a valid label name"));
        check("Team.example.com/a", "x", Some("`Team.example.com/a` is not a valid label name"));
        check("team", "a b", Some("`a b` is not a valid value for the label `team`"));
        check(
            "team",
            &"x".repeat(64),
            Some(&format!("`{}` is not a valid value for the label `team`", "x".repeat(64))),
        );
        check("k8s.io/a", "x", Some("the label `k8s.io/a` is reserved for Kubernetes itself"));
    }
}

//! Converts names of the data to Rust names.

/// Converts a name to Pascal case: `apps_v1` → `AppsV1`.
pub fn pascal(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    words.map(upper).collect()
}

/// Removes the version from a name: `AppV1` → `App`.
pub fn unversioned(name: &str) -> &str {
    let bare = name.trim_end_matches(|one: char| one.is_ascii_digit());
    bare.strip_suffix('V').filter(|rest| bare.len() < name.len() && !rest.is_empty()).unwrap_or(name)
}

/// Converts a name to camel case as serde does: `server_url` → `serverUrl`.
pub fn camel(name: &str) -> String {
    let name = pascal(name.trim_start_matches("r#"));
    name[..1].to_lowercase() + &name[1..]
}

/// Converts a name to snake case and escapes keywords: `serverUrl` → `server_url`, `type` → `r#type`.
pub fn snake(name: &str) -> String {
    const KEYWORDS: [&str; 46] = [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
        "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
        "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static",
        "struct", "trait", "true", "try", "type", "typeof", "unsafe", "use", "virtual", "where", "while",
    ];
    let mut out = String::new();
    let mut lower = false;
    for one in name.trim_start_matches('_').chars() {
        if one.is_uppercase() && lower {
            out.push('_');
        }
        lower = one.is_lowercase() || one.is_numeric();
        out.extend(one.to_lowercase());
    }
    if KEYWORDS.contains(&out.as_str()) { format!("r#{out}") } else { out }
}

#[cfg(test)]
mod tests {
    use super::{camel, snake};

    #[track_caller]
    fn check(key: &str, rust: &str, back: &str) {
        assert_eq!((snake(key).as_str(), camel(&snake(key)).as_str()), (rust, back));
    }

    #[test]
    fn keys_convert_to_rust_names_and_some_convert_back() {
        check("serverUrl", "server_url", "serverUrl");
        check("name", "name", "name");
        check("type", "r#type", "type");
        check("elbFQDN", "elb_fqdn", "elbFqdn");
        check("namespaces_v1", "namespaces_v1", "namespacesV1");
        check("org_username", "org_username", "orgUsername");
    }
}

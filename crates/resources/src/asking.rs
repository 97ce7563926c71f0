//! Whether a template can ask the data, told from its text alone.
//!
//! **Invariant:** never too little: a template that is said not to ask, does not, whatever its variables are.

/// What asks the data: a query does, and a bucket is of an account, which the data describes.
const ASKING: [&str; 2] = ["query", "s3"];

/// What renders its arguments as templates: a value of the data that is handed to one of these may ask.
const RENDERING: [&str; 2] = ["vault", "github"];

/// Whether a template of this text may ask the data. The names of what it calls are in its text, or in that of an argument that is rendered.
pub fn may_ask(text: &str) -> bool {
    if !text.contains("{{") && !text.contains("{%") {
        return false;
    }
    ASKING.iter().any(|name| text.contains(name))
        || RENDERING.iter().any(|name| renders_what_it_is_given(text, name))
}

/// Whether something of this name is called with anything but plain texts, or stands where it may be handed on to be called.
fn renders_what_it_is_given(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = &text[start + name.len()..];
        let is_letter = |one: char| one.is_alphanumeric() || one == '_';
        // A word of which the name is a part is another one.
        if before.is_some_and(is_letter) || after.starts_with(is_letter) {
            return false;
        }
        match after.trim_start().strip_prefix('(') {
            Some(arguments) => !are_plain(arguments),
            None => !is_in_a_path(before, after),
        }
    })
}

/// Whether a name between these is a part of a path or a key: nothing that could be called.
fn is_in_a_path(before: Option<char>, after: &str) -> bool {
    let ends_tag = after.starts_with("-%}") || after.starts_with("-}}");
    before.is_some_and(|one| "/-.".contains(one)) || (after.starts_with(['/', '-', '.', ':']) && !ends_tag)
}

/// Whether arguments, up to their closing bracket, are texts without anything special in them, numbers and `true` or `false`, named or not.
fn are_plain(arguments: &str) -> bool {
    let mut rest = arguments.trim_start();
    loop {
        let Some(next) = rest.chars().next() else { return false };
        rest = match next {
            ')' => return true,
            ',' | '=' => &rest[1..],
            quote @ ('"' | '\'') => {
                let Some((inner, after)) = rest[1..].split_once(quote) else { return false };
                if inner.contains(['{', '\\']) {
                    return false;
                }
                after
            }
            _ => {
                let end = rest.find(|one: char| !one.is_alphanumeric() && one != '_').unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let is_name = after.trim_start().starts_with('=') && !after.trim_start().starts_with("==");
                let is_value = matches!(word, "true" | "false" | "True" | "False" | "none" | "None")
                    || (!word.is_empty() && word.bytes().all(|one| one.is_ascii_digit()));
                if word.is_empty() || !(is_name || is_value) {
                    return false;
                }
                after
            }
        }
        .trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::may_ask;

    #[test]
    fn what_is_called_with_plain_texts_alone_does_not_ask() {
        for text in [
            "key: value, query: x",
            "{{ name }}: 1",
            "{{ vault('app/creds', 'password') }}",
            "{{{ vault(\"app/creds\", \"password\", 3, allow_not_found=true) }}}",
            "{{ vault(p='a', k='b', v = 1) }} app/vault/path {{ github('https://x/y', 'a', 'main') }}",
            "path: vault/secret\nmy-vault: {{ x }}",
        ] {
            assert!(!may_ask(text), "{text}");
        }
    }

    #[test]
    fn what_may_ask_is_said_to() {
        for text in [
            "{{ query('/a.graphql') }}",
            "{% for one in query('/a.graphql') %}{% endfor %}",
            "{{ s3('account', 'bucket', 'key') }}",
            "{{ vault(path, 'password') }}",
            "{{ vault('{{ path }}', 'password') }}",
            "{{ vault('a' ~ b, 'c') }}",
            "{{ vault('a\\x62', 'c') }}",
            "{% set get = vault %}{{ get(path, 'k') }}",
            "{{ vault('a', k=key) }}",
            "{{ vault('a', k == 'b') }}",
            "{{ github(repo, 'a', 'b') }}",
            "{{ vault('a', 'b'",
            "{{-vault(path, 'k')-}}",
            "{%- set get=vault-%}{{ get(path, 'k') }}",
            "{{ 1-vault(path, 'k') }}",
        ] {
            assert!(may_ask(text), "{text}");
        }
    }
}

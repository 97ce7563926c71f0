//! Whether a template can query the data, decided from its text alone.
//!
//! **Invariant:** never too little: a template that is said not to ask, does not, whatever its variables are.

use qontract_template::is_only_called_plainly;

/// What asks the data: a query does, and a bucket is of an account, which the data describes.
const ASKING: [&str; 2] = ["query", "s3"];

/// What renders its arguments as templates: a value of the data that is handed to one of these may ask.
const RENDERING: [&str; 2] = ["vault", "github"];

/// Whether a template of this text may query the data. The names of what it calls are in its text, or in that of an argument that is rendered.
pub fn may_query(text: &str) -> bool {
    if !text.contains("{{") && !text.contains("{%") {
        return false;
    }
    ASKING.iter().any(|name| text.contains(name))
        || RENDERING.iter().any(|name| text.contains(name) && !is_only_called_plainly(text, name))
}

#[cfg(test)]
mod tests {
    use super::may_query;

    #[test]
    fn what_is_called_with_plain_texts_alone_does_not_ask() {
        for text in [
            "key: value, query: x",
            "{{ name }}: 1",
            "{{ vault('app/creds', 'password') }}",
            "{{{ vault(\"app/creds\", \"password\", 3, allow_not_found=true) }}}",
            "{{ vault(p='a', k='b', v = 1) }} app/vault/path {{ github('https://x/y', 'a', 'main') }}",
            "path: vault/secret\nmy-vault: {{ x }}",
            "{{{ vault('a', 'b') }}} of {{ $labels.vault }}",
            "{{ vault('a/vault', 'b') }}\n{# vault|d(1) #}\nvault: {{ x }} vault",
        ] {
            assert!(!may_query(text), "{text}");
        }
    }

    #[test]
    fn what_may_query_is_said_to() {
        for text in [
            "{{ query('/a.graphql') }}",
            "{% for one in query('/a.graphql') %}{% endfor %}",
            "{{ s3('account', 'bucket', 'key') }}",
            "{{ vault(path, 'password') }}",
            "{{ vault('{{ path }}', 'password') }}",
            "{{ vault('a' ~ b, 'c') }}",
            "{{ vault('\\x7b{ path }}', 'c') }}",
            "{% set get = vault %}{{ get(path, 'k') }}",
            "{{ vault('a', k=key) }}",
            "{{ vault('a', k == 'b') }}",
            "{{ github(repo, 'a', 'b') }}",
            "{{-vault(path, 'k')-}}",
            "{%- set get=vault-%}{{ get(path, 'k') }}",
            "{{ 1-vault(path, 'k') }}",
            "{{-vault|d(1)(path, 'k')-}}",
            "{%-set get = vault%}{{ get(path, 'k') }}",
            "{{ 1 -vault|d(1)(path, 'k') }}",
            "{{ 4/vault|d(1)(path, 'k') }}",
            "{% for get in {vault: 1} %}{{ get(path, 'k') }}{% endfor %}",
            "{{ '}}' ~ vault|d(1)(path, 'k') }}",
            "{{{ vault|d(1)(path, 'k') }}}",
            "{{% set get = vault %}}{{{ get(path, 'k') }}}",
        ] {
            assert!(may_query(text), "{text}");
        }
    }
}

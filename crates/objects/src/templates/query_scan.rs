//! Determines from the source of a template whether it may query the data.
//!
//! **Invariant:** no false negatives: a template that is reported as not querying never runs a query,
//! regardless of its variables.

use qontract_runtime::AdHocTrigger;
use qontract_template::has_only_literal_calls;

/// Functions that query the data: `query`, and `s3`, whose accounts are described in the data.
const QUERY_FUNCTIONS: [&str; 2] = ["query", "s3"];

/// Functions that render their arguments as templates: a data value passed to one of these may contain a
/// query.
const RENDERING_FUNCTIONS: [&str; 2] = ["vault", "github"];

/// Templates that may query the data. If `may_query` is changed to match more templates, the name of the
/// trigger must change as well.
pub const TEMPLATES_THAT_QUERY: AdHocTrigger = AdHocTrigger { name: "templates-1", matches: may_query };

/// Whether a template with this source may query the data. The names of the functions that a template calls
/// are in its source, or in that of an argument that is rendered.
pub fn may_query(text: &str) -> bool {
    if !text.contains("{{") && !text.contains("{%") {
        return false;
    }
    QUERY_FUNCTIONS.iter().any(|name| text.contains(name))
        || RENDERING_FUNCTIONS.iter().any(|name| text.contains(name) && !has_only_literal_calls(text, name))
}

#[cfg(test)]
mod tests {
    use super::may_query;

    #[test]
    fn a_call_with_string_literals_only_does_not_query() {
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
    fn a_template_that_may_query_is_detected() {
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

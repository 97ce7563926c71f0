//! The name of an integration, and the module and type names derived from it.

use anyhow::{Error, bail};
use std::fmt;
use std::str::FromStr;

/// Words that are not allowed as module names.
const RESERVED_WORDS: [&str; 45] = [
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue", "core",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self",
    "static", "std", "struct", "super", "trait", "true", "try", "type",
];

/// Lowercase words and digits, separated by hyphens: `openshift-namespaces`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationName(String);

impl IntegrationName {
    /// The module name: `openshift_namespaces`.
    pub fn module(&self) -> String {
        self.0.replace('-', "_")
    }

    /// The type name: `OpenshiftNamespaces`.
    pub fn type_name(&self) -> String {
        let capital = |word: &str| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        };
        self.0.split('-').map(capital).collect()
    }
}

impl FromStr for IntegrationName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !begins || !text.split('-').all(is_word) {
            bail!("`{text}` is not a valid name: use lowercase letters and digits, separated by hyphens");
        }
        if RESERVED_WORDS.contains(&text) {
            bail!("`{text}` is a reserved word of Rust: choose another name");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for IntegrationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::IntegrationName;

    #[test]
    fn module_and_type_names_are_derived_from_the_name() {
        let name: IntegrationName = "aws-s3-buckets2".parse().expect("a name");
        assert_eq!((name.module().as_str(), name.type_name().as_str()), ("aws_s3_buckets2", "AwsS3Buckets2"));
    }

    #[test]
    fn invalid_names_are_refused() {
        for text in ["", "-a", "a-", "a--b", "A", "a_b", "1a", "a b", "../a", "ä", "match", "std"] {
            assert!(text.parse::<IntegrationName>().is_err(), "{text:?}");
        }
    }
}

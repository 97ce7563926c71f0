//! Finds datafiles that have equal values for a key.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use qontract_bundle::Document;
use rayon::prelude::*;

use crate::engine::Engine;
use crate::source::FileId;

impl Engine {
    /// The string values of these keys in the datafiles at `paths`, as pairs of key and
    /// [normalized](normalize_key) value.
    pub fn key_values<'k>(
        &self,
        paths: &BTreeSet<Box<str>>,
        keys: &[&'k str],
    ) -> BTreeSet<(&'k str, String)> {
        let documents = paths.iter().filter_map(|path| self.bundle().datafile(path));
        let text = |document: &Document, key: &'k str| {
            Some((key, normalize_key(document.value.get(key)?.as_str()?)))
        };
        documents.flat_map(|document| keys.iter().filter_map(|key| text(document, key))).collect()
    }

    /// The paths of all datafiles that have the schema of a datafile at `paths` and at least one of these
    /// [key values](Self::key_values).
    pub fn with_same_keys(
        &self,
        paths: &BTreeSet<Box<str>>,
        texts: &BTreeSet<(&str, String)>,
    ) -> BTreeSet<Box<str>> {
        let index = self.index();
        let documents = paths.iter().filter_map(|path| self.bundle().datafile(path));
        let schemas: BTreeSet<&str> = documents.filter_map(|document| document.schema()).collect();
        let mut wanted: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
        for (key, text) in texts {
            wanted.entry(*key).or_default().insert(text);
        }
        let files: Vec<&FileId> = schemas.into_iter().flat_map(|schema| index.files_of(schema)).collect();
        let is_alike = |file: FileId| {
            wanted.iter().any(|(key, texts)| {
                let text = index.root(file).and_then(|map| map.get(key)?.as_str());
                text.is_some_and(|text| texts.contains(&*normalize_key(text)))
            })
        };
        let alike = files.into_par_iter().filter(|file| is_alike(**file));
        alike.map(|file| Box::from(index.path(*file))).collect()
    }
}

/// Normalizes a value for comparison: trims white space and trailing slashes and converts to lower case. For
/// a URL, also removes the default port and the trailing dot of the host.
pub fn normalize_key(text: &str) -> String {
    let text = text.trim().trim_end_matches('/').to_lowercase();
    let Some((scheme, rest)) = text.split_once("://") else { return text };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, port.trim_start_matches('0'))
        }
        Some((host, "")) => (host, ""),
        _ => (authority, ""),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    match (scheme, port) {
        (_, "") | ("https", "443") | ("http", "80") => format!("{scheme}://{host}{path}"),
        (_, port) => format!("{scheme}://{host}:{port}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::normalize_key;

    #[test]
    fn spellings_of_one_server_are_equal() {
        let check = |text: &str, expect: &str| assert_eq!(normalize_key(text), expect, "{text}");
        for same in [
            "https://api.c1",
            "HTTPS://API.c1/",
            "https://api.c1:443//",
            "https://api.c1.:0443",
            " https://api.c1:",
        ] {
            check(same, "https://api.c1");
        }
        check("https://api.c1.:6443/x", "https://api.c1:6443/x");
        check("https://api.c1:80", "https://api.c1:80");
        check("http://api.c1:80", "http://api.c1");
        check("http://[::1]:443/", "http://[::1]:443");
        check("https://[::1]", "https://[::1]");
        check("Some:443/", "some:443");
        check("", "");
    }
}

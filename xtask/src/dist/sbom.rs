//! The SBOM of the binary in `CycloneDX` format, read from the binary itself.
//!
//! `cargo auditable` embeds the dependency list when it links, so the list belongs to exactly this binary.
//! The list has no licences. These come from the packages of this checkout, which must be those of the
//! binary.

use crate::command::CommandLine;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Name and version of a package ↦ its licence.
type Licences = BTreeMap<(String, String), String>;

/// The SBOM of a binary.
pub fn from_binary(workspace: &Workspace, binary: &Path) -> Result<Vec<u8>> {
    let reader = CommandLine::program(&workspace.cache.path("tools/bin/auditable2cdx"));
    let read = reader.args([binary]).env("RUST_BACKTRACE", "0").output();
    let read = read.with_context(|| format!("{} has no embedded dependency list", binary.display()))?;
    let metadata = workspace.cargo("metadata --locked --format-version 1").output()?;
    let list = complete(serde_json::from_slice(&read)?, &licences(&serde_json::from_slice(&metadata)?))?;
    let mut text = serde_json::to_vec_pretty(&list)?;
    text.push(b'\n');
    Ok(text)
}

fn licences(metadata: &Value) -> Licences {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    packages
        .map(|package| {
            // `/` is the old spelling of `OR`.
            let words: Vec<String> =
                text(&package["license"]).split('/').map(|word| word.trim().to_owned()).collect();
            let licence = words.join(" OR ");
            ((text(&package["name"]), text(&package["version"])), licence)
        })
        .collect()
}

/// Adds fields that the format requires and `auditable2cdx` omits, and the licences.
fn complete(mut list: Value, licences: &Licences) -> Result<Value> {
    list["version"] = json!(1);
    let own = list.pointer_mut("/metadata/component").and_then(Value::as_object_mut);
    describe(own.context("the SBOM has no main component")?, licences)?;
    let components = list["components"].as_array_mut().context("the SBOM is empty")?;
    for component in components {
        describe(component.as_object_mut().context("a component is an object")?, licences)?;
    }
    Ok(list)
}

fn describe(component: &mut Map<String, Value>, licences: &Licences) -> Result<()> {
    let field = |name: &str| component.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let key = (field("name"), field("version"));
    let licence = licences
        .get(&key)
        .with_context(|| format!("{} {} is in the binary, but not in this checkout", key.0, key.1))?;
    if !licence.is_empty() {
        component.insert("licenses".to_owned(), json!([{ "expression": licence }]));
    }
    // `auditable2cdx` writes `&` before the first qualifier of packages without a registry, but it has to be
    // `?`.
    if let Some(purl) = component.get_mut("purl") {
        *purl = json!(purl.as_str().unwrap_or_default().replacen('&', "?", 1));
    }
    // Build dependencies are not part of the binary.
    let is_build = component.get("properties").is_some_and(|properties| properties[0]["value"] == "build");
    component.insert("scope".to_owned(), json!(if is_build { "excluded" } else { "required" }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{complete, licences};
    use serde_json::{Value, json};

    fn check(components: &Value, expect: Result<&Value, &str>) {
        let licences = licences(&json!({ "packages": [
            { "name": "qontract", "version": "1.0.0", "license": "Apache-2.0" },
            { "name": "a", "version": "2.0.0", "license": "MIT / Apache-2.0" },
            { "name": "b", "version": "3.0.0", "license": null },
        ]}));
        let own = json!({ "name": "qontract", "version": "1.0.0" });
        let list = json!({ "metadata": { "component": own }, "components": components });
        let list = complete(list, &licences).map_err(|error| error.to_string());
        assert_eq!(list.as_ref().map(|list| &list["components"]).map_err(String::as_str), expect);
        assert!(list.is_err() || list.is_ok_and(|list| list["version"] == 1));
    }

    #[test]
    fn licences_are_added_and_build_dependencies_are_excluded() {
        check(
            &json!([
                { "name": "a", "version": "2.0.0", "purl": "pkg:cargo/a@2.0.0&download_url=redacted" },
                { "name": "b", "version": "3.0.0", "properties": [{ "name": "kind", "value": "build" }] },
            ]),
            Ok(&json!([
                { "name": "a", "version": "2.0.0", "scope": "required",
                  "purl": "pkg:cargo/a@2.0.0?download_url=redacted",
                  "licenses": [{ "expression": "MIT OR Apache-2.0" }] },
                { "name": "b", "version": "3.0.0", "scope": "excluded",
                  "properties": [{ "name": "kind", "value": "build" }] },
            ])),
        );
    }

    #[test]
    fn a_binary_of_another_checkout_is_refused() {
        let error = "a 2.0.1 is in the binary, but not in this checkout";
        check(&json!([{ "name": "a", "version": "2.0.1" }]), Err(error));
        check(&Value::Null, Err("the SBOM is empty"));
    }
}

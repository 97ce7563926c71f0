//! `qontract inventory`: prints Kubernetes objects in their canonical form.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use qontract_cli::printer::Printer;
use qontract_cli::{InventoryAction, InventoryArgs};
use qontract_daemon::exit::Exit;
use qontract_inventory::canonical;
use serde_json::{Value, json};

pub fn run(arguments: InventoryArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match arguments.action {
        InventoryAction::Hash(hash) => {
            let name = hash.file.display().to_string();
            let text = read(&hash.file).with_context(|| format!("cannot read `{name}`"))?;
            let mut rows = Vec::new();
            for (number, object) in
                objects(&text).with_context(|| format!("cannot parse `{name}`"))?.iter().enumerate()
            {
                let found =
                    canonical(object).with_context(|| format!("object {} of `{name}`", number + 1))?;
                rows.push(json!({"canonical": found.text, "sha256": found.sha256.to_string()}));
            }
            printer.json(&[&serde_json::to_vec_pretty(&rows)?[..], b"\n"].concat())?;
            Ok(Exit::Ok)
        }
    }
}

fn read(file: &Path) -> std::io::Result<String> {
    if file != Path::new("-") {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// The objects of a file, which contains one object, several documents, a JSON list, or a Kubernetes `List`.
fn objects(text: &str) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for document in documents(text) {
        match serde_json::from_str(&document).or_else(|_| qontract_yaml::json::read(document.as_bytes())) {
            Err(why) => anyhow::bail!("{why}"),
            Ok(Value::Null) => {}
            Ok(Value::Array(items)) => found.extend(items),
            Ok(Value::Object(mut map)) if map.get("kind") == Some(&"List".into()) => {
                match map.remove("items") {
                    Some(Value::Array(items)) => found.extend(items),
                    _ => anyhow::bail!("a List has no `items`"),
                }
            }
            Ok(other) => found.push(other),
        }
    }
    Ok(found)
}

/// The documents of a YAML stream, separated by lines that begin with `---`.
fn documents(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines() {
        let marker =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if marker {
            all.push(line["---".len()..].to_owned() + "\n");
        } else if line.trim_end() != "..." {
            let last = all.len() - 1;
            all[last] = std::mem::take(&mut all[last]) + line + "\n";
        }
    }
    all.retain(|document| !document.trim().is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::objects;

    #[test]
    fn a_file_holds_one_object_several_documents_or_a_list() {
        let names = |text: &str| {
            let all = objects(text).unwrap();
            all.iter()
                .map(|one| one["name"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names("{\"name\": \"a\"}"), "a");
        assert_eq!(names("name: a\n---\n# nothing\n---\nname: b\n...\n"), "a b");
        assert_eq!(names("--- {name: a}\n--- # b\nname: b\n"), "a b");
        assert_eq!(names("- name: a\n- name: b\n"), "a b");
        assert_eq!(names("kind: List\nitems: [{name: a}, {name: b}]\n"), "a b");
        assert!(objects("a: [\n").is_err());
    }
}

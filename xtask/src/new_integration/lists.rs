//! Edits of the files that list every integration. Applying an edit a second time changes nothing.

use super::name::IntegrationName;
use crate::cli::TemplateForm;
use anyhow::{Context as _, Result};

/// Adds an integration to the text of a file.
pub type Edit = fn(&str, &IntegrationName, TemplateForm) -> Result<String>;

/// The first line of the list of integrations.
const LIST_START: &str = "pub const ALL: &[Entry] = &[\n";

/// The files that list every integration, with their edits.
pub const EDITS: [(&str, Edit); 3] = [
    ("Cargo.toml", |text, name, _| add_to_workspace(text, name)),
    ("crates/qontract/Cargo.toml", |text, name, _| add_to_binary(text, name)),
    ("crates/qontract/src/integrations.rs", add_entry),
];

/// Adds the package path to the manifest of the workspace.
fn add_to_workspace(text: &str, name: &IntegrationName) -> Result<String> {
    let line = format!("qontract-integration-{name} = {{ path = \"integrations/{name}\" }}");
    insert_line(text, &line, |line| line.starts_with("qontract-integration-"), Some("# the integrations"))
}

/// Adds the package to the dependencies of the binary.
fn add_to_binary(text: &str, name: &IntegrationName) -> Result<String> {
    let line = format!("qontract-integration-{name}.workspace = true");
    insert_line(text, &line, |line| line.starts_with("qontract-integration-"), Some("[dependencies]"))
}

/// Adds a line to the list of integrations.
fn add_entry(text: &str, name: &IntegrationName, form: TemplateForm) -> Result<String> {
    let (module, type_name) = (name.module(), name.type_name());
    let (before, list) = text.split_once(LIST_START).context("the list `ALL` is missing")?;
    let (list, after) = list.split_once("];").context("the list `ALL` has no end")?;
    let mut lines: Vec<(String, String)> = Vec::new();
    for line in list.lines() {
        lines.push((
            entry_module(line).with_context(|| format!("not an entry of `ALL`: `{line}`"))?,
            line.to_owned(),
        ));
    }
    if lines.iter().all(|(listed, _)| *listed != module) {
        let form = match form {
            TemplateForm::Staged => "staged",
            TemplateForm::Function => "function",
        };
        let line = format!("    Entry::{form}::<qontract_integration_{module}::{type_name}>(),");
        lines.push((module, line));
    }
    // The lines are sorted by the name of the integration, which has hyphens in place of underscores.
    lines.sort_by_key(|(module, _)| module.replace('_', "-"));
    let list: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
    Ok(format!("{before}{LIST_START}{list}];{after}"))
}

/// The module named in a line of the list: `Entry::function::<qontract_integration_MODULE::TYPE>(),` or
/// `Entry::new(MODULE::about, …),`.
fn entry_module(line: &str) -> Option<String> {
    let entry = line.strip_prefix("    Entry::")?;
    let path = &entry[entry.find(['<', '('])? + 1..];
    let (module, _) = path.split_once("::")?;
    Some(module.strip_prefix("qontract_integration_").unwrap_or(module).to_owned())
}

/// Adds a schema to the `schemas` of an integration's definition.
pub fn add_schema(text: &str, schema: &str) -> Result<String> {
    let line = format!("- {schema}");
    if text.lines().any(|listed| listed == line) {
        return Ok(text.to_owned());
    }
    let head = "\nschemas:\n";
    let place = text.find(head).context("the definition has no list `schemas`")? + head.len();
    let length: usize =
        text[place..].split_inclusive('\n').take_while(|line| line.starts_with("- ")).map(str::len).sum();
    let (before, after) = text.split_at(place + length);
    Ok(format!("{before}{line}\n{after}"))
}

/// Inserts a line in sorted order among the lines of its kind. If there are none, inserts it after `head`.
fn insert_line(text: &str, line: &str, is_kind: fn(&str) -> bool, head: Option<&str>) -> Result<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.contains(&line) {
        return Ok(text.to_owned());
    }
    let later = lines.iter().position(|listed| is_kind(listed) && *listed > line);
    let after_last = lines.iter().rposition(|listed| is_kind(listed)).map(|index| index + 1);
    let after_head = || lines.iter().position(|listed| Some(*listed) == head).map(|index| index + 1);
    let place = later.or(after_last).or_else(after_head).context("no line to insert it after")?;
    lines.insert(place, line);
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::{add_entry, add_schema, add_to_binary, add_to_workspace};
    use crate::cli::TemplateForm;

    const WORKSPACE: &str = "\
[workspace.dependencies]
serde = \"1\"

# the integrations
qontract-integration-b = { path = \"integrations/b\" }
qontract-integration-d = { path = \"integrations/d\" }

# data
";

    const ENTRIES: &str = "\
use qontract_runtime::IntegrationMeta;

pub const ALL: &[Entry] = &[
    Entry::objects::<qontract_integration_a::A>(),
    Entry::new(b::meta, make_b),
];

fn rest() {}
";

    fn name(text: &str) -> super::IntegrationName {
        text.parse().expect("a name")
    }

    #[test]
    fn a_dependency_is_inserted_in_sorted_order() {
        for (integration, before) in [("a", "# the integrations"), ("c", "b\" }"), ("e", "d\" }")] {
            let text = add_to_workspace(WORKSPACE, &name(integration)).expect("it can be added");
            let line = format!(
                "{before}\nqontract-integration-{integration} = {{ path = \"integrations/{integration}\" }}\n"
            );
            assert!(text.contains(&line), "{text}");
            assert_eq!(add_to_workspace(&text, &name(integration)).expect("it exists"), text);
        }
    }

    #[test]
    fn the_first_integration_is_inserted_after_the_heading() {
        let text = add_to_binary("[package]\n\n[dependencies]\nserde.workspace = true\n", &name("a"));
        let expected =
            "[package]\n\n[dependencies]\nqontract-integration-a.workspace = true\nserde.workspace = true\n";
        assert_eq!(text.expect("it can be added"), expected);
        assert!(add_to_binary("nothing\n", &name("a")).is_err());
    }

    #[test]
    fn an_entry_is_inserted_in_sorted_order() {
        let added = add_entry(ENTRIES, &name("a-b"), TemplateForm::Staged).expect("it can be added");
        let expected = "\
use qontract_runtime::IntegrationMeta;

pub const ALL: &[Entry] = &[
    Entry::objects::<qontract_integration_a::A>(),
    Entry::staged::<qontract_integration_a_b::AB>(),
    Entry::new(b::meta, make_b),
];

fn rest() {}
";
        assert_eq!(added, expected);
        assert_eq!(add_entry(&added, &name("a-b"), TemplateForm::Staged).expect("it exists"), added);
        let last = add_entry(&added, &name("c"), TemplateForm::Function).expect("it can be added");
        assert!(last.contains("make_b),\n    Entry::function::<qontract_integration_c::C>(),\n];"), "{last}");
    }

    #[test]
    fn a_list_that_cannot_be_parsed_is_an_error() {
        for text in
            [ENTRIES.replace("Entry::new", "new"), ENTRIES.replace("ALL", "SOME"), ENTRIES.replace("];", "]")]
        {
            assert!(add_entry(&text, &name("a"), TemplateForm::Staged).is_err(), "{text}");
        }
    }

    #[test]
    fn the_list_of_the_binary_can_be_parsed() {
        let list = include_str!("../../../crates/qontract/src/integrations.rs");
        let added = add_entry(list, &name("aa-first"), TemplateForm::Function).expect("it can be added");
        let first = "= &[\n    Entry::function::<qontract_integration_aa_first::AaFirst>(),\n    Entry::";
        assert!(added.contains(first), "{added}");
        assert_eq!(added.lines().count(), list.lines().count() + 1);
    }

    #[test]
    fn a_schema_is_listed_once() {
        let text = "name: a\n\nschemas:\n- /a.yml\n- /b.yml\n\nmanaged:\n- x\n";
        let listed = add_schema(text, "/c.yml").expect("it can be listed");
        assert_eq!(listed, "name: a\n\nschemas:\n- /a.yml\n- /b.yml\n- /c.yml\n\nmanaged:\n- x\n");
        assert_eq!(add_schema(&listed, "/c.yml").expect("it exists"), listed);
        assert!(add_schema("name: a\n", "/c.yml").is_err());
    }
}

//! The lists that name every room, with one more in them. An edit that is made already changes nothing.

use super::name::RoomName;
use crate::cli::Form;
use anyhow::{Context as _, Result, bail};

/// Makes one more room known to a file.
pub type Edit = fn(&str, &RoomName, Form) -> Result<String>;

/// The files that name every room.
pub const EDITS: [(&str, Edit); 3] = [
    ("Cargo.toml", |text, name, _| workspace(text, name)),
    ("crates/qontract/Cargo.toml", |text, name, _| binary(text, name)),
    ("crates/qontract/src/integrations.rs", entries),
];

/// The workspace's manifest: a path for the room's package.
fn workspace(text: &str, name: &RoomName) -> Result<String> {
    let line = format!("qontract-integration-{name} = {{ path = \"integrations/{name}\" }}");
    insert(text, &line, |line| line.starts_with("qontract-integration-"), Some("# the rooms"))
}

/// The binary's manifest: it needs the room's package.
fn binary(text: &str, name: &RoomName) -> Result<String> {
    let line = format!("qontract-integration-{name}.workspace = true");
    insert(text, &line, |line| line.starts_with("qontract-integration-"), Some("[dependencies]"))
}

/// The list of integrations: the room's package by a short name, and its entry.
fn entries(text: &str, name: &RoomName, form: Form) -> Result<String> {
    let (module, type_name) = (name.module(), name.type_name());
    let import = format!("use qontract_integration_{module} as {module};");
    let text = insert(text, &import, |line| line.starts_with("use qontract_integration_"), None)?;
    let (before, list) = text.split_once("pub const ALL: [Entry; ").context("it has no list `ALL`")?;
    let (count, list) = list.split_once("] = [\n").context("the list `ALL` does not begin as it should")?;
    let (list, after) = list.split_once("];").context("the list `ALL` has no end")?;
    let mut entries: Vec<(String, String)> = Vec::new();
    // The formatter puts a short entry on one line, so an entry is whatever begins with `Entry {`.
    for entry in list.split("    Entry {").skip(1).map(|entry| format!("    Entry {{{entry}")) {
        let about = entry.split_once("about: ").and_then(|(_, rest)| rest.split_once("::about"));
        let (known, _) = about.context("an entry of `ALL` does not say `about: ROOM::about`")?;
        entries.push((known.replace('_', "-"), entry));
    }
    if count.parse() != Ok(entries.len()) {
        bail!("the list `ALL` says that it has {count} entries and has {}", entries.len());
    }
    if entries.iter().all(|(known, _)| *known != name.to_string()) {
        let form = match form {
            Form::Staged => "staged",
            Form::Function => "function",
        };
        let entry = format!(
            "    Entry {{\n        about: {module}::about,\n        \
             make: |_| Ok(Room::{form}({module}::{type_name}::default())),\n    }},\n"
        );
        entries.push((name.to_string(), entry));
    }
    entries.sort();
    let count = entries.len();
    let list: String = entries.into_iter().map(|(_, entry)| entry).collect();
    Ok(format!("{before}pub const ALL: [Entry; {count}] = [\n{list}];{after}"))
}

/// An integration's definition that may read a schema.
pub fn allow(text: &str, schema: &str) -> Result<String> {
    let line = format!("- {schema}");
    if text.lines().any(|known| known == line) {
        return Ok(text.to_owned());
    }
    let head = "\nschemas:\n";
    let place = text.find(head).context("the definition has no list `schemas`")? + head.len();
    let length: usize =
        text[place..].split_inclusive('\n').take_while(|line| line.starts_with("- ")).map(str::len).sum();
    let (before, after) = text.split_at(place + length);
    Ok(format!("{before}{line}\n{after}"))
}

/// The text with a line more, in its order among the lines of its kind; the first of its kind comes behind `head`.
fn insert(text: &str, line: &str, is_kind: fn(&str) -> bool, head: Option<&str>) -> Result<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.contains(&line) {
        return Ok(text.to_owned());
    }
    let later = lines.iter().position(|known| is_kind(known) && *known > line);
    let after_last = lines.iter().rposition(|known| is_kind(known)).map(|index| index + 1);
    let after_head = || lines.iter().position(|known| Some(*known) == head).map(|index| index + 1);
    let place = later.or(after_last).or_else(after_head).context("it names no room: where does it go?")?;
    lines.insert(place, line);
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::{allow, binary, entries, workspace};
    use crate::cli::Form;

    const WORKSPACE: &str = "\
[workspace.dependencies]
serde = \"1\"

# the rooms
qontract-integration-b = { path = \"integrations/b\" }
qontract-integration-d = { path = \"integrations/d\" }

# data
";

    const LIST: &str = "\
use qontract_integration_a as a;
use qontract_integration_b as b;
use qontract_runtime::About;

pub const ALL: [Entry; 2] = [
    Entry { about: a::about, make: |_| Ok(Room::function(a::A::default())) },
    Entry {
        about: b::about,
        make: |targets| {
            Ok(Room::staged(b::B::new()))
        },
    },
];

fn rest() {}
";

    fn name(text: &str) -> super::RoomName {
        text.parse().expect("a name")
    }

    #[test]
    fn a_line_goes_where_it_belongs() {
        for (room, before) in [("a", "# the rooms"), ("c", "b\" }"), ("e", "d\" }")] {
            let text = workspace(WORKSPACE, &name(room)).expect("it can be added");
            let line =
                format!("{before}\nqontract-integration-{room} = {{ path = \"integrations/{room}\" }}\n");
            assert!(text.contains(&line), "{text}");
            assert_eq!(workspace(&text, &name(room)).expect("it is there"), text);
        }
    }

    #[test]
    fn the_first_room_of_a_list_has_a_place() {
        let text = binary("[package]\n\n[dependencies]\nserde.workspace = true\n", &name("a"));
        let expected =
            "[package]\n\n[dependencies]\nqontract-integration-a.workspace = true\nserde.workspace = true\n";
        assert_eq!(text.expect("it can be added"), expected);
        assert!(binary("nothing\n", &name("a")).is_err());
    }

    #[test]
    fn an_entry_goes_where_it_belongs() {
        let added = entries(LIST, &name("a-b"), Form::Staged).expect("it can be added");
        let expected = "\
use qontract_integration_a as a;
use qontract_integration_a_b as a_b;
use qontract_integration_b as b;
use qontract_runtime::About;

pub const ALL: [Entry; 3] = [
    Entry { about: a::about, make: |_| Ok(Room::function(a::A::default())) },
    Entry {
        about: a_b::about,
        make: |_| Ok(Room::staged(a_b::AB::default())),
    },
    Entry {
        about: b::about,
";
        assert!(added.starts_with(expected), "{added}");
        assert!(added.ends_with("];\n\nfn rest() {}\n"), "{added}");
        assert_eq!(entries(&added, &name("a-b"), Form::Staged).expect("it is there"), added);
        let last = entries(&added, &name("c"), Form::Function).expect("it can be added");
        assert!(last.contains("[Entry; 4]"), "{last}");
        assert!(last.contains("make: |_| Ok(Room::function(c::C::default())),\n    },\n];"), "{last}");
    }

    #[test]
    fn a_list_that_is_not_understood_is_left_alone() {
        for text in
            [LIST.replace("; 2]", "; 1]"), LIST.replace("about: ", "say: "), LIST.replace("ALL", "SOME")]
        {
            assert!(entries(&text, &name("a"), Form::Staged).is_err(), "{text}");
        }
    }

    #[test]
    fn a_schema_is_listed_once() {
        let text = "name: a\n\nschemas:\n- /a.yml\n- /b.yml\n\nmanaged:\n- x\n";
        let listed = allow(text, "/c.yml").expect("it can be listed");
        assert_eq!(listed, "name: a\n\nschemas:\n- /a.yml\n- /b.yml\n- /c.yml\n\nmanaged:\n- x\n");
        assert_eq!(allow(&listed, "/c.yml").expect("it is there"), listed);
        assert!(allow("name: a\n", "/c.yml").is_err());
    }
}

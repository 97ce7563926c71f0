//! The apt sources of this machine, with source packages enabled.
//!
//! Most machines have only binary packages enabled. Source packages are on the same mirrors, so every entry
//! is copied with its options and keys for both kinds of packages.

use crate::command::CommandLine;
use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// All entries of this machine, for both kinds of packages: the one-line entries, and the deb822 stanzas.
pub fn read_machine_sources() -> Result<(String, String)> {
    let paths =
        CommandLine::new("apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d");
    let paths = String::from_utf8(paths.output()?).context("the paths of apt are not UTF-8")?;
    let place = |name| shell_value(&paths, name).map(PathBuf::from);
    let mut files: Vec<PathBuf> = place("list").into_iter().collect();
    if let Some(folder) = place("parts")
        && let Ok(entries) = folder.read_dir()
    {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let (mut lines, mut stanzas) = (String::new(), String::new());
    for file in files.iter().filter(|file| file.is_file()) {
        let read = || fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        match extension(file) {
            "list" => lines.push_str(&add_source_lines(&read()?)),
            "sources" => stanzas.push_str(&add_source_types(&read()?)),
            _ => {}
        }
    }
    Ok((lines, stanzas))
}

fn extension(file: &Path) -> &str {
    file.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The value in `name='value'`, as `apt-config shell` writes it.
fn shell_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("='")?.strip_suffix('\''))
}

/// Adds a `deb-src` line to every line `deb OPTIONS URI SUITE COMPONENT…`.
fn add_source_lines(text: &str) -> String {
    let mut both = String::new();
    for line in text.lines() {
        let Some((kind, rest)) = line.trim().split_once([' ', '\t']) else { continue };
        let rest = rest.trim();
        // Discs are skipped. Existing `deb-src` lines are replaced by those that are made from `deb` lines.
        if kind == "deb" && !rest.contains("cdrom:") {
            let _ = writeln!(both, "deb {rest}\ndeb-src {rest}");
        }
    }
    both
}

/// Adds `deb-src` to the field `Types` of deb822 stanzas; all other fields are copied.
fn add_source_types(text: &str) -> String {
    let mut both = String::new();
    for line in text.lines() {
        match line.split_once(':') {
            Some((field, kinds)) if field.eq_ignore_ascii_case("types") => {
                let installs = kinds.split_whitespace().any(|kind| kind == "deb");
                let kinds = if installs { "deb deb-src" } else { kinds.trim() };
                let _ = writeln!(both, "{field}: {kinds}");
            }
            _ => {
                let _ = writeln!(both, "{line}");
            }
        }
    }
    both.push('\n');
    both
}

#[cfg(test)]
mod tests {
    use super::{add_source_lines, add_source_types, shell_value};

    fn check(derive: fn(&str) -> String, text: &str, expect: &str) {
        assert_eq!(derive(text), expect);
    }

    #[test]
    fn a_source_line_is_added_with_its_options() {
        check(
            add_source_lines,
            "# the mirror\n\ndeb [arch=amd64 signed-by=/k.gpg]  http://mirror.example/debian  bookworm main contrib\n",
            "deb [arch=amd64 signed-by=/k.gpg]  http://mirror.example/debian  bookworm main contrib\n\
             deb-src [arch=amd64 signed-by=/k.gpg]  http://mirror.example/debian  bookworm main contrib\n",
        );
    }

    #[test]
    fn sources_that_are_listed_are_not_listed_twice() {
        check(
            add_source_lines,
            "deb http://mirror.example/debian bookworm main\ndeb-src http://mirror.example/debian bookworm main\n",
            "deb http://mirror.example/debian bookworm main\ndeb-src http://mirror.example/debian bookworm main\n",
        );
    }

    #[test]
    fn discs_and_comments_are_skipped() {
        check(
            add_source_lines,
            "deb cdrom:[Debian 12]/ bookworm main\n# deb http://a.example b c\ndeb\n",
            "",
        );
    }

    #[test]
    fn only_the_types_of_stanzas_change() {
        check(
            add_source_types,
            "Types: deb\n# a remark\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n\
             Components: main\nSigned-By:\n -----BEGIN\n .\n abc\n\ntypes:   deb-src deb\nURIs: http://b.example\n",
            "Types: deb deb-src\n# a remark\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n\
             Components: main\nSigned-By:\n -----BEGIN\n .\n abc\n\ntypes: deb deb-src\nURIs: http://b.example\n\n",
        );
    }

    #[test]
    fn a_stanza_with_only_sources_is_unchanged() {
        check(
            add_source_types,
            "Types: deb-src\nURIs: http://b.example\n",
            "Types: deb-src\nURIs: http://b.example\n\n",
        );
    }

    #[test]
    fn the_paths_of_apt_are_read() {
        let text = "list='/etc/apt/sources.list'\nparts='/etc/apt/sources.list.d/'\n";
        assert_eq!(shell_value(text, "list"), Some("/etc/apt/sources.list"));
        assert_eq!(shell_value(text, "parts"), Some("/etc/apt/sources.list.d/"));
        assert_eq!(shell_value(text, "part"), None);
    }
}

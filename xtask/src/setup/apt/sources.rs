//! Where the machine gets its packages, and that it gets their sources from there, too.
//!
//! A machine that only installs has no sources set up. They lie where its packages are, so each entry is taken as it
//! is, with its options and keys, and for both kinds.

use crate::command::CommandLine;
use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// All entries of this machine, for both kinds: those of one line, and those in stanzas.
pub fn of_this_machine() -> Result<(String, String)> {
    let said = CommandLine::new("apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d");
    let said = String::from_utf8(said.output()?).context("the paths of apt are not UTF-8")?;
    let place = |name| assigned(&said, name).map(PathBuf::from);
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
            "list" => lines.push_str(&both_kinds_of_lines(&read()?)),
            "sources" => stanzas.push_str(&both_kinds_of_stanzas(&read()?)),
            _ => {}
        }
    }
    Ok((lines, stanzas))
}

fn extension(file: &Path) -> &str {
    file.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The value in `name='value'`, as `apt-config shell` writes it.
fn assigned<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("='")?.strip_suffix('\''))
}

/// `deb OPTIONS URI SUITE COMPONENT…`, one in a line.
fn both_kinds_of_lines(text: &str) -> String {
    let mut both = String::new();
    for line in text.lines() {
        let Some((kind, rest)) = line.trim().split_once([' ', '\t']) else { continue };
        let rest = rest.trim();
        // a disc is not there, and what has its sources listed already is listed with its packages
        if kind == "deb" && !rest.contains("cdrom:") {
            let _ = writeln!(both, "deb {rest}\ndeb-src {rest}");
        }
    }
    both
}

/// Stanzas of `Field: value`, apart by empty lines; only the field `Types` is written anew.
fn both_kinds_of_stanzas(text: &str) -> String {
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
    use super::{assigned, both_kinds_of_lines, both_kinds_of_stanzas};

    fn check(derive: fn(&str) -> String, text: &str, expect: &str) {
        assert_eq!(derive(text), expect);
    }

    #[test]
    fn a_line_is_doubled_with_its_options() {
        check(
            both_kinds_of_lines,
            "# the mirror\n\ndeb [arch=amd64 signed-by=/k.gpg]  http://mirror.example/debian  bookworm main contrib\n",
            "deb [arch=amd64 signed-by=/k.gpg]  http://mirror.example/debian  bookworm main contrib\n\
             deb-src [arch=amd64 signed-by=/k.gpg]  http://mirror.example/debian  bookworm main contrib\n",
        );
    }

    #[test]
    fn sources_that_are_listed_are_not_listed_twice() {
        check(
            both_kinds_of_lines,
            "deb http://mirror.example/debian bookworm main\ndeb-src http://mirror.example/debian bookworm main\n",
            "deb http://mirror.example/debian bookworm main\ndeb-src http://mirror.example/debian bookworm main\n",
        );
    }

    #[test]
    fn discs_and_remarks_are_passed_over() {
        check(
            both_kinds_of_lines,
            "deb cdrom:[Debian 12]/ bookworm main\n# deb http://a.example b c\ndeb\n",
            "",
        );
    }

    #[test]
    fn stanzas_keep_all_but_their_types() {
        check(
            both_kinds_of_stanzas,
            "Types: deb\n# a remark\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n\
             Components: main\nSigned-By:\n -----BEGIN\n .\n abc\n\ntypes:   deb-src deb\nURIs: http://b.example\n",
            "Types: deb deb-src\n# a remark\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n\
             Components: main\nSigned-By:\n -----BEGIN\n .\n abc\n\ntypes: deb deb-src\nURIs: http://b.example\n\n",
        );
    }

    #[test]
    fn a_stanza_of_sources_alone_stays_one() {
        check(
            both_kinds_of_stanzas,
            "Types: deb-src\nURIs: http://b.example\n",
            "Types: deb-src\nURIs: http://b.example\n\n",
        );
    }

    #[test]
    fn the_places_of_apt_are_read() {
        let said = "list='/etc/apt/sources.list'\nparts='/etc/apt/sources.list.d/'\n";
        assert_eq!(assigned(said, "list"), Some("/etc/apt/sources.list"));
        assert_eq!(assigned(said, "parts"), Some("/etc/apt/sources.list.d/"));
        assert_eq!(assigned(said, "part"), None);
    }
}

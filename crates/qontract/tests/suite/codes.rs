//! Tests that the example of each code reports that code and no other error.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::support::command;
use qontract_diagnostics::code::{CodeEntry, TABLE};
use qontract_testkit::{Scratch, example};

#[test]
fn the_base_repo_of_the_examples_has_no_findings() {
    let scratch = base();
    let output = command::qontract(scratch.path(), &["validate", ".", "--formats"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no findings\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_example_of_every_code_reports_that_code() {
    for CodeEntry { code, text, .. } in TABLE {
        // Some examples need more than the small repo contains.
        let is_full = text.contains("\nIn `examples/app-interface`");
        let scratch = if is_full { Scratch::copy_of(&example()) } else { base() };
        lay_out(text, &scratch);
        let formats: &[&str] = if is_full { &[] } else { &["--formats"] };
        let output = command::qontract(scratch.path(), &[&["validate", "."], formats].concat());
        let stdout = String::from_utf8_lossy(&output.stdout);
        let mut reported: Vec<&str> = stdout
            .lines()
            .filter_map(|line| line.strip_prefix("error[").or_else(|| line.strip_prefix("warning[")))
            .filter_map(|rest| rest.split(']').next())
            .collect();
        reported.dedup();
        assert_eq!(
            reported,
            [code.to_string()],
            "{code}: {stdout}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn base() -> Scratch {
    Scratch::copy_of(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/code-examples-repo")))
}

/// Writes the files of the fenced blocks of an example: the fence names the kind of the block and its file.
fn lay_out(text: &str, scratch: &Scratch) {
    let example =
        text.split("## Example").nth(1).expect("an example").split("\n## ").next().unwrap_or_default();
    let mut blocks = 0;
    let mut rest = example;
    while let Some((_, after)) = rest.split_once("```") {
        let (fence, after) = after.split_once('\n').expect("a fence ends its line");
        let (body, after) = after.split_once("```").expect("a fence is closed");
        let (kind, file) = fence.split_once(' ').expect("a fence names its kind and its file");
        make(kind, file, body, scratch);
        blocks += 1;
        rest = after;
    }
    assert!(blocks > 0, "an example has a block");
}

fn make(kind: &str, file: &str, body: &str, scratch: &Scratch) {
    match kind {
        "link" => {
            let _ = std::fs::remove_file(scratch.path().join(file));
            scratch.link(file, body.trim());
        }
        "bytes" => drop(scratch.write(file, hex(body))),
        "bytes-name" => {
            let name = hex(body);
            let path = scratch.path().join(file).join(std::ffi::OsStr::from_bytes(&name));
            std::fs::write(path, "name: x\n").expect("a file with an odd name");
        }
        "yaml-escaped" => {
            let text: String =
                serde_json::from_str(&format!("\"{}\"", body.trim().replace("\\x07", "\\u0007")))
                    .expect("an escaped text");
            scratch.write(file, text);
        }
        "generated" if body.trim() == "folder nested 65 deep" => {
            let (folder, name) = file.split_once('/').expect("a file in a folder");
            drop(scratch.write(&format!("{folder}/{}{name}", "d/".repeat(64)), "name: core\n"));
        }
        "generated" => drop(scratch.write(file, generated(body.trim()))),
        _ => drop(scratch.write(file, body)),
    }
}

fn hex(body: &str) -> Vec<u8> {
    body.split_whitespace().map(|digits| u8::from_str_radix(digits, 16).expect("two digits")).collect()
}

/// Generates content that is too large to write down.
fn generated(what: &str) -> String {
    let head = "$schema: /access/team-1.yml\nname: core\n";
    match what {
        "scalar of 9 MiB" => format!("{head}contact: {}\n", "x".repeat(9 << 20)),
        "list nested 1000 deep" => format!("{head}deep: {}{}\n", "[".repeat(1000), "]".repeat(1000)),
        "alias bomb" => {
            let mut text = format!("{head}a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
            for level in 1..9 {
                let inner = vec![format!("*a{}", level - 1); 10].join(", ");
                text.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
            }
            text
        }
        other => panic!("nothing known about {other:?}"),
    }
}

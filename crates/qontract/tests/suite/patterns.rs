//! Runs every command of `docs/patterns.md`, which prints the line below it, and shows that a run of several shards is one process whose failed
//! shard is named.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};

/// The page, and the example where its commands expect it.
fn page() -> (String, Scratch) {
    let root = example().ancestors().nth(2).unwrap().to_owned();
    let scratch = Scratch::new();
    scratch.copy(&example(), "examples/app-interface");
    (std::fs::read_to_string(root.join("docs/patterns.md")).unwrap(), scratch)
}

/// The commands of the page, each with the line that it prints.
fn commands(page: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = page.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| {
        let command = pair[0].strip_prefix("    qontract ")?;
        let printed = pair[1].strip_prefix("    # prints: ");
        Some((
            command,
            printed.unwrap_or_else(|| panic!("`{command}` is not followed by a line that it prints")),
        ))
    });
    pairs.collect()
}

fn check_command(scratch: &Scratch, (command, expected): (&str, &str)) {
    let words: Vec<&str> = command.split(' ').collect();
    let output = qontract(scratch.path(), &words);
    let text = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat();
    assert_eq!(output.status.code(), Some(0), "{command}: {text}");
    let is_expected = |line: &str| match expected.split_once('…') {
        Some((start, end)) => line.starts_with(start) && line.ends_with(end),
        None => line == expected,
    };
    assert!(text.lines().any(is_expected), "{command} does not print `{expected}`: {text}");
}

/// Whether a command needs the program of the page.
fn needs_program((command, _): &(&str, &str)) -> bool {
    command.contains("--config config.toml")
}

#[test]
fn each_command_of_the_page_prints_the_line_below_it() {
    let (page, scratch) = page();
    let commands = commands(&page);
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands.into_iter().filter(|command| !needs_program(command)) {
        check_command(&scratch, command);
    }
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn the_program_of_the_page_declares_objects_of_two_callers() {
    let (page, scratch) = page();
    for (language, file) in [
        ("python", "team_settings.py"),
        ("yaml", "examples/app-interface/data/integrations/team-settings.yml"),
        ("toml", "config.toml"),
    ] {
        let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
        let (block, _) = rest.split_once("```\n").unwrap();
        assert!(page.contains(&format!("`{file}`")), "{file}");
        scratch.write(file, block);
    }
    let all = commands(&page);
    let own: Vec<_> = all.into_iter().filter(needs_program).collect();
    assert_eq!(own.len(), 1);
    check_command(&scratch, own[0]);
    // Both are written, and then nothing is left to do.
    let real = |name: &str| {
        let words = format!(
            "reconcile {name} --data examples/app-interface --sandbox sandbox --config config.toml --runs runs"
        );
        let output = qontract(scratch.path(), &words.split(' ').collect::<Vec<_>>());
        let text = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat();
        assert_eq!(output.status.code(), Some(0), "{text}");
        text
    };
    real("openshift-namespaces");
    assert!(real("team-settings").contains("caller=search"));
    assert!(real("team-settings").contains("nothing to change"));
}

#[test]
fn a_failed_shard_is_named_and_the_others_are_finished() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let reconcile = |name: &str| {
        let words = format!("reconcile {name} --data repo --sandbox sandbox --runs runs");
        qontract(scratch.path(), &words.split(' ').collect::<Vec<_>>())
    };
    assert!(reconcile("openshift-namespaces").status.success());
    let broken = "sandbox/clusters/cliffs-stage/catalog-stage/LimitRange/default.yaml";
    scratch.write(broken, "a: [\n");
    let output = reconcile("openshift-limitranges");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let named = "error: cannot read `cluster=cliffs-stage, namespace=catalog-stage, kind=LimitRange`";
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains(named), "{printed}");
    assert!(printed.contains("7 steps done; 1 error"), "the others are finished: {printed}");
    scratch.remove(broken);
    assert!(reconcile("openshift-limitranges").status.success());
    let again = reconcile("openshift-limitranges");
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to change"));
}

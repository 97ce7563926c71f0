//! Runs the commands of `docs/guides/first-steps.md` as written.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::process::Command;

use crate::support::command::qontract;
use crate::support::terminal::Terminal;
use qontract_testkit::{Scratch, example};

/// The page.
struct Page(String);

impl Page {
    fn read() -> Self {
        let root = example().ancestors().nth(2).unwrap().to_owned();
        Self(std::fs::read_to_string(root.join("docs/guides/first-steps.md")).unwrap())
    }

    /// The commands of a section, as words behind `cargo run --release --`.
    fn commands(&self, section: &str) -> Vec<Vec<String>> {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect();
        self.lines(section)
            .filter_map(|line| line.strip_prefix("cargo run --release -- "))
            .map(words)
            .collect()
    }

    /// The indented lines of a section.
    fn lines<'a>(&'a self, section: &str) -> impl Iterator<Item = &'a str> {
        let (_, text) = self.0.split_once(&format!("## {section}\n")).unwrap();
        let text = text.split("\n## ").next().unwrap();
        text.lines().filter_map(|line| line.strip_prefix("    "))
    }

    /// Asserts that the page contains a string, and returns it.
    fn tells<'t>(&self, text: &'t str) -> &'t str {
        assert!(self.0.contains(text), "the page no longer contains `{text}`");
        text
    }
}

fn clone() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "examples/app-interface");
    scratch
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn from_a_clone_to_an_edit_that_changes_the_sandbox() {
    let (page, scratch) = (Page::read(), clone());
    let start = &page.commands("Start it")[0];
    let mut terminal = Terminal::run(scratch.path(), &refs(start));
    terminal.until("+ create Namespace `billing-stage`");
    // Skipped the first time, when the sandbox does not exist yet.
    terminal.until("INFO   \x1b[0m ~ label Namespace `catalog-stage`");
    terminal.until("ok        \x1b[0mopenshift-namespace-labels");
    let look: Vec<&str> = page.lines("Start it").last().unwrap().split(' ').collect();
    let shown = Command::new(look[0]).args(&look[1..]).current_dir(scratch.path()).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains("tier: edge"));

    let file = page.tells("examples/app-interface/data/services/catalog/namespaces/catalog-stage.yml");
    let (before, after) = (page.tells("tier: edge"), page.tells("tier: core"));
    let good = scratch.read(file);
    scratch.write(file, good.replace(before, after));
    terminal.until(page.tells("the data changed"));
    terminal.until(page.tells("~ label Namespace `catalog-stage`"));
    assert!(scratch.read(look[1]).contains(after));

    scratch
        .write(file, good.replace("{$ref: /services/catalog/app.yml}", "{$ref: /services/catalog/app.yml"));
    terminal.until(page.tells("still reconciling bundle"));
    scratch.write(file, good);
    terminal.until("~ label Namespace `catalog-stage`");
    assert_eq!(terminal.interrupt(), Some(0));

    for words in page.commands("Preview changes") {
        let output = qontract(scratch.path(), &refs(&words));
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {printed}");
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn the_guide_works_on_a_real_cluster() {
    let (page, scratch, api) = (Page::read(), clone(), qontract_testkit::cluster::shared());
    let file = page.tells("examples/app-interface/data/clusters/cliffs-stage.yml");
    let address = page.tells("serverUrl: https://api.cliffs-stage.example.com:6443");
    scratch.write(file, scratch.read(file).replace(address, &format!("serverUrl: {}", api.url)));
    let (_, toml) = page.0.split_once("```toml\n").unwrap();
    let toml = toml.split("```").next().unwrap();
    std::fs::copy(&api.ca, scratch.path().join("cliffs-stage.pem")).unwrap();
    scratch.write("cluster.toml", toml.replace("\"…\"", &format!("{:?}", api.token)));
    let commands = page.commands("A real cluster");
    let run = |words: &[String], folder: &Path| {
        let output = qontract(folder, &[refs(words), vec!["--runs", "runs"]].concat());
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), printed)
    };
    let names = ["billing-stage", "catalog-stage", "checkout-stage"];
    let remove = || {
        for name in names {
            api.kubectl(&["delete", "namespace", name, "--ignore-not-found", "--wait=false"], "").text();
        }
        qontract_testkit::eventually("the namespaces are gone", || {
            let left = api.kubectl(&["get", "namespaces", "--output", "name"], "").text();
            (!names.iter().any(|name| left.contains(name))).then_some(())
        });
    };
    remove();
    let (code, plan, printed) = run(&commands[0], scratch.path());
    assert!(code == Some(0) && plan.contains("+ create Namespace `catalog-stage`"), "{plan}{printed}");
    let (code, plan, printed) = run(&commands[1], scratch.path());
    assert!(code == Some(0) && plan.contains("+ create Namespace `catalog-stage`"), "{plan}{printed}");
    let (code, plan, printed) = run(&commands[1], scratch.path());
    assert_eq!((code, plan.as_str()), (Some(0), ""), "{printed}");
    remove();
}

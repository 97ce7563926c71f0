//! Makes the Rust types for every `query.graphql` below a folder: `generate ROOT [--check]`. With `--check` nothing is
//! written, and what would change is an error. Every request is also checked against the public schemas, where they
//! are present.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use qontract_bundle::{Layout, Pool, Repo, Stamp, build};
use qontract_graphql::{Schema, generate};
use qontract_testkit::{Scratch, example, public_schemas};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let check = words.iter().any(|word| word == "--check");
    let Some(root) = words.iter().find(|word| !word.starts_with("--")) else {
        say("usage: generate ROOT [--check]");
        return ExitCode::from(2);
    };
    match run(Path::new(root), check) {
        Ok(count) => {
            say(&format!("generate: {count} requests, all types up to date"));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            say(&format!("error: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, check: bool) -> Result<usize, String> {
    let mut requests = Vec::new();
    for folder in ["crates", "clients", "integrations"] {
        find(&root.join(folder), &mut requests);
    }
    requests.sort();
    let schema = schema_of(&example())?;
    let public = match public_schemas() {
        None => {
            say("SKIPPED: the public schemas are not beside the checkout");
            None
        }
        Some(folder) => {
            let scratch = Scratch::copy_of(&example());
            let types =
                fs::read(folder.join("graphql-schemas/schema.yml")).map_err(|error| error.to_string())?;
            scratch.write("graphql-schemas/schema.yml", types);
            Some(schema_of(scratch.path())?)
        }
    };
    for request in &requests {
        let text = fs::read_to_string(request).map_err(|error| format!("{}: {error}", request.display()))?;
        let made = |schema: &Schema, which: &str| {
            generate::rust(schema, &text).map_err(|failures| {
                let messages: Vec<String> = failures.iter().map(|failure| failure.message.clone()).collect();
                format!("{} does not fit {which}: {}", request.display(), messages.join("; "))
            })
        };
        let source = formatted(&made(&schema, "the example's types")?)?;
        if let Some(public) = &public {
            made(public, "the public types")?;
        }
        let target = request.with_extension("rs");
        if fs::read_to_string(&target).is_ok_and(|known| known == source) {
            continue;
        }
        if check {
            return Err(format!("{} is out of date: run `cargo xtask generate`", target.display()));
        }
        fs::write(&target, source).map_err(|error| format!("{}: {error}", target.display()))?;
        say(&format!("wrote {}", target.display()));
    }
    Ok(requests.len())
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, found);
        } else if path.file_name().is_some_and(|name| name == "query.graphql") {
            found.push(path);
        }
    }
}

fn schema_of(folder: &Path) -> Result<Schema, String> {
    let repo = Repo::directory(folder, Layout::default());
    let outcome = build(&repo, Stamp::default(), &Pool::default()).map_err(|error| error.to_string())?;
    let built = outcome.built.ok_or("the example cannot be bundled")?;
    Schema::build(&built.graphql().value).map_err(|error| error.to_string())
}

/// The source as rustfmt writes it.
fn formatted(source: &str) -> Result<String, String> {
    use std::io::Write as _;
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path", config])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("rustfmt: {error}"))?;
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(source.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    match written {
        Some(Ok(())) if output.status.success() => {
            String::from_utf8(output.stdout).map_err(|error| error.to_string())
        }
        _ => Err("rustfmt does not take the generated source".to_owned()),
    }
}

#[expect(clippy::print_stderr, reason = "a command says what it did")]
fn say(line: &str) {
    eprintln!("{line}");
}

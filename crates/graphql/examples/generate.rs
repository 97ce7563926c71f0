//! Generates the Rust types for every `query.graphql` and `optional/*.graphql` below a folder, and for the
//! fragments that they share (`fragments/*.graphql`): `generate ROOT [--check]`. With `--check` nothing is written,
//! and outdated types are an error. Every request is also validated against the public schemas, where they are
//! present, except for requests in `optional/`, which are only executed if the data has all of their fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build};
use qontract_graphql::generate::{self, RequestFile, SharedFragments};
use qontract_graphql::{Failure, Schema};
use qontract_testkit::{Scratch, example, public_schemas};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let check = words.iter().any(|word| word == "--check");
    let Some(root) = words.iter().find(|word| !word.starts_with("--")) else {
        print_line("usage: generate ROOT [--check]");
        return ExitCode::from(2);
    };
    match run(Path::new(root), check) {
        Ok(count) => {
            print_line(&format!("generate: {count} requests, all types up to date"));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            print_line(&format!("error: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, check: bool) -> Result<usize, String> {
    let mut files = Vec::new();
    for folder in ["crates", "clients", "integrations"] {
        find(&root.join(folder), &mut files);
    }
    files.sort();
    let (requests, fragments): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| !is_in(file, "fragments"));
    let shared = shared(&fragments)?;
    let mut schemas = vec![("the example's types", schema_of(&example())?)];
    match public_schemas() {
        None => print_line("SKIPPED: the public schemas are not next to the checkout"),
        Some(folder) => {
            let scratch = Scratch::copy_of(&example());
            let types =
                fs::read(folder.join("graphql-schemas/schema.yml")).map_err(|error| error.to_string())?;
            scratch.write("graphql-schemas/schema.yml", types);
            schemas.push(("the public types", schema_of(scratch.path())?));
        }
    }
    let mut sources: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut spread = BTreeSet::new();
    for request in &requests {
        let (text, package) = (read(request)?, package(request)?);
        spread.extend(shared.needed_by(&text)?.into_iter().map(|fragment| fragment.name.clone()));
        let name = request.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        // The example's types come first, and have every field.
        let schemas = if is_in(request, "optional") { &schemas[..1] } else { &schemas };
        let source = generate_source(request, schemas, |schema| {
            generate::query(schema, RequestFile { name: &name, text: &text }, &shared, &package)
        })?;
        sources.insert(request.with_extension("rs"), source);
    }
    for file in &fragments {
        let folder = file.parent().unwrap_or(file);
        let package = package(file)?;
        let source =
            generate_source(folder, &schemas, |schema| generate::fragments(schema, &shared, &package))?;
        sources.insert(folder.with_extension("rs"), source);
    }
    if let Some(unused) = shared.iter().find(|fragment| !spread.contains(&fragment.name)) {
        return Err(format!("no request spreads the fragment `{}`", unused.name));
    }
    for (target, source) in sources {
        let source = formatted(&source)?;
        if fs::read_to_string(&target).is_ok_and(|known| known == source) {
            continue;
        }
        if check {
            return Err(format!("{} is out of date: run `cargo xtask generate`", target.display()));
        }
        fs::write(&target, source).map_err(|error| format!("{}: {error}", target.display()))?;
        print_line(&format!("wrote {}", target.display()));
    }
    Ok(requests.len())
}

/// The source for the first schema; it must be valid for the others, too.
fn generate_source(
    what: &Path,
    schemas: &[(&str, Schema)],
    make: impl Fn(&Schema) -> Result<String, Vec<Failure>>,
) -> Result<String, String> {
    let mut sources = Vec::new();
    for (name, schema) in schemas {
        sources.push(make(schema).map_err(|failures| {
            let messages: Vec<String> = failures.iter().map(|failure| failure.message.clone()).collect();
            format!("{} does not fit {name}: {}", what.display(), messages.join("; "))
        })?);
    }
    Ok(sources.swap_remove(0))
}

/// The fragments of these files.
fn shared(files: &[PathBuf]) -> Result<SharedFragments, String> {
    let mut shared = SharedFragments::default();
    for file in files {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        shared.add(read(file)?, name, package(file)?)?;
    }
    Ok(shared)
}

/// The crate that a file belongs to, as code names it.
fn package(file: &Path) -> Result<String, String> {
    let manifest = file.ancestors().map(|folder| folder.join("Cargo.toml")).find(|path| path.is_file());
    let manifest =
        read(&manifest.ok_or_else(|| format!("{} does not belong to a package", file.display()))?)?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(|name| name.replace('-', "_"))
        .ok_or_else(|| format!("{}: the package has no name", file.display()))
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Whether a file is in a folder of this name.
fn is_in(file: &Path, folder: &str) -> bool {
    file.parent().and_then(Path::file_name).is_some_and(|name| name == folder)
}

/// Finds requests, and the fragments in `fragments` folders.
fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_graphql = path.extension().is_some_and(|ending| ending == "graphql");
        let is_request = path.file_name().is_some_and(|name| name == "query.graphql");
        if path.is_dir() {
            find(&path, found);
        } else if is_request || is_graphql && (is_in(&path, "fragments") || is_in(&path, "optional")) {
            found.push(path);
        }
    }
}

fn schema_of(folder: &Path) -> Result<Schema, String> {
    let repo = Repo::directory(folder, Layout::default());
    let outcome =
        build(&repo, CommitStamp::default(), &Pool::default()).map_err(|error| error.to_string())?;
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
        _ => Err("rustfmt rejects the generated source".to_owned()),
    }
}

#[expect(clippy::print_stderr, reason = "a command reports what it did")]
fn print_line(line: &str) {
    eprintln!("{line}");
}

//! Writes a corpus to disk: `corpus --out DIR --datafiles N [--schemas DIR] [--seed S]`.

use qontract_benches::corpus::{self, DEFAULT_SEED, MIN_DATAFILES};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: corpus --out DIR --datafiles N [--schemas DIR] [--seed S]

  --out DIR        a directory without `data` and `resources`; created if it is missing
  --datafiles N    number of datafiles
  --schemas DIR    directory with `schemas` and `graphql-schemas` [default: the example of this checkout]
  --seed S         seed; the same seed gives the same bytes";

struct CorpusArguments {
    out: PathBuf,
    datafiles: usize,
    schemas: PathBuf,
    seed: u64,
}

fn parse(words: impl Iterator<Item = String>) -> Result<CorpusArguments, String> {
    let (mut out, mut datafiles, mut seed) = (None, None, DEFAULT_SEED);
    let mut schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface");
    let mut words = words;
    while let Some(flag) = words.next() {
        let mut value = || words.next().ok_or(format!("`{flag}` needs a value"));
        match flag.as_str() {
            "--out" => out = Some(PathBuf::from(value()?)),
            "--schemas" => schemas = PathBuf::from(value()?),
            "--datafiles" => datafiles = Some(number(&flag, &value()?)?),
            "--seed" => seed = number(&flag, &value()?)?,
            _ => return Err(format!("unknown argument `{flag}`")),
        }
    }
    let datafiles = datafiles.ok_or("`--datafiles` is missing")?;
    if datafiles < MIN_DATAFILES {
        return Err(format!(
            "`--datafiles` must be at least {MIN_DATAFILES}, for one document of every kind"
        ));
    }
    Ok(CorpusArguments { out: out.ok_or("`--out` is missing")?, datafiles, schemas, seed })
}

fn number<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{flag}` takes a number, not `{text}`"))
}

fn run(arguments: &CorpusArguments) -> io::Result<String> {
    let CorpusArguments { out, datafiles, schemas, seed } = arguments;
    for folder in ["data", "resources"] {
        if out.join(folder).exists() {
            let text = format!("`{}` already has a directory `{folder}`", out.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
    }
    let tree = corpus::generate(*datafiles, *seed);
    tree.write(out)?;
    for folder in ["schemas", "graphql-schemas"] {
        copy(&schemas.join(folder), &out.join(folder))?;
    }
    let resources = tree.under("resources/").count();
    Ok(format!(
        "{datafiles} datafiles, {resources} resources, {} bytes, fingerprint {:016x}",
        tree.bytes(),
        tree.fingerprint()
    ))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let entries = fs::read_dir(from)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", from.display())))?;
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result and its errors")]
fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

//! How long bundling takes, beside the least that a bundler in Python has to do, on the same files in one run.
//!
//! `cargo xtask bench bundle` prints a Markdown table: medians of three runs each, wall and CPU seconds.
//! `QONTRACT_BENCH_SIZES=1000,10000,50000` chooses the sizes.

#[path = "measure.rs"]
mod measure;

use std::path::Path;

use measure::{Measured, median, run};
use qontract_benches::corpus;

fn main() {
    let sizes = std::env::var("QONTRACT_BENCH_SIZES").unwrap_or_else(|_| "1000,10000".to_owned());
    measure::say("| datafiles | source MB | bundle MB | step | wall s | CPU s | peak MB |");
    measure::say("|---|---|---|---|---|---|---|");
    for size in
        sizes.split(',').map(|size| size.trim().parse().expect("QONTRACT_BENCH_SIZES is a list of numbers"))
    {
        measure_size(size);
    }
}

fn measure_size(size: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path().join("repo");
    let tree = corpus::generate(size, corpus::DEFAULT_SEED);
    let source = tree.bytes() as u64;
    tree.write(&repo).expect("the corpus can be written");
    for part in ["schemas", "graphql-schemas"] {
        measure::copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface").join(part),
            &repo.join(part),
        );
    }
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (repo, ours, theirs) = (path("repo"), path("ours.json"), path("theirs.json"));
    let binary = measure::binary("qontract");
    let python = std::env::var("QONTRACT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let peer = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/bundle/peer.py");

    let stamp = ["--commit", "c", "--commit-timestamp", "1"];
    let bundling = median(|| run(&binary, &[&["bundle", &repo, "-o", &ours][..], &stamp].concat()));
    let loading = median(|| run(&binary, &["diff", &ours, &ours]));
    let parsing = median(|| run(&python, &[peer, &repo, &theirs]));

    let megabytes = |bytes: u64| format!("{}.{}", bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    let bundle = std::fs::metadata(&ours).map_or(0, |file| file.len());
    let row = |step: &str, Measured { wall, cpu, peak }: Measured| {
        let (source, bundle) = (megabytes(source), megabytes(bundle));
        measure::say(&format!(
            "| {size} | {source} | {bundle} | {step} | {wall:.2} | {cpu:.2} | {} |",
            peak / 1000
        ));
    };
    row("`qontract bundle`", bundling);
    row("`qontract diff` of the bundle with itself (two loads)", loading);
    row("PyYAML + json: parse and dump only", parsing);
}

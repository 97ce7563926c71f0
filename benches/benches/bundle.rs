//! Time to bundle and validate, compared with Python on the same files in the same run.
//!
//! `cargo xtask bench bundle` prints Markdown tables: medians of three runs, wall and CPU seconds. It fails
//! if 50,000 datafiles cost more than promised. `QONTRACT_BENCH_SIZES=1000,10000,50000` sets the sizes.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "measure.rs"]
mod measure;
#[path = "served.rs"]
mod served;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use measure::{CommandMeasurement, median, run, run_with};
use qontract_benches::corpus;
use served::ServerProcess;

/// Time after the last write until the build cache trusts the stat signature of a file.
const SETTLE_TIME: Duration = Duration::from_millis(2_500);

fn main() {
    let sizes = std::env::var("QONTRACT_BENCH_SIZES").unwrap_or_else(|_| "1000,10000".to_owned());
    let mut missed = Vec::new();
    for size in
        sizes.split(',').map(|size| size.trim().parse().expect("QONTRACT_BENCH_SIZES is a list of numbers"))
    {
        measure_size(size, &mut missed);
    }
    assert!(missed.is_empty(), "more than promised:\n{}", missed.join("\n"));
}

/// A generated data repo.
struct Corpus {
    repo: PathBuf,
    /// Its datafiles.
    files: Vec<PathBuf>,
    /// Number of changes so far.
    changes: Cell<usize>,
}

impl Corpus {
    fn new(size: usize, repo: PathBuf) -> Self {
        let tree = corpus::generate(size, corpus::DEFAULT_SEED);
        tree.write(&repo).expect("the corpus can be written");
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface");
        for part in ["schemas", "graphql-schemas"] {
            measure::copy(&example.join(part), &repo.join(part));
        }
        let files = tree.under("data/").map(|(path, _)| repo.join(path));
        let files: Vec<PathBuf> = files.collect();
        assert!(files.iter().all(|file| file.is_file()), "{:?}", files.first());
        Self { repo, files, changes: Cell::new(0) }
    }

    /// Changes one datafile, another one each time, spread over all data.
    fn change(&self) {
        let change = self.changes.replace(self.changes.get() + 1);
        let file = &self.files[(change * 7919 + 17) % self.files.len()];
        let text = fs::read_to_string(file).expect("a datafile");
        fs::write(file, format!("{text}# changed {change}\n")).expect("a datafile");
    }
}

fn measure_size(size: usize, missed: &mut Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let corpus = Corpus::new(size, folder.path().join("repo"));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (repo, ours, theirs, cache) = (path("repo"), path("ours.json"), path("theirs.json"), path("cache"));
    let binary = measure::binary("qontract");
    let python = std::env::var("QONTRACT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let peer = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/bundle/peer.py");

    let stamp = ["--commit", "c", "--commit-timestamp", "1"];
    let arguments = [&["bundle", &repo, "-o", &ours][..], &stamp].concat();
    let (off, cached) = ([("QONTRACT_CACHE", "off")], [("QONTRACT_CACHE", cache.as_str())]);
    let cold = median(|| run_with(&binary, &arguments, &off));
    let unchecked = median(|| run_with(&binary, &[&arguments[..], &["--no-validate"]].concat(), &off));
    let keeping = median(|| {
        let _ = fs::remove_dir_all(&cache);
        run_with(&binary, &arguments, &cached)
    });
    // The stat signatures of files are trusted only some time after they were written.
    std::thread::sleep(SETTLE_TIME);
    run_with(&binary, &arguments, &cached);
    let again = median(|| {
        corpus.change();
        std::thread::sleep(Duration::from_millis(100));
        run_with(&binary, &arguments, &cached)
    });
    let loading = median(|| run(&binary, &["diff", &ours, &ours]));
    // Larger sizes are measured without the peer.
    let has_peer = size <= 50_000;
    let parsing = has_peer.then(|| median(|| run(&python, &[peer, &repo, &theirs])));
    let checking = has_peer.then(|| median(|| run(&python, &[peer, &repo, &theirs, "check"])));
    let watching = watch(&corpus);

    let bundle = fs::metadata(&ours).map_or(0, |file| file.len());
    measure::print_line(&format!("\n## {size} datafiles, a bundle of {:.1} MB\n", bundle as f64 / 1e6));
    measure::print_line("| step | wall s | CPU s | peak MB | MB from the disk |");
    measure::print_line("|---|---|---|---|---|");
    for (step, measured) in [
        ("`qontract bundle`, no cache", Some(cold)),
        ("`qontract bundle --no-validate`, no cache", Some(unchecked)),
        ("`qontract bundle`, filling an empty cache", Some(keeping)),
        ("a new process, one datafile changed", Some(again)),
        ("`qontract diff` of the bundle with itself (two loads)", Some(loading)),
        ("PyYAML + json: parse and dump only", parsing),
        ("PyYAML + json + jsonschema: parse, dump, and validate datafiles", checking),
    ] {
        let Some(CommandMeasurement { wall, cpu, peak, disk_bytes: fetched }) = measured else { continue };
        let (peak, fetched) = (peak / 1000, fetched / 1_000_000);
        measure::print_line(&format!("| {step} | {wall:.2} | {cpu:.2} | {peak} | {fetched} |"));
    }
    measure::print_line("");
    let is_promised = size == 50_000;
    let mut promise = |holds, what| measure::check_promise(missed, is_promised, holds, what);
    promise(cold.wall <= 3.0, format!("cold: {:.2} s, 3 s promised", cold.wall));
    promise(cold.cpu <= 5.0, format!("cold: {:.2} s of CPU, 5 s promised", cold.cpu));
    let times = cold.peak as f64 * 1024.0 / bundle as f64;
    promise(times <= 3.0, format!("cold: {times:.2} times the bundle in memory, 3 promised"));
    promise(
        again.wall <= 1.0,
        format!("one datafile changed, a new process: {:.2} s, 1 s promised", again.wall),
    );
    promise(
        watching <= 0.3,
        format!("one datafile changed, `serve --watch`: {watching:.2} s, 0.3 s promised"),
    );
}

/// Seconds from the change of a datafile until `serve --watch` serves it: the median of five.
fn watch(corpus: &Corpus) -> f64 {
    let repo = corpus.repo.display().to_string();
    let server = ServerProcess::ours(&["--watch", &repo]);
    let mut client = server.connect();
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            std::thread::sleep(SETTLE_TIME);
            let before = client.get("/sha256");
            corpus.change();
            let begun = Instant::now();
            while client.get("/sha256") == before {
                assert!(begun.elapsed() < Duration::from_mins(1), "the change is not served within a minute");
                std::thread::sleep(Duration::from_millis(2));
            }
            begun.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

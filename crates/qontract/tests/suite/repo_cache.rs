//! Tests that the on-disk cache of large data repos changes the duration of a command, but never its result.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use qontract_testkit::{Scratch, vectors};

/// Runs a command line in the data repo, with the cache in `cache`.
fn run(repo: &Path, cache: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(repo).args(arguments).env("QONTRACT_CACHE", cache).env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Bundles the data repo, with the cache in `cache`.
fn bundle(repo: &Path, cache: &str) -> Output {
    run(repo, cache, &["bundle", "."])
}

/// The recorded data repo with very many teams.
fn large() -> Scratch {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    for number in 0..2_000 {
        let text = format!("$schema: /tiny/team-1.yml\nname: team-{number}\n");
        scratch.write(&format!("data/teams/{}/{number}.yml", number % 20), text);
    }
    scratch
}

/// With and without the cache, the bundle and the output are the same.
#[track_caller]
fn check(repo: &Path, cache: &Path, good: bool) {
    let (warm, cold) = (bundle(repo, cache.to_str().unwrap()), bundle(repo, "off"));
    let seen = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(cold.status.success(), good, "{}", seen(&cold));
    assert_eq!((warm.status, seen(&warm)), (cold.status, seen(&cold)));
    assert!(warm.stdout == cold.stdout);
}

/// The only cache directory, and the modification time of its index.
fn kept(cache: &Path) -> Option<(std::path::PathBuf, std::time::SystemTime)> {
    let folder = fs::read_dir(cache).ok()?.next()?.unwrap().path();
    let written = folder.join("index").metadata().ok()?.modified().unwrap();
    Some((folder, written))
}

#[test]
fn the_cache_of_a_large_data_repo_does_not_change_results() {
    let (scratch, caches) = (large(), Scratch::new());
    let (repo, cache) = (scratch.path(), caches.path().join("cache"));
    check(repo, &cache, true);
    let (folder, first) = kept(&cache).expect("something is kept");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o077, 0);
    }
    let file = repo.join("data/teams/7/27.yml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}# a comment\n")).unwrap();
    check(repo, &cache, true);
    fs::write(&file, format!("{text}nobody: knows this field\n")).unwrap();
    check(repo, &cache, false);
    fs::write(&file, &text).unwrap();
    check(repo, &cache, true);
    // Files that were written right before they were read are read again, until their timestamps are old
    // enough.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    check(repo, &cache, true);
    let (_, second) = kept(&cache).unwrap();
    assert!(second > first, "settled files are cached again");
    check(repo, &cache, true);
    assert_eq!(kept(&cache).unwrap().1, second, "nothing is written when nothing is new");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A directory that others could write to is neither read nor written.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(folder.join("validation"), "theirs").unwrap();
        fs::remove_file(folder.join("index")).unwrap();
        check(repo, &cache, true);
        assert_eq!(fs::read(folder.join("validation")).unwrap(), b"theirs");
        assert!(!folder.join("index").exists());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(folder.join("index"), "nonsense").unwrap();
    fs::write(folder.join("validation"), "nonsense").unwrap();
    check(repo, &cache, true);
}

#[test]
fn a_run_uses_the_cache_and_still_validates() {
    let (scratch, caches) = (large(), Scratch::new());
    let (repo, cache) = (scratch.path(), caches.path().join("cache"));
    let validation = || kept(&cache).expect("something is kept").0.join("validation");
    let runs = caches.path().join("runs").display().to_string();
    // This data repo defines no integration of the binary: a run ends after validation.
    let words = ["reconcile", "openshift-namespaces", "--data", ".", "--dry-run", "--runs", &runs];
    let words = [&words[..], &["--sandbox", "sandbox"]].concat();
    let check = |good: bool| {
        let (warm, cold) = (run(repo, cache.to_str().unwrap(), &words), run(repo, "off", &words));
        let seen = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().filter(|line| !line.contains("explain run")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(seen(&cold).contains("is invalid; no integration runs on it"), !good, "{}", seen(&cold));
        assert_eq!((warm.status, seen(&warm)), (cold.status, seen(&cold)));
    };
    // A query does not validate, and adds nothing to the cache.
    let asked = run(repo, cache.to_str().unwrap(), &["query", "{ teams_v1 { name } }"]);
    assert!(asked.status.success());
    assert!(!validation().exists());
    check(true);
    assert!(validation().exists());
    let file = repo.join("data/teams/7/27.yml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}nobody: knows this field\n")).unwrap();
    check(false);
    check(false);
    fs::write(&file, &text).unwrap();
    check(true);
    // Results for other schemas, or with references to a removed file, are invalid.
    let app = "data/apps/team-7.yml";
    scratch.write(app, "$schema: /tiny/app-1.yml\nname: seven\nteam: {$ref: /teams/7/27.yml}\n");
    check(true);
    fs::remove_file(&file).unwrap();
    check(false);
    fs::write(&file, &text).unwrap();
    check(true);
    let schema = "schemas/tiny/team-1.yml";
    scratch.write(schema, scratch.read(schema).replace("name: {type: string,", "name: {type: integer,"));
    check(false);
    fs::write(validation(), "nonsense").unwrap();
    check(false);
}

#[test]
fn a_small_data_repo_is_not_cached() {
    let caches = Scratch::new();
    let cache = caches.path().join("cache");
    let output = bundle(&qontract_testkit::example(), cache.to_str().unwrap());
    assert!(output.status.success());
    assert!(!cache.exists());
}

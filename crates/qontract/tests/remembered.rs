//! Large data repos: what one process found out, the next one knows, and it makes no difference but in time.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use qontract_testkit::{Scratch, vectors};

/// Bundles the data repo, with what is kept in `cache`.
fn bundle(repo: &Path, cache: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.arg("bundle").args(arguments).arg(repo).env("QONTRACT_CACHE", cache);
    command.output().unwrap()
}

/// Both ways give the same bundle and say the same.
#[track_caller]
fn check(repo: &Path, cache: &Path, good: bool) {
    let (warm, cold) = (bundle(repo, cache.to_str().unwrap(), &[]), bundle(repo, "off", &[]));
    let seen = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(cold.status.success(), good, "{}", seen(&cold));
    assert_eq!((warm.status, seen(&warm)), (cold.status, seen(&cold)));
    assert!(warm.stdout == cold.stdout);
}

/// The one folder that is kept, and when its index was written.
fn kept(cache: &Path) -> Option<(std::path::PathBuf, std::time::SystemTime)> {
    let folder = fs::read_dir(cache).ok()?.next()?.unwrap().path();
    let written = folder.join("index").metadata().ok()?.modified().unwrap();
    Some((folder, written))
}

#[test]
fn what_is_kept_of_a_large_data_repo_makes_no_difference() {
    let (scratch, caches) = (Scratch::copy_of(&vectors().join("repo")), Scratch::new());
    for number in 0..2_000 {
        let text = format!("$schema: /tiny/team-1.yml\nname: team-{number}\n");
        scratch.write(&format!("data/teams/{}/{number}.yml", number % 20), text);
    }
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
    // Files that were written just before they were read are looked into again, until they are old enough.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    check(repo, &cache, true);
    let (_, second) = kept(&cache).unwrap();
    assert!(second > first, "what looks settled now is kept anew");
    check(repo, &cache, true);
    assert_eq!(kept(&cache).unwrap().1, second, "nothing is written when nothing is new");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // What others could write is neither believed nor written to.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(folder.join("right"), "theirs").unwrap();
        fs::remove_file(folder.join("index")).unwrap();
        check(repo, &cache, true);
        assert_eq!(fs::read(folder.join("right")).unwrap(), b"theirs");
        assert!(!folder.join("index").exists());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(folder.join("index"), "nonsense").unwrap();
    fs::write(folder.join("right"), "nonsense").unwrap();
    check(repo, &cache, true);
}

#[test]
fn nothing_is_kept_of_a_small_one() {
    let caches = Scratch::new();
    let cache = caches.path().join("cache");
    let output = bundle(&qontract_testkit::example(), cache.to_str().unwrap(), &[]);
    assert!(output.status.success());
    assert!(!cache.exists());
}

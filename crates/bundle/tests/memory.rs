//! A build that remembers the last one makes what a build does that remembers nothing.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use qontract_bundle::{Aids, Bundle, Layout, Memory, Pool, Repo, Stamp, build, build_with};
use qontract_testkit::{Chance, Scratch, example};

/// The bytes of a bundle or what is wrong, and all findings.
fn outcome(repo: &Repo, memory: Option<&mut Memory>) -> (Option<Vec<u8>>, Option<Vec<u8>>, Vec<String>) {
    let (stamp, pool) = (Stamp::default(), Pool::default());
    let outcome = match memory {
        Some(memory) => build_with(repo, stamp, &pool, Aids { memory: Some(memory), ..Aids::default() }),
        None => build(repo, stamp, &pool),
    };
    let outcome = outcome.unwrap();
    let mut findings: Vec<String> = outcome.findings.iter().map(|finding| format!("{finding:?}")).collect();
    findings.sort();
    (outcome.built.map(|built| built.to_vec()), outcome.partial.map(|partial| partial.to_vec()), findings)
}

#[track_caller]
fn check(repo: &Repo, memory: &mut Memory, what: &str) {
    let (again, cold) = (outcome(repo, Some(memory)), outcome(repo, None));
    assert!(again == cold, "{what}: {:?} instead of {:?}", again.2, cold.2);
}

/// The files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() { files(&entry, found) } else { found.push(entry) }
    }
}

/// Does something to a data repo, and says what.
fn change(root: &Path, chance: &mut Chance) -> String {
    let folder = ["data", "data", "data", "data", "resources", "resources", "schemas", "graphql-schemas"]
        [chance.below(8)];
    let mut found = Vec::new();
    files(&root.join(folder), &mut found);
    let file = found[chance.below(found.len())].clone();
    let other = found[chance.below(found.len())].clone();
    let about = fs::metadata(&file).unwrap();
    let what = chance.below(7);
    let shown = format!("{what} {} {}", file.display(), other.display());
    match what {
        // Another byte, and the same size and time.
        0 => {
            let mut bytes = fs::read(&file).unwrap();
            let at = chance.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at).filter(|byte| byte.is_ascii_lowercase()) {
                *byte = if *byte == b'q' { b'z' } else { b'q' };
            }
            fs::write(&file, bytes).unwrap();
            fs::File::options()
                .write(true)
                .open(&file)
                .unwrap()
                .set_modified(about.modified().unwrap())
                .unwrap();
        }
        1 => fs::write(&file, [fs::read(&file).unwrap(), b"\n# more\n".to_vec()].concat()).unwrap(),
        // As it was, but for its looks.
        2 => fs::write(&file, fs::read(&file).unwrap()).unwrap(),
        3 if folder != "graphql-schemas" => fs::remove_file(&file).unwrap(),
        // Two change places: the same files, and other names.
        4 if folder != "graphql-schemas" => {
            let between = file.with_extension("between");
            fs::rename(&file, &between).unwrap();
            if other != file {
                fs::rename(&other, &file).unwrap();
            }
            fs::rename(&between, &other).unwrap();
        }
        5 if folder != "graphql-schemas" => {
            let name = format!("new-{}.yml", chance.below(1000));
            fs::copy(&file, file.with_file_name(name)).unwrap();
        }
        _ => {}
    }
    // So that what is written next looks different.
    std::thread::sleep(Duration::from_millis(12));
    shown
}

/// For this clock everything was written long ago: looks are trusted.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_mins(1)
}

fn history(seed: u64, clock: fn() -> SystemTime) {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let (mut memory, mut chance) = (Memory::by(clock), Chance::new(seed));
    let folder = Scratch::new();
    check(&repo, &mut memory, "at first");
    let mut happened = String::new();
    for _ in 0..12 {
        for _ in 0..chance.below(3) {
            happened += &change(scratch.path(), &mut chance);
            happened.push('\n');
        }
        // Another process goes on.
        if chance.percent(40) {
            memory.save(folder.path(), "a test", None).unwrap();
            memory = Memory::by(clock).restored(folder.path(), "a test", &Pool::default());
            happened += "restored\n";
        }
        check(&repo, &mut memory, &happened);
    }
}

#[test]
fn what_was_written_down_is_used_by_the_same_program_if_it_is_whole() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let folder = Scratch::new();
    let mut memory = Memory::by(later);
    let (built, ..) = outcome(&repo, Some(&mut memory));
    memory.save(folder.path(), "one", None).unwrap();
    let restored =
        |by: &str| format!("{:?}", Memory::by(later).restored(folder.path(), by, &Pool::default()));
    let nothing = format!("{:?}", Memory::by(later));
    assert_ne!(restored("one"), nothing);
    assert_eq!(restored("another"), nothing);
    let mut again = Memory::by(later).restored(folder.path(), "one", &Pool::default());
    assert!(outcome(&repo, Some(&mut again)).0 == built);
    let mut all = Vec::new();
    files(folder.path(), &mut all);
    assert_eq!(all.len(), 2, "{all:?}");
    for file in all {
        let good = fs::read(&file).unwrap();
        for end in [0, 10, good.len() / 2, good.len() - 1] {
            fs::write(&file, &good[..end]).unwrap();
            assert_eq!(restored("one"), nothing, "{} to {end}", file.display());
        }
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        fs::write(&file, bad).unwrap();
        assert_eq!(restored("one"), nothing, "{}", file.display());
        fs::write(&file, good).unwrap();
    }
}

/// How many histories are played.
fn cases() -> u64 {
    std::env::var("QONTRACT_MEMORY_CASES").map_or(4, |cases| cases.parse().unwrap())
}

#[test]
fn whatever_happens_to_files_is_seen() {
    for seed in 0..cases() {
        history(seed, SystemTime::now);
    }
}

#[test]
fn whatever_happens_to_files_is_seen_by_their_looks() {
    for seed in 100..100 + cases() {
        history(seed, later);
    }
}

#[test]
fn a_file_that_is_written_twice_in_a_moment_is_read_twice() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let mut memory = Memory::default();
    for round in 0..50 {
        scratch.write("resources/moment.txt", format!("{round:04}"));
        let (built, ..) = outcome(&repo, Some(&mut memory));
        let text = String::from_utf8(built.unwrap()).unwrap();
        assert!(text.contains(&format!("\"content\":\"{round:04}\"")), "round {round}");
    }
}

/// The bundle of a good data repo.
fn bundle(repo: &Repo, memory: &mut Memory) -> Bundle {
    let aids = Aids { memory: Some(memory), ..Aids::default() };
    build_with(repo, Stamp::default(), &Pool::default(), aids).unwrap().built.unwrap()
}

#[test]
fn a_file_that_stands_in_a_list_again_has_its_identifier_again() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let folder = Scratch::new();
    let mut memory = Memory::by(later);
    let built = bundle(&repo, &mut memory);
    let is_listed = |file: &&qontract_bundle::Datafile| file.document.value.get("__identifier").is_some();
    let listed =
        built.datafiles().iter().find(is_listed).expect("a file that stands in a list").path.to_string();
    let mut all = Vec::new();
    files(&scratch.path().join("data"), &mut all);
    let texts = all.into_iter().map(|file| (fs::read(&file).unwrap(), file));
    let naming: Vec<_> = texts.filter(|(text, _)| String::from_utf8_lossy(text).contains(&listed)).collect();
    for (_, file) in &naming {
        fs::remove_file(file).unwrap();
    }
    let has_identifier = |memory: &mut Memory| {
        bundle(&repo, memory).datafile(&listed).unwrap().value.get("__identifier").is_some()
    };
    assert!(!has_identifier(&mut memory));
    memory.save(folder.path(), "a test", None).unwrap();
    memory = Memory::by(later).restored(folder.path(), "a test", &Pool::default());
    for (text, file) in &naming {
        fs::write(file, text).unwrap();
    }
    check(&repo, &mut memory, "listed again");
    assert!(has_identifier(&mut memory));
}

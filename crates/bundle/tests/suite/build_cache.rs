//! A cached or incremental build makes the same bundle as a full build.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use qontract_bundle::{BuildCache, BuildOptions, Bundle, CommitStamp, Layout, Pool, Repo, build_with, load};
use qontract_testkit::{Scratch, SeededRng, chaos_count, example};

/// The bytes of the bundle or of the partial one, and all findings.
fn outcome(repo: &Repo, aids: BuildOptions<'_>) -> (Option<Vec<u8>>, Option<Vec<u8>>, Vec<String>) {
    let outcome = build_with(repo, CommitStamp::default(), &Pool::default(), aids).unwrap();
    let mut findings: Vec<String> = outcome.findings.iter().map(|finding| format!("{finding:?}")).collect();
    findings.sort();
    (outcome.built.map(|built| built.to_vec()), outcome.partial.map(|partial| partial.to_vec()), findings)
}

/// Build options with only a cache.
fn with(memory: &mut BuildCache) -> BuildOptions<'_> {
    BuildOptions { cache: Some(memory), ..BuildOptions::default() }
}

/// Asserts that the result equals that of a full build without a cache. Returns whether there are no
/// findings.
#[track_caller]
fn check(repo: &Repo, aids: BuildOptions<'_>, what: &str) -> bool {
    let (again, cold) = (outcome(repo, aids), outcome(repo, BuildOptions::default()));
    assert!(again == cold, "{what}: {:?} instead of {:?}", again.2, cold.2);
    again.2.is_empty()
}

/// The files below a directory.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() { files(&entry, found) } else { found.push(entry) }
    }
}

/// Changes a data repo at random, and returns a description. Adds the changed files to `told`.
fn change(root: &Path, chance: &mut SeededRng, told: &mut BTreeSet<PathBuf>) -> String {
    let folder = ["data", "data", "data", "data", "resources", "resources", "schemas", "graphql-schemas"]
        [chance.below(8)];
    let mut found = Vec::new();
    files(&root.join(folder), &mut found);
    let file = found[chance.below(found.len())].clone();
    let other = found[chance.below(found.len())].clone();
    let about = fs::metadata(&file).unwrap();
    let what = chance.below(10);
    told.insert(file.clone());
    let shown = format!("{what} {} {}", file.display(), other.display());
    match what {
        // Another byte, with the same size and mtime.
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
        // The same content with another stamp.
        2 => fs::write(&file, fs::read(&file).unwrap()).unwrap(),
        3 if folder != "graphql-schemas" => fs::remove_file(&file).unwrap(),
        // Two files swap names.
        4 if folder != "graphql-schemas" => {
            let between = file.with_extension("between");
            told.extend([between.clone(), other.clone()]);
            fs::rename(&file, &between).unwrap();
            if other != file {
                fs::rename(&other, &file).unwrap();
            }
            fs::rename(&between, &other).unwrap();
        }
        5 if folder != "graphql-schemas" => {
            let new = file.with_file_name(format!("new-{}.yml", chance.below(1000)));
            fs::copy(&file, &new).unwrap();
            told.insert(new);
        }
        // A line removed or duplicated, mostly of a list.
        6..=8 => {
            let text = String::from_utf8(fs::read(&file).unwrap()).unwrap();
            let mut lines: Vec<&str> = text.lines().collect();
            let items: Vec<usize> = (0..lines.len()).filter(|line| lines[*line].contains("- ")).collect();
            let at = match items.len() {
                0 => chance.below(lines.len().max(1)),
                some => items[chance.below(some)],
            };
            match lines.get(at) {
                Some(line) if what == 6 => lines.insert(at, line),
                Some(_) => drop(lines.remove(at)),
                None => {}
            }
            fs::write(&file, lines.join("\n") + "\n").unwrap();
        }
        _ => {}
    }
    // So that the next write gets another stamp.
    std::thread::sleep(Duration::from_millis(12));
    shown
}

/// A clock for which every file was written long ago, so that all stamps are trusted.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_mins(1)
}

fn history(seed: u64, clock: fn() -> SystemTime) {
    let mut scratch = Scratch::copy_of(&example());
    let mut repo = Repo::directory(scratch.path(), Layout::default());
    let (mut memory, mut chance) = (BuildCache::with_clock(clock), SeededRng::new(seed));
    let folder = Scratch::new();
    check(&repo, with(&mut memory), "full build");
    let mut happened = String::new();
    for _ in 0..20 {
        let mut told = BTreeSet::new();
        for _ in 0..chance.below(3) {
            happened += &change(scratch.path(), &mut chance, &mut told);
            happened.push('\n');
        }
        // Another process takes over.
        if chance.percent(40) {
            memory.save(folder.path(), "a test", None).unwrap();
            memory = BuildCache::with_clock(clock).restored_from(folder.path(), "a test", &Pool::default());
            happened += "restored\n";
        }
        let told = chance.percent(70).then_some(&told);
        happened += if told.is_some() { "incremental\n" } else { "cached\n" };
        if !check(&repo, BuildOptions { changed_paths: told, ..with(&mut memory) }, &happened)
            && chance.percent(80)
        {
            scratch = Scratch::copy_of(&example());
            repo = Repo::directory(scratch.path(), Layout::default());
            check(&repo, with(&mut memory), &happened);
            happened += "reset\n";
        }
    }
}

#[test]
fn an_incremental_build_reads_only_the_changed_files() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let mut memory = BuildCache::default();
    let built = bundle(&repo, &mut memory);
    let [one, other] = [3, 9].map(|place| {
        let file = &built.datafiles()[place];
        (file.path.to_string(), scratch.path().join(format!("data{}", file.path)))
    });
    for (_, file) in [&one, &other] {
        fs::write(file, [fs::read(file).unwrap(), b"# more\n".to_vec()].concat()).unwrap();
    }
    // Temporary files of editors are among the changed paths too.
    let told = [one.1.clone(), one.1.with_extension("yml~"), one.1.with_file_name(".swap.yml")];
    let few =
        outcome(&repo, BuildOptions { changed_paths: Some(&BTreeSet::from(told)), ..with(&mut memory) })
            .0
            .unwrap();
    let few = load(&few, &Pool::default()).unwrap();
    let is_same = |path: &str| few.datafile(path) == built.datafile(path);
    assert!(!is_same(&one.0) && is_same(&other.0), "{} and {}", one.0, other.0);
    check(&repo, with(&mut memory), "cached build");
    // A link changes with its target, so a repo with links gets a full build.
    std::os::unix::fs::symlink(
        scratch.path().join("resources/linked.txt"),
        scratch.path().join("resources/a-link.txt"),
    )
    .unwrap();
    scratch.write("resources/linked.txt", "one");
    check(&repo, with(&mut memory), "a link");
    scratch.write("resources/linked.txt", "two");
    let told = BTreeSet::from([scratch.path().join("resources/linked.txt")]);
    check(&repo, BuildOptions { changed_paths: Some(&told), ..with(&mut memory) }, "a link, incremental");
}

#[test]
fn a_saved_cache_is_used_only_by_the_same_program_and_only_if_it_is_complete() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let folder = Scratch::new();
    let mut memory = BuildCache::with_clock(later);
    let (built, ..) = outcome(&repo, with(&mut memory));
    memory.save(folder.path(), "one", None).unwrap();
    let restored = |by: &str| {
        format!("{:?}", BuildCache::with_clock(later).restored_from(folder.path(), by, &Pool::default()))
    };
    let nothing = format!("{:?}", BuildCache::with_clock(later));
    assert_ne!(restored("one"), nothing);
    assert_eq!(restored("another"), nothing);
    let mut again = BuildCache::with_clock(later).restored_from(folder.path(), "one", &Pool::default());
    assert!(outcome(&repo, with(&mut again)).0 == built);
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

#[test]
fn random_edits_match_a_full_build() {
    for seed in 0..chaos_count(3) {
        history(seed, SystemTime::now);
    }
}

#[test]
fn random_edits_match_a_full_build_with_trusted_stamps() {
    for seed in 100..100 + chaos_count(3) {
        history(seed, later);
    }
}

#[test]
fn a_file_that_is_written_twice_within_the_timestamp_granularity_is_read_twice() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let mut memory = BuildCache::default();
    for round in 0..50 {
        scratch.write("resources/moment.txt", format!("{round:04}"));
        let (built, ..) = outcome(&repo, with(&mut memory));
        let text = String::from_utf8(built.unwrap()).unwrap();
        assert!(text.contains(&format!("\"content\":\"{round:04}\"")), "round {round}");
    }
}

/// The bundle of a data repo without errors.
fn bundle(repo: &Repo, memory: &mut BuildCache) -> Bundle {
    build_with(repo, CommitStamp::default(), &Pool::default(), with(memory)).unwrap().built.unwrap()
}

#[test]
fn a_file_that_is_listed_again_gets_its_identifier_back() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let folder = Scratch::new();
    let mut memory = BuildCache::with_clock(later);
    let built = bundle(&repo, &mut memory);
    let is_listed = |file: &&qontract_bundle::Datafile| file.document.value.get("__identifier").is_some();
    let listed = built.datafiles().iter().find(is_listed).expect("a listed file").path.to_string();
    let mut all = Vec::new();
    files(&scratch.path().join("data"), &mut all);
    let texts = all.into_iter().map(|file| (fs::read(&file).unwrap(), file));
    let naming: Vec<_> = texts.filter(|(text, _)| String::from_utf8_lossy(text).contains(&listed)).collect();
    for (_, file) in &naming {
        fs::remove_file(file).unwrap();
    }
    let has_identifier = |memory: &mut BuildCache| {
        bundle(&repo, memory).datafile(&listed).unwrap().value.get("__identifier").is_some()
    };
    assert!(!has_identifier(&mut memory));
    memory.save(folder.path(), "a test", None).unwrap();
    memory = BuildCache::with_clock(later).restored_from(folder.path(), "a test", &Pool::default());
    for (text, file) in &naming {
        fs::write(file, text).unwrap();
    }
    check(&repo, with(&mut memory), "listed again");
    assert!(has_identifier(&mut memory));
}

#[test]
fn removing_a_file_without_a_cache_entry_removes_it_from_the_bundle() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let folder = Scratch::new();
    let mut memory = BuildCache::with_clock(later);
    // A file with findings is not saved in the cache. It sorts before all others.
    scratch.write("data/a.yml", "$schema: /access/user-1.yml\nname: a\nname: b\n");
    let (built, _, findings) = outcome(&repo, with(&mut memory));
    assert!(built.is_some() && findings.len() == 1, "a warning: {findings:?}");
    memory.save(folder.path(), "a test", None).unwrap();
    memory = BuildCache::with_clock(later).restored_from(folder.path(), "a test", &Pool::default());
    fs::remove_file(scratch.path().join("data/a.yml")).unwrap();
    check(&repo, with(&mut memory), "removed");
    let mut all = Vec::new();
    files(&scratch.path().join("data"), &mut all);
    let last = all.pop().unwrap();
    fs::write(&last, [fs::read(&last).unwrap(), b"# more\n".to_vec()].concat()).unwrap();
    check(
        &repo,
        BuildOptions { changed_paths: Some(&BTreeSet::from([last])), ..with(&mut memory) },
        "and another file changed",
    );
}

#[test]
fn a_changed_part_or_a_hard_link_falls_back_to_a_full_build() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let mut memory = BuildCache::with_clock(later);
    let told = |path: &str| BTreeSet::from([scratch.path().join(path)]);
    let again = |memory: &mut BuildCache, path: &str, what: &str| {
        check(&repo, BuildOptions { changed_paths: Some(&told(path)), ..with(memory) }, what)
    };
    check(&repo, with(&mut memory), "full build");
    let (away, there) = (scratch.path().join("away"), scratch.path().join("resources"));
    fs::rename(&there, &away).unwrap();
    again(&mut memory, "resources", "without resources");
    fs::rename(&away, &there).unwrap();
    again(&mut memory, "resources", "with them again");
    let mut all = Vec::new();
    files(&scratch.path().join("resources"), &mut all);
    fs::hard_link(&all[0], scratch.path().join("resources/other-name.txt")).unwrap();
    check(&repo, with(&mut memory), "another name");
    std::thread::sleep(Duration::from_millis(12));
    fs::write(&all[0], "something else").unwrap();
    let name = all[0].strip_prefix(scratch.path()).unwrap().display().to_string();
    again(&mut memory, &name, "under two names");
}

#[test]
fn a_schema_that_is_a_link_changes_with_its_target() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let mut memory = BuildCache::with_clock(later);
    for (part, moved) in
        [("graphql-schemas/schema.yml", "types.txt"), ("schemas/access/user-1.yml", "user.txt")]
    {
        let (link, target) = (scratch.path().join(part), scratch.path().join("resources").join(moved));
        fs::rename(&link, &target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        check(&repo, with(&mut memory), part);
        fs::write(&target, [fs::read(&target).unwrap(), b"\n# more\n".to_vec()].concat()).unwrap();
        check(
            &repo,
            BuildOptions { changed_paths: Some(&BTreeSet::from([target])), ..with(&mut memory) },
            moved,
        );
    }
}

#[test]
fn a_datafile_of_the_maximum_depth_is_restored_from_disk() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let folder = Scratch::new();
    let deep = |depth: usize| {
        format!("$schema: /access/user-1.yml\ndeep: {}{}\n", "[".repeat(depth), "]".repeat(depth))
    };
    let mut depth = 400;
    loop {
        scratch.write("data/deep.yml", deep(depth));
        if outcome(&repo, BuildOptions::default()).0.is_some() {
            break;
        }
        depth -= 1;
    }
    assert!(depth > 10, "{depth}");
    let mut memory = BuildCache::with_clock(later);
    let expected = bundle(&repo, &mut memory);
    memory.save(folder.path(), "a test", None).unwrap();
    memory = BuildCache::with_clock(later).restored_from(folder.path(), "a test", &Pool::default());
    let restored = bundle(&repo, &mut memory);
    assert_eq!(restored.datafile("/deep.yml"), expected.datafile("/deep.yml"));
    assert!(restored.datafile("/deep.yml").unwrap().value.get("deep").is_some());
}

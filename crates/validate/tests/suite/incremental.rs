//! Incremental validation: with a cache, the findings are the same as without one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use qontract_bundle::{BuildCache, BuildOptions, CommitStamp, Layout, Pool, Repo, build, build_with, load};
use qontract_testkit::{Scratch, SeededRng, example};
use qontract_validate::{Options, ValidationCache, validate, validate_incremental};
use serde_json::Value;

/// The findings, sorted.
fn shown(findings: Vec<qontract_diagnostics::Diagnostic>) -> Vec<String> {
    let mut shown: Vec<String> = findings.into_iter().map(|finding| format!("{finding:?}")).collect();
    shown.sort();
    shown
}

/// The pointers of all texts and lists below a value.
fn parts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                parts(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            found.push(at.to_owned());
            for (index, item) in items.iter().enumerate() {
                parts(item, &format!("{at}/{index}"), found);
            }
        }
        Value::String(_) => found.push(at.to_owned()),
        _ => {}
    }
}

/// Makes one random change: replaces a text, repeats a list item, adds or removes a file.
fn change(bundle: &mut Value, chance: &mut SeededRng) {
    let part = ["/data", "/data", "/data", "/resources", "/schemas"][chance.below(5)];
    let mut all = Vec::new();
    parts(&bundle[&part[1..]], part, &mut all);
    let texts: Vec<Value> =
        all.iter().filter_map(|at| bundle.pointer(at).filter(|one| one.is_string()).cloned()).collect();
    if chance.percent(20) {
        let files = bundle[&part[1..]].as_object_mut().expect("files by path");
        let path = files.keys().nth(chance.below(files.len())).expect("a file").clone();
        if part != "/schemas" && chance.percent(50) {
            let file = files[&path].clone();
            files.insert(format!("{path}.yml"), file);
        } else {
            files.remove(&path);
        }
        return;
    }
    match bundle.pointer_mut(&all[chance.below(all.len())]) {
        Some(Value::Array(items)) => items.extend(items.first().cloned()),
        Some(text) => *text = texts[chance.below(texts.len())].clone(),
        None => {}
    }
}

/// The cache as another process reads it.
fn reloaded(cache: &ValidationCache) -> ValidationCache {
    ValidationCache::from_bytes(&cache.to_bytes("a test"), "a test").expect("whole")
}

#[test]
fn the_cache_does_not_change_findings() {
    let repo = Repo::directory(example(), Layout::default());
    let built =
        build(&repo, CommitStamp::default(), &Pool::default()).expect("a repo").built.expect("a bundle");
    let good: Value = serde_json::from_slice(&built.to_vec()).expect("JSON");
    let mut cache = ValidationCache::default();
    let (mut chance, mut wrong) = (SeededRng::new(7), 0);
    for round in 0..60 {
        let mut changed = good.clone();
        for _ in 0..chance.below(3) {
            change(&mut changed, &mut chance);
        }
        let bundle = load(changed.to_string().as_bytes(), &Pool::default()).expect("a bundle");
        // References to unreadable files are not reported.
        let files = changed["data"].as_object().expect("files by path").values();
        let schemas = files.filter_map(|file| Some(format!("schemas{}", file["$schema"].as_str()?)));
        let unread = schemas.filter(|_| chance.percent(30)).collect();
        let options = Options { unread, ..Options::default() };
        let expected = shown(validate(&bundle, &options));
        assert_eq!(shown(validate_incremental(&bundle, &options, &mut cache)), expected, "round {round}");
        wrong += usize::from(!expected.is_empty());
        if chance.percent(30) {
            cache = reloaded(&cache);
        }
    }
    assert!((10..60).contains(&wrong), "{wrong} of 60 were wrong");
}

/// The YAML files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() { files(&entry, found) } else { found.push(entry) }
    }
}

#[test]
fn the_cache_does_not_change_findings_of_incremental_builds() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let mut all = Vec::new();
    files(&scratch.path().join("data"), &mut all);
    let read = |file: &PathBuf| std::fs::read_to_string(file).expect("text");
    let texts: Vec<(PathBuf, String)> = all.iter().map(|file| (file.clone(), read(file))).collect();
    // All values of each field name, to use them elsewhere.
    let mut said: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let fields = |text| str::lines(text).filter_map(|line| line.split_once(": "));
    for (key, value) in texts.iter().flat_map(|(_, text)| fields(text)) {
        said.entry(key.trim_start_matches([' ', '-'])).or_default().push(value);
    }
    let pool = Pool::default();
    let (mut memory, mut cache) = (BuildCache::default(), ValidationCache::default());
    let (mut chance, mut wrong, mut told) = (SeededRng::new(3), 0, None);
    for round in 0..80 {
        let aids = BuildOptions {
            cache: Some(&mut memory),
            changed_paths: told.as_ref(),
            ..BuildOptions::default()
        };
        let built = build_with(&repo, CommitStamp::default(), &pool, aids).expect("a data repo").built;
        if let Some(bundle) = &built {
            let options = Options::default();
            let expected = shown(validate(bundle, &options));
            assert_eq!(shown(validate_incremental(bundle, &options, &mut cache)), expected, "round {round}");
            wrong += usize::from(!expected.is_empty());
            if chance.percent(30) {
                cache = reloaded(&cache);
            }
        }
        // One file changes, and others may change back.
        let mut changed = BTreeSet::new();
        for (file, text) in &texts {
            if read(file) != *text && (built.is_none() || chance.percent(50)) {
                std::fs::write(file, text).expect("a file");
                changed.insert(file.clone());
            }
        }
        let (file, text) = &texts[chance.below(texts.len())];
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(": ")).collect();
        let line = lines[chance.below(lines.len())];
        let (key, _) = line.split_once(": ").expect("a field");
        let values = &said[key.trim_start_matches([' ', '-'])];
        let other = format!("{key}: {}", values[chance.below(values.len())]);
        std::fs::write(file, text.replacen(line, &other, 1)).expect("a file");
        changed.insert(file.clone());
        told = Some(changed);
    }
    assert!((10..70).contains(&wrong), "{wrong} of 80 were wrong");
}

#[test]
fn links_that_depend_on_the_content_of_their_target_are_checked_when_it_changes() {
    let scratch = Scratch::copy_of(&example());
    let schema = "schemas/app-sre/integration-1.yml";
    let text = std::fs::read_to_string(scratch.path().join(schema)).expect("a schema");
    let wants = "enum: [/openshift/namespace-1.yml, /openshift/lean-namespace-1.yml]\n";
    assert!(text.contains(wants), "{text}");
    let more = format!("{wants}              description: {{type: string, pattern: \"[a-z]\"}}\n");
    scratch.write(schema, text.replacen(wants, &more, 1));
    let repo = Repo::directory(scratch.path(), Layout::default());
    let built =
        build(&repo, CommitStamp::default(), &Pool::default()).expect("a repo").built.expect("a bundle");
    let integration = built.datafiles().iter().find_map(|file| {
        let at = file.document.value.pointer("/managed/0/namespace/$ref")?;
        at.as_str().filter(|_| file.path.starts_with("/integrations/"))
    });
    let namespace = scratch.path().join(format!("data{}", integration.expect("a managed integration")));
    let good = std::fs::read_to_string(&namespace).expect("a namespace");
    let line = good.lines().find(|line| line.starts_with("description: ")).expect("a description");
    let told = BTreeSet::from([namespace.clone()]);
    let (pool, mut memory, mut cache) = (Pool::default(), BuildCache::default(), ValidationCache::default());
    let descriptions = [line, "description: \"12\"", "description: \"34\"", line];
    for (number, description) in descriptions.iter().chain(&descriptions).enumerate() {
        // In the second half, each step is validated by another process.
        if number >= descriptions.len() {
            cache = reloaded(&cache);
        }
        std::fs::write(&namespace, good.replacen(line, description, 1)).expect("a file");
        let aids =
            BuildOptions { cache: Some(&mut memory), changed_paths: Some(&told), ..BuildOptions::default() };
        let bundle =
            build_with(&repo, CommitStamp::default(), &pool, aids).expect("a repo").built.expect("a bundle");
        let expected = shown(validate(&bundle, &Options::default()));
        assert_eq!(expected.is_empty(), *description == line, "{description}: {expected:?}");
        assert_eq!(
            shown(validate_incremental(&bundle, &Options::default(), &mut cache)),
            expected,
            "{description}"
        );
    }
}

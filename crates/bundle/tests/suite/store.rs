//! A bundle file is replaced atomically, links stay links, and pipes are written to directly.

use std::fs;

use qontract_bundle::{Bundle, CommitStamp, Layout, Pool, Repo, build, store};
use qontract_testkit::{Scratch, vectors};

fn made() -> Bundle {
    let repo = Repo::directory(vectors().join("repo"), Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    outcome.built.expect("no errors")
}

#[test]
fn a_file_is_replaced_and_nothing_else_is_left_in_its_folder() {
    let scratch = Scratch::new();
    let path = scratch.write("bundle.json", "old");
    store::write(&made(), &path).expect("it can be written");
    assert_eq!(fs::read(&path).expect("a file"), made().to_vec());
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 1);
}

#[test]
fn a_link_stays_a_link() {
    let scratch = Scratch::new();
    scratch.write("releases/1.json", "old");
    scratch.link("latest.json", "releases/1.json");
    store::write(&made(), &scratch.path().join("latest.json")).expect("it can be written");
    assert!(fs::symlink_metadata(scratch.path().join("latest.json")).expect("a link").is_symlink());
    assert_eq!(scratch.read("releases/1.json").as_bytes(), made().to_vec());
}

#[test]
fn a_pipe_is_written_to_and_not_replaced() {
    let scratch = Scratch::new();
    let pipe = scratch.path().join("pipe");
    let fifo = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(fifo.success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).expect("what was written")
    });
    store::write(&made(), &pipe).expect("it can be written");
    assert_eq!(reader.join().expect("the reader ends"), made().to_vec());
    assert!(!fs::metadata(&pipe).expect("still there").is_file());
}

#[test]
fn an_empty_draft_is_written_when_it_is_finished() {
    let scratch = Scratch::new();
    let path = scratch.path().join("bundle.json");
    let draft = store::BundleFile::create(&path).expect("a draft");
    assert!(!path.exists(), "nothing exists at the path before it is complete");
    draft.finish(&made()).expect("it can be written");
    assert_eq!(fs::read(&path).expect("a file"), made().to_vec());
    drop(store::BundleFile::create(&path).expect("a draft"));
    let left: Vec<_> = fs::read_dir(scratch.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

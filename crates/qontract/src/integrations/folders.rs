//! The list of integrations and the folders on disk say the same.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::ALL;

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn is_program(path: &Path) -> bool {
    let executable = fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    executable && fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!"))
}

#[test]
fn every_integration_that_works_on_clusters_says_what_it_needs_there() {
    let all = ALL.iter().map(|entry| (entry.about)().name);
    let on_clusters: Vec<String> = all.filter(|name| name.starts_with("openshift-")).collect();
    let needs = qontract_daemon::clusters::NEEDS.map(|need| need.integration.to_owned());
    assert_eq!(needs.to_vec(), on_clusters);
}

#[test]
fn the_list_is_the_folders_that_are_packages_in_order() {
    let rooms = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations"));
    let mut packages = Vec::new();
    for room in names(rooms).into_iter().filter(|path| path.is_dir()) {
        let told = room.display();
        assert!(room.join("README.md").is_file(), "{told} has no README.md");
        assert!(!names(&room.join("cases")).is_empty(), "{told} has no cases");
        if room.join("Cargo.toml").is_file() {
            packages.push(room.file_name().expect("a name").to_string_lossy().into_owned());
            continue;
        }
        assert!(names(&room).iter().any(|path| is_program(path)), "{told} has no executable program");
    }
    let listed: Vec<String> = ALL.iter().map(|entry| (entry.about)().name).collect();
    assert_eq!(listed, packages);
}

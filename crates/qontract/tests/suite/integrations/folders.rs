//! Tests that the list of integrations matches the directories on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::registry::ALL;

/// The paths in a directory, sorted.
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
fn every_integration_with_a_client_of_clusters_states_the_permissions_that_it_needs() {
    let integrations = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations"));
    for entry in ALL {
        let meta = (entry.meta)();
        let package =
            fs::read_to_string(integrations.join(&meta.name).join("Cargo.toml")).expect("a package");
        let (dependencies, _) = package.split_once("[dev-dependencies]").unwrap_or((&package, ""));
        let has_client = dependencies.contains("qontract-client-kubernetes");
        // Those without a client of their own are `ObjectIntegration`s, which have to name their kinds.
        assert!(!has_client || meta.permissions.is_some(), "{}", meta.name);
    }
}

#[test]
fn the_list_matches_the_package_directories_in_order() {
    let integrations = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations"));
    let mut packages = Vec::new();
    for folder in names(integrations).into_iter().filter(|path| path.is_dir()) {
        let path = folder.display();
        assert!(folder.join("README.md").is_file(), "{path} has no README.md");
        assert!(!names(&folder.join("cases")).is_empty(), "{path} has no cases");
        if folder.join("Cargo.toml").is_file() {
            packages.push(folder.file_name().expect("a name").to_string_lossy().into_owned());
            continue;
        }
        assert!(names(&folder).iter().any(|path| is_program(path)), "{path} has no executable program");
    }
    let listed: Vec<String> = ALL.iter().map(|entry| (entry.meta)().name).collect();
    assert_eq!(listed, packages);
}

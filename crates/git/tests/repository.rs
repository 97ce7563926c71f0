//! Tests of the discovery of repositories, and of reading commits, trees and blobs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::time::Duration;

use qontract_git::{EntryKind, GitError, GitLimits, Repository};
use qontract_testkit::Scratch;

/// Creates a repository with one file and one commit; returns the id of the commit.
fn repository(scratch: &Scratch) -> String {
    scratch.write("sub/file", "text\n");
    scratch.commit_all("first")
}

/// The commit of a revision, or the error as text.
fn commit(folder: &Path, revision: &str) -> Result<String, String> {
    let repository = Repository::open(folder).map_err(|error| error.to_string())?;
    repository.commit(revision).map(|commit| commit.id.to_string()).map_err(|error| error.to_string())
}

fn refusal(folder: &Path) -> String {
    match Repository::open(folder) {
        Err(GitError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_prefix_is_the_path_of_the_directory_in_the_repository() {
    let scratch = Scratch::new();
    let head = repository(&scratch);
    let found = Repository::discover(&scratch.path().join("sub")).unwrap();
    assert_eq!(found.prefix(), "sub");
    let commit = found.commit("HEAD").unwrap();
    assert_eq!((commit.id.as_str(), commit.time.as_str()), (head.as_str(), "1700000000"));
    let tree = found.tree(&commit, "sub", "HEAD").unwrap();
    let entries = found.list(&tree).unwrap();
    let [(path, entry)] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((path.as_deref(), entry.kind, entry.size), (Ok("file"), EntryKind::File, 5));
    assert_eq!(found.blobs(&[entry, entry]).unwrap(), [b"text\n", b"text\n"]);
    assert_eq!(Repository::discover(scratch.path()).unwrap().prefix(), "");
    assert_eq!(Repository::discover(&scratch.path().join(".git")).unwrap().prefix(), "");
    assert!(matches!(found.tree(&commit, "none", "HEAD"), Err(GitError::NoFolder { .. })));
    assert!(matches!(found.tree(&commit, "sub/file", "HEAD"), Err(GitError::NoFolder { .. })));
    assert!(matches!(found.tree(&commit, "sub\nHEAD", "HEAD"), Err(GitError::NoFolder { .. })));
}

#[test]
fn a_bare_repository_is_read_only_where_it_is_named_and_not_in_a_work_tree() {
    let scratch = Scratch::new();
    scratch.write("work/sub/file", "text\n");
    let work = Scratch::copy_of(&scratch.path().join("work"));
    let head = work.commit_all("first");
    work.git(&["clone", "--quiet", "--bare", ".", "embedded"]);
    // A bare repository outside of a work tree, opened by its path.
    let outside = Scratch::new();
    work.git(&["clone", "--quiet", "--bare", ".", &outside.path().join("bare").display().to_string()]);
    assert_eq!(commit(&outside.path().join("bare"), "HEAD"), Ok(head.clone()));
    // A bare repository is not discovered, neither directly nor from a directory in it.
    for folder in ["bare", "bare/refs"] {
        let found = Repository::discover(&outside.path().join(folder));
        assert!(matches!(found, Err(GitError::NoRepository(_))), "{found:?}");
    }
    assert!(matches!(Repository::open(&outside.path().join("bare/refs")), Err(GitError::NoRepository(_))));
    // In a work tree it is a directory like any other.
    let embedded = Repository::open(&work.path().join("embedded")).unwrap();
    assert_eq!(embedded.prefix(), "embedded");
}

#[test]
fn a_linked_work_tree_is_read_and_a_forged_one_is_refused() {
    let scratch = Scratch::new();
    let first = repository(&scratch);
    let linked = Scratch::new();
    let folder = linked.path().join("linked");
    scratch.git(&["worktree", "add", "--quiet", "-b", "other", &folder.display().to_string()]);
    assert_eq!(commit(&folder, "HEAD"), Ok(first.clone()));
    scratch.write("sub/file", "changed\n");
    let second = scratch.commit_all("second");
    assert_eq!((commit(&folder, "HEAD"), commit(&folder, "main")), (Ok(first.clone()), Ok(second)));
    assert_eq!(Repository::discover(&folder.join("sub")).unwrap().prefix(), "sub");
    // A copy of its `.git` file, in a directory that the repository does not list.
    linked.write("forged/.git", std::fs::read(folder.join(".git")).unwrap());
    assert!(refusal(&linked.path().join("forged")).contains("another work tree"));
    // A Git directory that names the directory, and the common directory of another repository.
    let git_dir = linked.path().join("evil");
    linked.write("evil/HEAD", format!("{first}\n"));
    linked.write("evil/gitdir", format!("{}\n", linked.path().join("forged/.git").display()));
    linked.write("evil/commondir", format!("{}\n", scratch.path().join(".git").display()));
    linked.write("forged/.git", format!("gitdir: {}\n", git_dir.display()));
    assert!(refusal(&linked.path().join("forged")).contains("not in the repository's `worktrees` directory"));
}

#[test]
fn a_git_directory_elsewhere_has_to_name_the_work_tree() {
    let scratch = Scratch::new();
    let head = repository(&scratch);
    let other = Scratch::new();
    let (work, git_dir) = (other.path().join("work"), other.path().join("git"));
    let words = |path: &Path| path.display().to_string();
    scratch.git(&["clone", "--quiet", "--separate-git-dir", &words(&git_dir), ".", &words(&work)]);
    assert!(refusal(&work).contains("config core.worktree"));
    other.git(&["--git-dir=git", "config", "core.worktree", &words(&work)]);
    assert_eq!(commit(&work, "HEAD"), Ok(head));
    // The `.git` file of that repository, in another directory.
    other.write("forged/.git", std::fs::read(work.join(".git")).unwrap());
    assert!(refusal(&other.path().join("forged")).contains("config core.worktree"));
}

#[test]
fn a_dot_git_that_is_not_a_repository_is_refused_or_ignored() {
    let check = |make: &dyn Fn(&Scratch), expect: &str| {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.path().join("folder")).unwrap();
        make(&scratch);
        assert!(refusal(&scratch.path().join("folder")).contains(expect), "{expect}");
    };
    check(&|scratch| scratch.link("folder/.git", "/etc"), "symbolic link");
    check(&|scratch| drop(scratch.write("folder/.git", "something")), "does not name a Git directory");
    check(&|scratch| drop(scratch.write("folder/.git", "gitdir: /none")), "does not exist");
    check(&|scratch| fifo(&scratch.path().join("folder/.git")), "neither a directory nor a file");
    // As in `git`, an empty directory is ignored.
    let scratch = Scratch::new();
    let head = repository(&scratch);
    std::fs::create_dir_all(scratch.path().join("sub/.git")).unwrap();
    assert_eq!(commit(&scratch.path().join("sub"), "HEAD"), Ok(head));
}

fn fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

#[test]
fn special_files_in_a_git_directory_are_refused_without_waiting() {
    for name in ["HEAD", "FETCH_HEAD", "config", "packed-refs", "objects/info/alternates"] {
        let scratch = Scratch::new();
        repository(&scratch);
        let file = scratch.path().join(".git").join(name);
        let _ = std::fs::remove_file(&file);
        fifo(&file);
        assert!(!refusal(scratch.path()).is_empty(), "{name}");
    }
}

#[test]
fn objects_outside_of_the_repository_are_refused() {
    let scratch = Scratch::new();
    let head = repository(&scratch);
    let other = Scratch::new();
    let clone = other.path().join("clone");
    scratch.git(&["clone", "--quiet", "--shared", ".", &clone.display().to_string()]);
    assert!(refusal(&clone).contains("git repack -a -d"));
    // Alternates within the repository are read, as long as they do not lead outside.
    let inner = Scratch::new();
    repository(&inner);
    inner.git(&["-c", "init.defaultBranch=main", "init", "--quiet", "--bare", ".git/inner"]);
    inner.write(".git/objects/info/alternates", "# a comment\n../inner/objects\n");
    assert!(commit(inner.path(), "HEAD").is_ok());
    let outside = scratch.path().join(".git/objects");
    inner.write(".git/inner/objects/info/alternates", format!("{}\n", outside.display()));
    assert!(refusal(inner.path()).contains("outside of it"));
    // The object store itself is a link.
    std::fs::remove_file(clone.join(".git/objects/info/alternates")).unwrap();
    std::fs::remove_dir_all(clone.join(".git/objects")).unwrap();
    std::os::unix::fs::symlink(outside, clone.join(".git/objects")).unwrap();
    assert!(refusal(&clone).contains("outside of it"), "{head}");
}

#[test]
fn revisions_are_names_and_never_options() {
    let scratch = Scratch::new();
    let head = repository(&scratch);
    scratch.git(&["update-ref", "refs/heads/-x", &head]);
    scratch.git(&["tag", "--annotate", "--message", "tag", "v1"]);
    scratch.write(".git/FETCH_HEAD", format!("{head}\t\tbranch 'main' of elsewhere\nmore\n"));
    for revision in
        ["HEAD", "main", "refs/heads/main", "refs/heads/-x", "v1", "FETCH_HEAD", "HEAD@{0}", &head[..8]]
    {
        assert_eq!(commit(scratch.path(), revision), Ok(head.clone()), "{revision}");
    }
    let options = ["-x", "--upload-pack=touch x", "-c", "--batch-all-objects", "--"];
    let odd =
        ["", "HEAD\nHEAD", "HEAD\0", "HEAD\rHEAD", "none", "HEAD~1", "HEAD^{tree}", "HEAD:sub", " ", "a b"];
    for revision in options.into_iter().chain(odd) {
        let error = commit(scratch.path(), revision).unwrap_err();
        assert_eq!(error, format!("no such Git revision: `{revision}`"));
    }
    scratch.git(&["symbolic-ref", "HEAD", "refs/heads/-x"]);
    assert_eq!(commit(scratch.path(), "HEAD"), Ok(head.clone()));
    scratch.git(&["pack-refs", "--all"]);
    assert_eq!(commit(scratch.path(), "HEAD"), Ok(head));
}

#[test]
fn repositories_of_another_hash_are_read() {
    let scratch = Scratch::new();
    scratch.git(&["init", "--quiet", "--object-format=sha256", "--initial-branch=main"]);
    let head = repository(&scratch);
    assert_eq!((head.len(), commit(scratch.path(), "main")), (64, Ok(head.clone())));
}

#[test]
fn a_command_that_waits_ends_with_its_deadline() {
    let scratch = Scratch::new();
    repository(&scratch);
    let main = scratch.path().join(".git/refs/heads/main");
    std::fs::remove_file(&main).unwrap();
    fifo(&main);
    let limits = GitLimits { deadline: Duration::from_millis(300), ..GitLimits::default() };
    let error = Repository::open_within(scratch.path(), limits).unwrap().commit("HEAD").unwrap_err();
    assert!(matches!(error, GitError::TimedOut { .. }), "{error:?}");
}

#[test]
fn a_repository_above_a_limit_is_refused() {
    let scratch = Scratch::new();
    scratch.write("a", "12345");
    scratch.write("b", "12345");
    scratch.commit_all("first");
    let with = |limits: GitLimits| -> Result<(), GitError> {
        let repository = Repository::open_within(scratch.path(), limits)?;
        let commit = repository.commit("HEAD")?;
        let tree = repository.tree(&commit, "", "HEAD")?;
        let entries = repository.list(&tree)?;
        repository.blobs(&entries.iter().map(|(_, entry)| entry).collect::<Vec<_>>()).map(drop)
    };
    let size: u64 = scratch.git(&["cat-file", "-s", "HEAD"]).parse().unwrap();
    let listing = scratch.git(&["ls-tree", "-r", "-z", "-l", "HEAD"]).len() as u64;
    let exact = GitLimits {
        commit_bytes: size,
        entries: 2,
        listing_bytes: listing,
        total_bytes: 10,
        ..GitLimits::default()
    };
    with(exact).unwrap();
    for limits in [
        GitLimits { commit_bytes: size - 1, ..exact },
        GitLimits { entries: 1, ..exact },
        GitLimits { listing_bytes: listing - 1, ..exact },
        GitLimits { total_bytes: 9, ..exact },
    ] {
        let error = with(limits).unwrap_err();
        assert!(matches!(error, GitError::TooLarge(_)), "{error:?}");
    }
}

#[test]
fn a_directory_outside_of_a_repository_is_an_error() {
    let scratch = Scratch::new();
    assert!(matches!(Repository::open(scratch.path()), Err(GitError::NoRepository(_))));
    assert!(matches!(Repository::open(Path::new("/none")), Err(GitError::NoRepository(_))));
}

/// The offset of a chunk in a commit-graph file.
fn chunk(graph: &[u8], name: [u8; 4]) -> usize {
    let entry = graph[8..].chunks(12).find(|entry| entry[..4] == name).unwrap();
    usize::try_from(u64::from_be_bytes(entry[4..12].try_into().unwrap())).unwrap()
}

#[test]
fn a_commit_graph_with_other_parents_is_not_used() {
    let scratch = Scratch::new();
    let first = repository(&scratch);
    scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "second"]);
    scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "third"]);
    scratch.git(&["branch", "main-line"]);
    scratch.git(&["checkout", "--quiet", "-b", "side", &first]);
    scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "beside"]);
    scratch.git(&["commit-graph", "write", "--reachable"]);
    let file = scratch.path().join(".git/objects/info/commit-graph");
    let mut graph = std::fs::read(&file).unwrap();
    let (ids, data) = (chunk(&graph, *b"OIDL"), chunk(&graph, *b"CDAT"));
    let position = |revision: &str| {
        let id = scratch.git(&["rev-parse", revision]);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let is_same = |bytes: &[u8]| hex(bytes) == id;
        graph[ids..].chunks(20).position(is_same).unwrap()
    };
    // The named commits are read from the object store; their ancestors are looked up in the graph.
    let (second, side) = (position("main-line~1"), position("side"));
    // For each commit: its tree, two parents, generation and time.
    let parent = data + second * 36 + 20;
    graph[parent..parent + 4].copy_from_slice(&u32::try_from(side).unwrap().to_be_bytes());
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, graph).unwrap();
    assert_eq!(
        scratch.git(&["-c", "core.commitGraph=true", "merge-base", "main-line", "side"]),
        scratch.git(&["rev-parse", "side"]),
        "git itself uses the graph"
    );
    let repository = Repository::open(scratch.path()).unwrap();
    let [one, other] = ["main-line", "side"].map(|branch| repository.commit(branch).unwrap());
    assert_eq!(repository.merge_base(&one, &other).unwrap().unwrap().to_string(), first);
}

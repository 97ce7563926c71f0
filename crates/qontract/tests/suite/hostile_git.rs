//! Hostile Git repositories: every command ends, and none runs a program of the repository.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use qontract_testkit::Scratch;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};

/// Time after which a command counts as hanging. Far less than the deadline of a `git` process.
const HANG_TIMEOUT: Duration = Duration::from_secs(30);

/// Every command that reads a data repo and ends, with its exit code on valid data. `DATA` is the directory,
/// `HEAD` a revision of it, and a command that begins with `IN` runs in the directory; `SANDBOX` and `RUNS`,
/// which commands write to, are outside of it.
const COMMANDS: [(&[&str], i32); 27] = [
    (&["validate", "DATA"], 0),
    (&["validate", "HEAD", "--repo", "DATA"], 0),
    (&["bundle", "DATA"], 0),
    (&["bundle", "DATA", "--rev", "HEAD"], 0),
    (&["diff", "HEAD", "DATA", "--repo", "DATA"], 0),
    (&["diff", "--repo", "DATA"], 0),
    (&["IN", "diff"], 0),
    (&["affected", "HEAD", "DATA", "--repo", "DATA"], 4),
    (&["affected", "--repo", "DATA"], 4),
    (&["IN", "affected"], 4),
    (&["plan", "--repo", "DATA", "--sandbox", "SANDBOX", "--runs", "RUNS"], 4),
    (&["IN", "plan", "--sandbox", "SANDBOX", "--runs", "RUNS"], 4),
    (&["plan", "HEAD", "--repo", "DATA", "--sandbox", "SANDBOX", "--runs", "RUNS"], 4),
    (&["plan", "HEAD", "HEAD", "--repo", "DATA", "--sandbox", "SANDBOX", "--runs", "RUNS", "--all"], 4),
    (&["query", "{ teams_v1 { name } }", "--data", "DATA"], 0),
    (&["query", "{ teams_v1 { name } }", "--data", "HEAD", "--repo", "DATA"], 0),
    (&["get", "teams", "--data", "DATA"], 0),
    (&["get", "teams", "--data", "HEAD", "--repo", "DATA"], 0),
    (&["schema", "export", "exported", "--from", "DATA"], 0),
    (&["schema", "export", "exported", "--from", "HEAD", "--repo", "DATA"], 0),
    (&["integrations", "schemas", "query-validator", "--data", "DATA"], 1),
    (&["integrations", "schemas", "query-validator", "--data", "HEAD", "--repo", "DATA"], 1),
    (&["config", "check", "--data", "DATA"], 0),
    (&["config", "check", "--data", "HEAD", "--repo", "DATA"], 0),
    (
        &[
            "reconcile",
            "query-validator",
            "--dry-run",
            "--data",
            "DATA",
            "--base",
            "HEAD",
            "--repo",
            "DATA",
            "--sandbox",
            "SANDBOX",
            "--runs",
            "RUNS",
        ],
        4,
    ),
    (
        &[
            "reconcile",
            "query-validator",
            "--dry-run",
            "--data",
            "HEAD",
            "--repo",
            "DATA",
            "--sandbox",
            "SANDBOX",
            "--runs",
            "RUNS",
        ],
        4,
    ),
    (&["up", "DATA", "--once", "--dry-run", "--sandbox", "SANDBOX", "--runs", "RUNS"], 0),
];

/// Whether a command reads a revision, named or by default.
fn reads_a_revision(arguments: &[&str]) -> bool {
    arguments.contains(&"HEAD") || arguments.iter().any(|word| ["diff", "affected", "plan"].contains(word))
}

/// The result of a command.
struct CommandOutcome {
    code: Option<i32>,
    text: String,
}

/// The setup of an attack: a directory for commands, and a file that only the attack writes.
struct AttackFixture {
    scratch: Scratch,
}

impl AttackFixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        fs::create_dir(scratch.path().join("tmp")).unwrap();
        Self { scratch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The shell command that an attack tries to run.
    fn payload(&self) -> String {
        format!("touch {}; false", self.path("PWNED").display())
    }

    /// Copies the data repo into a directory.
    fn data(&self, folder: &str) {
        let repo = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/code-examples-repo");
        self.scratch.copy(Path::new(repo), folder);
    }

    fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let folder = self.path(folder).display().to_string();
        self.scratch.git(&[&["-C", &folder], arguments].concat())
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        path
    }

    /// Runs a command with a time limit.
    fn run(&self, arguments: &[&str], data: &str) -> CommandOutcome {
        let (out, err) = (self.path("tmp/stdout"), self.path("tmp/stderr"));
        let mut command = self.command();
        let arguments = match arguments.split_first() {
            Some((&"IN", rest)) => {
                command.current_dir(self.path(data));
                rest
            }
            _ => arguments,
        };
        let arguments = arguments.iter().map(|word| match *word {
            "DATA" => data.to_owned(),
            "SANDBOX" => self.path("sandbox").display().to_string(),
            "RUNS" => self.path("runs").display().to_string(),
            word => word.to_owned(),
        });
        let mut child = command
            .args(arguments)
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let (pid, (ended, end)) = (Pid::from_child(&child), mpsc::channel());
        let waiting = std::thread::spawn(move || {
            let status = child.wait().unwrap();
            ended.send(()).ok();
            status
        });
        let is_hanging = end.recv_timeout(HANG_TIMEOUT).is_err();
        if is_hanging {
            kill_process(pid, Signal::KILL).unwrap();
        }
        let status = waiting.join().unwrap();
        let text =
            [&out, &err].map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned()).concat();
        fs::remove_file(out).unwrap();
        fs::remove_file(err).unwrap();
        assert!(!is_hanging, "it hangs: {text}");
        CommandOutcome { code: status.code(), text }
    }

    /// Runs every command, and checks that the attack had no effect and that no process or file is left
    /// behind.
    fn attack(&self, data: &str, check: impl Fn(&[&str], i32, &CommandOutcome)) {
        for (arguments, code) in COMMANDS {
            let outcome = self.run(arguments, data);
            self.unharmed(arguments);
            check(arguments, code, &outcome);
        }
        self.serve(data);
        // A server that ends while it reads may leave its temporary directory.
        assert!(!self.path("PWNED").exists(), "`serve` ran a command of the repository");
        fs::remove_dir_all(self.path("tmp")).unwrap();
        fs::create_dir(self.path("tmp")).unwrap();
    }

    /// A server also reads the commit of its directory. It serves, or ends with an error.
    fn serve(&self, data: &str) {
        let mut command = self.command();
        command.args(["serve", data, "--watch", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let printed = lines.map_while(Result::ok).find(|line| line.contains("Running at http://"));
        kill_process(Pid::from_child(&child), Signal::TERM).ok();
        child.wait().unwrap();
        assert!(printed.is_some(), "it does not serve");
    }

    /// The binary, with its own state and cache directories.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command
            .current_dir(self.scratch.path())
            .env("NO_COLOR", "1")
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("GIT_CEILING_DIRECTORIES", self.scratch.path().parent().unwrap())
            .stdin(Stdio::null());
        command
    }

    fn unharmed(&self, arguments: &[&str]) {
        assert!(!self.path("PWNED").exists(), "{arguments:?} ran a command of the repository");
        let left: Vec<_> =
            fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{arguments:?} left {left:?}");
    }
}

fn works(arguments: &[&str], code: i32, outcome: &CommandOutcome) {
    assert_eq!(outcome.code, Some(code), "{arguments:?}: {}", outcome.text);
}

fn ends(arguments: &[&str], _: i32, outcome: &CommandOutcome) {
    assert!(
        outcome.code.is_some_and(|code| code < 100),
        "{arguments:?}: {:?} {}",
        outcome.code,
        outcome.text
    );
}

/// Files that make a directory look like a bare repository with a command that fetches its missing commit.
fn embed_bare_repository(stage: &AttackFixture, folder: &str) {
    let write = |name: &str, text: &str| drop(stage.scratch.write(&format!("{folder}/{name}"), text));
    write("HEAD", "ref: refs/heads/main\n");
    write("refs/heads/main", "1111111111111111111111111111111111111111\n");
    write("objects/.keep", "");
    let (nowhere, payload) = (stage.path("nowhere").display().to_string(), stage.payload());
    write(
        "config",
        &format!(
            "[core]\n repositoryformatversion = 1\n bare = true\n[extensions]\n partialClone = origin\n\
             [remote \"origin\"]\n url = {nowhere}\n promisor = true\n uploadpack = \"{payload}\"\n"
        ),
    );
}

#[test]
fn a_bare_repository_among_the_files_of_a_clone_is_not_taken_for_the_repository() {
    let stage = AttackFixture::new();
    stage.data("mono/sub");
    embed_bare_repository(&stage, "mono/sub");
    stage.git("mono", &["init", "--quiet", "--initial-branch=main"]);
    stage.git("mono", &["add", "--all"]);
    stage.git("mono", &["commit", "--quiet", "--message", "all"]);
    stage.git("", &["clone", "--quiet", "mono", "clone"]);
    assert!(stage.path("clone/sub/objects").is_dir());
    // Everything works, on the commit of the repository around it.
    stage.attack("clone/sub", works);
    let outcome = stage.run(&["bundle", "DATA"], "clone/sub");
    assert!(outcome.text.contains(&stage.git("mono", &["rev-parse", "HEAD"])), "{}", outcome.text);
}

#[test]
fn a_directory_that_looks_like_a_bare_repository_runs_nothing() {
    let stage = AttackFixture::new();
    stage.data("folder");
    embed_bare_repository(&stage, "folder");
    stage.attack("folder", ends);
    works(&["validate"], 0, &stage.run(&["validate", "DATA"], "folder"));
}

#[test]
fn a_file_that_is_named_like_a_revision_is_not_taken_for_it() {
    let stage = AttackFixture::new();
    stage.data("origin");
    stage.git("origin", &["init", "--quiet", "--initial-branch=main"]);
    stage.git("origin", &["add", "--all"]);
    stage.git("origin", &["commit", "--quiet", "--message", "all"]);
    stage.git("", &["clone", "--quiet", "origin", "clone"]);
    // Each would be read as a bundle, and would become the base of a comparison.
    for name in ["HEAD", "origin/HEAD", "origin/main", "main"] {
        stage.scratch.write(&format!("clone/{name}"), "{}");
    }
    let here = ["--sandbox", "SANDBOX", "--runs", "RUNS"];
    for (words, code) in [
        (&["IN", "diff"][..], 0),
        (&["IN", "affected"], 4),
        (&["IN", "plan"], 4),
        (&["IN", "validate", "HEAD"], 0),
        (&["IN", "validate", "origin/HEAD"], 0),
    ] {
        let arguments = if words[1] == "plan" { [words, &here[..]].concat() } else { words.to_vec() };
        works(&arguments, code, &stage.run(&arguments, "clone"));
    }
    for word in ["main", "origin/main"] {
        let outcome = stage.run(&["IN", "diff", word], "clone");
        assert_eq!(outcome.code, Some(2), "{}", outcome.text);
        let hint = format!("`{word}` is both a path and a Git revision: write `./{word}` for the path");
        assert!(outcome.text.contains(&hint), "{}", outcome.text);
    }
}

/// Everything in a Git directory that names a program or a file to read.
fn hostile_git_dir(stage: &AttackFixture, repo: &str) {
    let (payload, fifo) = (stage.payload(), stage.fifo("fifo").display().to_string());
    let config = format!(
        "[core]\n repositoryformatversion = 1\n bare = false\n fsmonitor = \"{payload}\"\n hooksPath = {hooks}\n \
         sshCommand = \"{payload}\"\n pager = \"{payload}\"\n editor = \"{payload}\"\n gitProxy = \"{payload}\"\n \
         askPass = \"{payload}\"\n alternateRefsCommand = \"{payload}\"\n attributesFile = {attributes}\n\
         [extensions]\n partialClone = origin\n worktreeConfig = true\n\
         [remote \"origin\"]\n url = \"ext::{payload}\"\n promisor = true\n uploadpack = \"{payload}\"\n vcs = x\n\
         [protocol]\n allow = always\n[protocol \"ext\"]\n allow = always\n\
         [include]\n path = {fifo}\n[includeIf \"gitdir:**\"]\n path = {fifo}\n\
         [mailmap]\n file = {fifo}\n[log]\n mailmap = true\n showSignature = true\n[gpg]\n program = \"{payload}\"\n\
         [filter \"x\"]\n smudge = \"{payload}\"\n clean = \"{payload}\"\n process = \"{payload}\"\n required = true\n\
         [diff]\n external = \"{payload}\"\n[diff \"x\"]\n textconv = \"{payload}\"\n command = \"{payload}\"\n\
         [alias]\n cat-file = \"!{payload}\"\n ls-tree = \"!{payload}\"\n rev-parse = \"!{payload}\"\n log = \"!{payload}\"\n\
         [uploadpack]\n packObjectsHook = \"{payload}\"\n[credential]\n helper = \"!{payload}\"\n\
         [pager]\n log = \"{payload}\"\n cat-file = \"{payload}\"\n ls-tree = \"{payload}\"\n rev-parse = \"{payload}\"\n",
        hooks = stage.path(repo).join(".git/hooks").display(),
        attributes = stage.path(repo).join(".git/info/attributes").display(),
    );
    stage.scratch.write(&format!("{repo}/.git/config"), &config);
    stage.scratch.write(&format!("{repo}/.git/config.worktree"), &config);
    stage.scratch.write(&format!("{repo}/.git/info/attributes"), "* filter=x diff=x\n");
    stage.scratch.write(&format!("{repo}/.git/objects/info/commit-graph"), "CGPH\u{1}\u{1}\u{ff}");
    for hook in
        ["post-checkout", "pre-auto-gc", "reference-transaction", "fsmonitor-watchman", "post-index-change"]
    {
        let file =
            stage.scratch.write(&format!("{repo}/.git/hooks/{hook}"), format!("#!/bin/sh\n{payload}\n"));
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_hostile_git_directory_runs_nothing_and_does_not_block() {
    let stage = AttackFixture::new();
    stage.data("repo");
    stage.scratch.write("repo/.gitattributes", "* filter=x diff=x\n");
    stage.git("repo", &["init", "--quiet", "--initial-branch=main"]);
    stage.git("repo", &["add", "--all"]);
    stage.git("repo", &["commit", "--quiet", "--message", "all"]);
    hostile_git_dir(&stage, "repo");
    std::os::unix::fs::symlink(stage.path("fifo"), stage.path("repo/.mailmap")).unwrap();
    // Its configuration is not read, so everything works.
    stage.attack("repo", works);
}

#[test]
fn objects_that_are_missing_are_not_fetched() {
    let stage = AttackFixture::new();
    stage.data("repo");
    stage.git("repo", &["init", "--quiet", "--initial-branch=main"]);
    stage.git("repo", &["add", "--all"]);
    stage.git("repo", &["commit", "--quiet", "--message", "all"]);
    let blob = stage.git("repo", &["rev-parse", "HEAD:graphql-schemas/schema.yml"]);
    fs::remove_file(stage.path(&format!("repo/.git/objects/{}/{}", &blob[..2], &blob[2..]))).unwrap();
    hostile_git_dir(&stage, "repo");
    stage.attack("repo", |arguments, code, outcome| {
        if reads_a_revision(arguments) {
            assert!(
                outcome.code.is_some_and(|code| [1, 2].contains(&code)),
                "{arguments:?}: {}",
                outcome.text
            );
        } else {
            works(arguments, code, outcome);
        }
    });
}

/// Writes a loose blob whose header states a wrong size; returns its id.
///
/// `git` reads the size from the header, as it does for a blob that is really that large and compresses well.
fn blob_of_stated_size(stage: &AttackFixture, repo: &str, size: u64) -> String {
    let content = format!("blob {size}\0xxxx");
    let length = u16::try_from(content.len()).unwrap();
    // A zlib stream with one stored block.
    let mut bytes = vec![0x78, 0x01, 0x01];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(content.as_bytes());
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in content.bytes() {
        a = (a + u32::from(byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    bytes.extend((b << 16 | a).to_be_bytes());
    let id = "1234567890123456789012345678901234567890";
    stage.scratch.write(&format!("{repo}/.git/objects/{}/{}", &id[..2], &id[2..]), bytes);
    id.to_owned()
}

#[test]
fn a_link_of_gigabytes_is_refused_by_its_size() {
    let stage = AttackFixture::new();
    stage.data("repo");
    stage.git("repo", &["init", "--quiet", "--initial-branch=main"]);
    stage.git("repo", &["add", "--all"]);
    let blob = blob_of_stated_size(&stage, "repo", 1_600_000_000);
    stage.git(
        "repo",
        &["update-index", "--add", "--cacheinfo", &format!("120000,{blob},data/teams/large.yml")],
    );
    let tree = stage.git("repo", &["write-tree", "--missing-ok"]);
    let commit = stage.git("repo", &["commit-tree", &tree, "-m", "all"]);
    stage.git("repo", &["update-ref", "HEAD", &commit]);
    stage.attack("repo", |arguments, code, outcome| {
        if reads_a_revision(arguments) {
            let text = &outcome.text;
            assert!(text.contains("the target of the link has 1600000000 bytes"), "{arguments:?}: {text}");
        } else {
            works(arguments, code, outcome);
        }
    });
}

#[test]
fn a_name_like_an_option_is_a_name() {
    let stage = AttackFixture::new();
    stage.data("repo");
    stage.git("repo", &["init", "--quiet", "--initial-branch=main"]);
    stage.git("repo", &["add", "--all"]);
    stage.git("repo", &["commit", "--quiet", "--message", "all"]);
    let head = stage.git("repo", &["rev-parse", "HEAD"]);
    for branch in ["refs/heads/-x", "refs/heads/--batch-all-objects"] {
        stage.git("repo", &["update-ref", branch, &head]);
    }
    stage.git("repo", &["symbolic-ref", "HEAD", "refs/heads/-x"]);
    let upload = format!("--upload-pack={}", stage.payload());
    let words =
        [upload.as_str(), "--exec=touch x", "-cx=y", "-x", "--batch-all-objects", "--help", "HEAD\n--buffer"];
    for word in words {
        let forms: [&[&str]; 5] = [
            &["validate", "--repo", "DATA", "--", word],
            &["bundle", "DATA", &format!("--rev={word}")],
            &["diff", "--repo", "DATA", "--", word, "HEAD"],
            &["query", "{ teams_v1 { name } }", "--repo", "DATA", &format!("--data={word}")],
            &["schema", "export", "exported", "--repo", "DATA", &format!("--from={word}")],
        ];
        for arguments in forms {
            let outcome = stage.run(arguments, "repo");
            stage.unharmed(arguments);
            assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.text);
        }
    }
    // A branch of such a name is read by its full name, and through refs to it.
    for word in ["refs/heads/-x", "HEAD"] {
        works(&[word], 0, &stage.run(&["validate", word, "--repo", "DATA"], "repo"));
    }
}

#[test]
fn a_repository_with_alternates_is_refused_with_a_hint() {
    let stage = AttackFixture::new();
    stage.data("repo");
    stage.git("repo", &["init", "--quiet", "--initial-branch=main"]);
    stage.git("repo", &["add", "--all"]);
    stage.git("repo", &["commit", "--quiet", "--message", "all"]);
    stage.git("", &["clone", "--quiet", "--shared", "repo", "clone"]);
    for arguments in [&["validate", "DATA"][..], &["validate", "HEAD", "--repo", "DATA"]] {
        let outcome = stage.run(arguments, "clone");
        assert_eq!(outcome.code, Some(2), "{}", outcome.text);
        assert!(outcome.text.contains("git repack -a -d"), "{}", outcome.text);
    }
    // Only the commit is refused: with `--commit`, the repository is not needed.
    let named = ["bundle", "DATA", "--commit", "abc", "--commit-timestamp", "1"];
    works(&named, 0, &stage.run(&named, "clone"));
}

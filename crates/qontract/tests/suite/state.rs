//! Tests of `qontract state`, in a sandbox and on S3.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Output, Stdio};

use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, eventually, free_port};
use serde_json::Value;

use crate::support::operator::stderr;

/// The key that the tests write.
const KEY: &str = "shop/stage";

/// A directory with a configuration and run records. The arguments select its state store.
struct Fixture {
    scratch: Scratch,
    store: Vec<String>,
}

impl Fixture {
    fn sandbox() -> Self {
        Self { scratch: Scratch::new(), store: vec!["--sandbox".to_owned(), "sandbox".to_owned()] }
    }

    fn bucket(endpoint: &str) -> Self {
        let scratch = Scratch::new();
        let key = "[creds.s3]\naws_access_key_id = \"AKIATEST\"\naws_secret_access_key = \"s3cret-key\"\n";
        let bucket = format!("bucket = \"bucket\"\nendpoint = {endpoint:?}\nsecret = \"creds/s3\"\n");
        scratch.write("config.toml", format!("[targets.state]\n{bucket}{key}"));
        Self { scratch, store: vec!["--config".to_owned(), "config.toml".to_owned()] }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        let folder = self.scratch.path();
        command.current_dir(folder).env("HOME", folder).env("NO_COLOR", "1").env("QONTRACT_RUNS", "runs");
        command.env_remove("XDG_CONFIG_HOME").env_remove("QONTRACT_CONFIG").env("NO_PROXY", "127.0.0.1");
        command.arg("state").args(words).args(&self.store);
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output: Output = self.command(words).output().unwrap();
        let out = String::from_utf8(output.stdout.clone()).unwrap();
        (output.status.code().expect("it is not killed"), out, stderr(&output))
    }

    #[track_caller]
    fn check(&self, words: &[&str], expect: (i32, &str, &str)) {
        let (code, out, err) = self.run(words);
        assert_eq!((code, out.as_str(), err.as_str()), expect, "{words:?}");
    }

    /// The lines of the audit log.
    fn audit(&self) -> Vec<String> {
        let file = self.scratch.path().join("runs/trail.jsonl");
        let trail = std::fs::read_to_string(file).unwrap_or_default();
        // A line that is being written has no line feed yet.
        let lines = trail.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let text =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["message"].as_str().unwrap().to_owned();
        lines.map(text).collect()
    }

    /// Everything that an operator does with a key.
    fn check_operations(&self) {
        let value = r#"{"b": [1, 2.5], "a": "é"}"#;
        let stored = "{\"a\": \"\\u00e9\", \"b\": [1, 2.5]}\n";
        self.check(&["ls", "promoter"], (0, "", ""));
        self.check(
            &["get", "promoter", KEY],
            (1, "", "error: `/shop/stage` not found in the state of `promoter`\n"),
        );
        self.check(
            &["set", "promoter", KEY, value, "--dry-run"],
            (0, "", "created: `/shop/stage` (dry run)\n"),
        );
        self.check(&["ls", "promoter"], (0, "", ""));
        assert_eq!(self.audit(), Vec::<String>::new());
        self.check(&["set", "promoter", KEY, value], (0, "", "created: `/shop/stage`\n"));
        self.check(&["get", "promoter", KEY], (0, stored, ""));
        // The same value is not written again, in whichever order.
        self.check(&["set", "promoter", KEY, stored], (0, "", "unchanged: `/shop/stage`\n"));
        assert_eq!(self.audit(), ["+ state `/shop/stage`: begun", "+ state `/shop/stage`"]);
        let changed = "{\"key\":\"/shop/stage\",\"change\":\"changed\",\"dry_run\":false}\n";
        let (code, out, err) = self.run(&["set", "promoter", "/shop/stage", "7", "-o", "json"]);
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!((code, parse(&out), err.as_str()), (0, parse(changed), ""));
        self.check(&["ls", "promoter", "-o", "json"], (0, "[\"/shop/stage\"]\n", ""));
        self.check(&["ls", "other"], (0, "", ""));
        self.check(&["rm", "promoter", KEY, "--dry-run"], (0, "", "removed: `/shop/stage` (dry run)\n"));
        self.check(&["get", "promoter", KEY], (0, "7\n", ""));
        self.check(&["rm", "promoter", KEY], (0, "", "removed: `/shop/stage`\n"));
        let (code, _, err) = self.run(&["rm", "promoter", KEY]);
        assert!(code == 1 && err.contains("not found in the state of `promoter`"), "{err}");
        let (code, _, err) = self.run(&["set", "promoter", KEY, "text"]);
        assert!(code == 2 && err.contains("the value is not JSON"), "{err}");
        assert_eq!(self.audit().len(), 6);
    }

    /// A `set` that is killed while it writes leaves the old value or the new one, and is completed by the next.
    fn check_kills(&self) {
        self.check(&["set", "promoter", KEY, "0"], (0, "", "created: `/shop/stage`\n"));
        let values: Vec<String> =
            (1..4).map(|number| format!("\"{}\"", number.to_string().repeat(2 << 20))).collect();
        let mut before = "0\n".to_owned();
        for value in &values {
            let begun = self.audit().len();
            let mut child = self
                .command(&["set", "promoter", KEY, "-"])
                .stdin(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
            eventually("the write begins", || (self.audit().len() > begun).then_some(()));
            // It may have ended already.
            let _ = child.kill();
            child.wait().unwrap();
            let (code, out, err) = self.run(&["get", "promoter", KEY]);
            assert!(code == 0 && (out == before || out == format!("{value}\n")), "{code} {err}");
            let mut again = self.command(&["set", "promoter", KEY, "-"]);
            let mut again = again.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            again.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
            assert!(again.wait().unwrap().success());
            before = format!("{value}\n");
            assert!(self.run(&["get", "promoter", KEY]).1 == before);
        }
    }
}

#[test]
fn state_of_a_sandbox_is_listed_read_and_changed() {
    Fixture::sandbox().check_operations();
}

#[test]
fn a_second_set_of_the_same_value_writes_nothing_and_a_damaged_value_is_an_error() {
    let fixture = Fixture::sandbox();
    fixture.check(&["set", "promoter", KEY, "[1]"], (0, "", "created: `/shop/stage`\n"));
    let file = "sandbox/state/state/promoter/shop/stage.blob";
    let inode = || std::fs::metadata(fixture.scratch.path().join(file)).unwrap().ino();
    let before = inode();
    fixture.check(&["set", "promoter", KEY, "[ 1 ]"], (0, "", "unchanged: `/shop/stage`\n"));
    assert_eq!(inode(), before, "the file was not replaced");
    fixture.scratch.write(file, "[1");
    let error = "error: blob `state/promoter/shop/stage` is malformed: it is not JSON\nhint: restore it, or remove it with `qontract state rm promoter /shop/stage`\n";
    fixture.check(&["get", "promoter", KEY], (1, "", error));
    fixture.check(&["set", "promoter", KEY, "[1]"], (1, "", error));
    assert_eq!(fixture.scratch.read(file), "[1");
    fixture.check(&["rm", "promoter", KEY], (0, "", "removed: `/shop/stage`\n"));
    fixture.check(&["set", "promoter", KEY, "[1]"], (0, "", "created: `/shop/stage`\n"));
}

#[test]
fn a_set_in_a_sandbox_can_be_killed() {
    Fixture::sandbox().check_kills();
}

#[test]
fn without_an_audit_log_nothing_is_changed() {
    let fixture = Fixture::sandbox();
    fixture.scratch.write("runs", "not a directory");
    let (code, _, err) = fixture.run(&["set", "promoter", KEY, "1"]);
    assert!(code == 1 && err.contains("cannot create `runs`"), "{code} {err}");
    fixture.check(&["ls", "promoter"], (0, "", ""));
}

#[test]
fn a_store_that_is_missing_or_unreachable_is_an_error() {
    let fixture = Fixture { scratch: Scratch::new(), store: Vec::new() };
    let (code, _, err) = fixture.run(&["ls", "promoter"]);
    assert!(code == 2 && err.contains("no state store is configured: set `targets.state.bucket`"), "{err}");
    let fixture = Fixture::bucket(&format!("http://127.0.0.1:{}", free_port()));
    let (code, _, err) = fixture.run(&["ls", "promoter"]);
    assert!(code == 75 && err.contains("connection refused"), "{code} {err}");
}

#[test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
fn real_s3_state_is_listed_read_and_changed() {
    let server = TestAws::start();
    server.bucket("bucket");
    let fixture = Fixture::bucket(&server.url());
    fixture.check_operations();
    fixture.check_kills();
    // Bounds of writes apply to operators as well: requests to S3 cannot be compared with them.
    let config = fixture.scratch.read("config.toml");
    fixture.scratch.write("config.toml", format!("[guards]\nwrites = []\n{config}"));
    let (code, _, err) = fixture.run(&["rm", "promoter", KEY]);
    let expect = "writing to bucket `bucket` is refused: the write permit of this run allows nothing";
    assert!(code == 1 && err.contains(expect), "{code} {err}");
    assert_eq!(fixture.run(&["ls", "promoter"]).1, "/shop/stage\n");
}

//! Tests of the `up` table on terminals of several sizes, with a terminal emulator.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Makes the terminal on stdin the controlling one, and executes the given program.
const LAUNCHER: &str = "import os, sys, fcntl, termios\n\
    os.setsid()\n\
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n\
    os.execv(sys.argv[1], sys.argv[1:])\n";

const UP: [&str; 6] = ["up", "repo", "--sandbox", "sandbox", "--runs", "runs"];

/// A terminal emulator: its rows of text, and the lines that scrolled away.
struct Emulator {
    width: usize,
    rows: Vec<Vec<char>>,
    at: (usize, usize),
    history: Vec<String>,
    /// Number of times that the rest of the screen was cleared.
    clears: usize,
}

impl Emulator {
    fn new(width: usize, height: usize) -> Self {
        Self { width, rows: vec![Vec::new(); height], at: (0, 0), history: Vec::new(), clears: 0 }
    }

    fn text(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect()
    }

    fn feed(&mut self, text: &str) {
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\r' => self.at.1 = 0,
                '\n' => self.line_feed(),
                '\x1b' => {
                    assert_eq!(letters.next(), Some('['), "only sequences that begin with ESC [");
                    let mut numbers = String::new();
                    while letters.peek().is_some_and(|next| next.is_ascii_digit() || *next == ';') {
                        numbers.extend(letters.next());
                    }
                    self.command(letters.next().unwrap(), numbers.parse().unwrap_or(1));
                }
                letter => self.put(letter),
            }
        }
    }

    fn command(&mut self, letter: char, number: usize) {
        match letter {
            'A' => self.at.0 -= number.min(self.at.0),
            'K' => {
                let (row, column) = self.at;
                self.rows[row].truncate(column);
            }
            'J' => self.clears += 1,
            'm' => {}
            other => panic!("ESC [ {number} {other}"),
        }
    }

    fn line_feed(&mut self) {
        if self.at.0 + 1 < self.rows.len() {
            self.at.0 += 1;
        } else {
            let gone = self.rows.remove(0);
            self.history.push(gone.iter().collect());
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, letter: char) {
        if self.at.1 >= self.width {
            self.at.1 = 0;
            self.line_feed();
        }
        let (row, column) = self.at;
        let line = &mut self.rows[row];
        line.resize(line.len().max(column + 1), ' ');
        line[column] = letter;
        self.at.1 += 1;
    }
}

/// The binary on its own terminal.
struct LiveScreen {
    child: Child,
    screen: File,
    pending: Vec<u8>,
    emulator: Emulator,
}

impl LiveScreen {
    fn run(folder: &Path, (width, height): (u16, u16)) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let own = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
        let python = std::env::var("QONTRACT_PYTHON").expect("`cargo xtask test` sets QONTRACT_PYTHON");
        let child = Command::new(python)
            .args(["-c", LAUNCHER, env!("CARGO_BIN_EXE_qontract")])
            .args(UP)
            .current_dir(folder)
            .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
            .stdin(own())
            .stdout(own())
            .stderr(own())
            .spawn()
            .unwrap();
        let emulator = Emulator::new(width.into(), height.into());
        Self { child, screen: File::from(controller), pending: Vec::new(), emulator }
    }

    /// Reads until the screen satisfies a condition.
    fn until(&mut self, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut bytes = [0; 4096];
        loop {
            let text = self.emulator.text();
            if wanted(&text) {
                return text;
            }
            // If it is never satisfied, the deadline ends the test.
            let count = self.screen.read(&mut bytes).unwrap_or_else(|error| panic!("{error}: {text:#?}"));
            self.pending.extend_from_slice(&bytes[..count]);
            let whole = match std::str::from_utf8(&self.pending) {
                Ok(text) => text.len(),
                Err(error) => error.valid_up_to(),
            };
            // An incomplete sequence waits for the rest.
            let text = String::from_utf8(self.pending[..whole].to_vec()).unwrap();
            let end = match text.rfind('\x1b') {
                Some(start) if !text[start + 1..].contains(|letter: char| letter.is_ascii_alphabetic()) => {
                    start
                }
                _ => text.len(),
            };
            self.emulator.feed(&text[..end]);
            self.pending.drain(..end);
        }
    }

    fn has_echo(&self) -> bool {
        tcgetattr(&self.screen).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Ends the process, and returns its exit code.
    fn end(&mut self, signals: usize) -> Option<i32> {
        for _ in 0..signals {
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        }
        let mut bytes = [0; 4096];
        while self.screen.read(&mut bytes).is_ok_and(|count| count > 0) {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch
}

/// The example on a sandbox in which it is applied.
fn done() -> Scratch {
    let scratch = stage();
    let output = qontract(scratch.path(), &[&UP[..], &["--once"]].concat());
    assert!(output.status.success(), "{output:?}");
    scratch
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn at_80_by_24_every_integration_is_on_the_screen() {
    let scratch = done();
    let mut live = LiveScreen::run(scratch.path(), (80, 24));
    let all_ok = |lines: &[String]| lines.iter().filter(|line| line.starts_with("ok ")).count() == 14;
    let lines = live
        .until(|lines| all_ok(lines) || lines.iter().any(|line| line.contains("13 integrations · 13 ok")));
    let title = lines.iter().position(|line| line.starts_with("qontract up · repo")).expect("a title");
    assert!(title > 0, "a line is left to the log: {lines:#?}");
    assert!(lines[title].contains(" · real run · sandbox sandbox"), "{lines:#?}");
    assert!(lines[title + 1].starts_with("STATE     INTEGRATION "), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("ok        openshift-namespaces ")), "{lines:#?}");
    let totals = lines.iter().rfind(|line| !line.is_empty()).unwrap();
    // Without promtool, one of them is not checked.
    let ok = [" ok · 0 changes · ", " ok · 1 not checked · 0 changes · "];
    assert!(ok.iter().any(|ok| totals.contains(ok)) && totals.ends_with("Ctrl-C to stop"), "{lines:#?}");
    assert!(!live.has_echo(), "typed keys are not echoed");
    assert_eq!(live.end(1), Some(0));
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn failures_are_first_on_the_smallest_terminal_and_nothing_floods_the_history() {
    let scratch = done();
    // A template that cannot be rendered: only that integration fails.
    let template = "repo/resources/shop/app-config.configmap.yaml.j2";
    scratch.write(template, format!("{}\nextra: {{{{ not_there.at_all }}}}\n", scratch.read(template)));
    let mut live = LiveScreen::run(scratch.path(), (40, 10));
    let lines =
        live.until(|lines| lines.iter().any(|line| line.starts_with("failed    openshift-resources")));
    assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");
    let header = lines.iter().position(|line| line.starts_with("STATE ")).expect("a header");
    assert!(lines[header + 1].starts_with("failed "), "{lines:#?}");
    // Several redraws later, only log lines have scrolled away.
    live.until(|lines| lines.iter().any(|line| line.contains("failed · ") || line.contains(" failed")));
    let is_table = |line: &&String| line.starts_with("STATE ") || line.starts_with("qontract up ·");
    assert_eq!(live.emulator.history.iter().filter(is_table).count(), 0, "{:#?}", live.emulator.history);
    assert_eq!(live.emulator.clears, 0, "the screen is never cleared");
    live.end(1);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_terminal_is_restored_on_every_exit() {
    let scratch = done();
    for signals in [1, 2] {
        let mut live = LiveScreen::run(scratch.path(), (120, 40));
        live.until(|lines| lines.iter().any(|line| line.starts_with("STATE ")));
        assert!(!live.has_echo());
        // Keys pressed while `up` runs are not passed to the shell.
        live.screen.write_all(b"typed\n").unwrap();
        let text = live.emulator.text();
        live.end(signals);
        assert!(live.has_echo(), "after {signals} signals: {text:#?}");
        assert!(!live.emulator.text().iter().any(|line| line.contains("typed")));
    }
}

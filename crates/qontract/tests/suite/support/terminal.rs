//! Runs the binary on its own terminal.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The binary on its own terminal.
pub struct Terminal {
    child: Child,
    screen: File,
    seen: String,
}

impl Terminal {
    /// Starts it in `folder`.
    pub fn run(folder: &Path, arguments: &[&str]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let own = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_qontract"))
            .current_dir(folder)
            .args(arguments)
            .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
            // The output must not depend on the environment of the tests.
            .env_remove("CI")
            .env("TERM", "xterm-256color")
            .stdin(own())
            .stdout(own())
            .stderr(own())
            .spawn()
            .unwrap();
        Self { child, screen: File::from(controller), seen: String::new() }
    }

    /// Waits until a string is shown, and discards the output before it.
    pub fn until(&mut self, text: &str) {
        let mut bytes = [0; 4096];
        while !self.seen.contains(text) {
            // If it is never shown, the deadline or the end of the process ends the test.
            let count = self.screen.read(&mut bytes).unwrap_or_else(|error| panic!("{error}: {}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        let end = self.seen.find(text).unwrap() + text.len();
        self.seen.drain(..end);
    }

    /// Sends Ctrl-C, and returns the exit code.
    pub fn interrupt(&mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        // A terminal that is not read blocks its writers.
        let mut bytes = [0; 4096];
        while self.screen.read(&mut bytes).is_ok_and(|count| count > 0) {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The process has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The wall clock of a process, stepped from outside while it runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use qontract_testkit::Scratch;

/// A clock that is ahead of the real one, or behind it. The monotonic clock and the times of files stay real.
pub struct SteppedClock {
    library: OsString,
    file: PathBuf,
}

impl SteppedClock {
    /// The real time, until the first step.
    pub fn new(scratch: &Scratch) -> Self {
        let library =
            std::env::var_os("QONTRACT_FAKETIME").expect("`cargo xtask test` sets QONTRACT_FAKETIME");
        let clock = Self { library, file: scratch.path().join("clock") };
        clock.step("+0");
        clock
    }

    /// Steps the clock to this offset from the real one, such as `-30h`, also for processes that run.
    pub fn step(&self, offset: &str) {
        let fresh = self.file.with_extension("new");
        std::fs::write(&fresh, format!("{offset}\n")).expect("the clock can be written");
        std::fs::rename(fresh, &self.file).expect("the clock can be replaced");
    }

    /// Gives this clock to a command.
    pub fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1")
    }
}

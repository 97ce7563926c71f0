//! One question to an executable and its answer, within a deadline.
//!
//! **Invariant:** the executable and all that it starts are in a process group of their own, which outlives neither the
//! deadline nor the run that asked.

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::Value;

use super::Program;
use crate::fault::Fault;

/// The longest answer.
const LONGEST: u64 = 64 << 20;
/// How much of what it says on stderr is told when it fails.
const TOLD: usize = 2000;
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(2);
/// How often it is looked whether anybody still waits for the answer.
const LOOK_UP: Duration = Duration::from_millis(50);
/// How long the last words of an executable that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// What an executable gets of our own environment.
const INHERITED: [&str; 3] = ["PATH", "LANG", "TZ"];

/// Whether anybody still waits for the answer.
#[derive(Clone, Debug, Default)]
pub struct Given(Arc<AtomicBool>);

/// Whoever waits for an answer holds this; dropped, it gives it up.
#[derive(Debug)]
pub struct Waiting(Given);

impl Waiting {
    /// Somebody waits.
    pub fn new() -> (Self, Given) {
        let given = Given::default();
        (Self(given.clone()), given)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Given {
    fn up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One question.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The last argument of the executable.
    pub phase: &'a str,
    /// Its stdin.
    pub request: &'a Value,
    /// Whether it gets what it needs to write.
    pub writing: bool,
    /// Whether anybody still waits for the answer.
    pub given: &'a Given,
}

/// Asks an executable: the answer is its stdout.
pub fn exchange(program: &Program, question: Question<'_>) -> Result<Vec<u8>, Fault> {
    let Question { phase, request, writing, given } = question;
    let mut child = Group(start(program, phase, writing)?);
    let text = request.to_string();
    let (done, finished) = mpsc::channel();
    let (stdin, stdout, stderr) = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
    // An executable that does not read to the end has its reasons; its answer decides.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes())));
    let (talked, talk) = mpsc::channel();
    thread::spawn(move || talked.send(stderr.map(limited)));
    thread::spawn(move || done.send(stdout.map(limited)));
    let name = program.name();
    let began = Instant::now();
    let left = || program.deadline.saturating_sub(began.elapsed());
    let answer = loop {
        let answer = finished.recv_timeout(left().min(LOOK_UP)).ok();
        if answer.is_some() || left().is_zero() || given.up() {
            break answer;
        }
    };
    let (Some(answer), Some(status)) = (answer, child.end(&|| left().is_zero() || given.up())) else {
        drop(child);
        if given.up() {
            return Err(Fault::us(format!("nobody waits for `{phase}` of {name} any more")));
        }
        let within = program.deadline.as_secs();
        return Err(Fault::remote(format!("`{phase}` of {name} took longer than {within} s")));
    };
    // What still holds stderr is none of ours any more: it is not waited for.
    let said = talk.recv_timeout(LAST_WORDS).ok().flatten().and_then(Result::ok).unwrap_or_default();
    let answer = match answer {
        Some(Ok(answer)) => answer,
        // What is too long is not read to its end, so that the executable fails as well: this is why.
        Some(Err(error)) => return Err(Fault::operator(format!("`{phase}` of {name}: {error}"))),
        None => return Err(Fault::us(format!("`{phase}` of {name} has no stdout"))),
    };
    if !status.success() {
        let said = program.redacted(&String::from_utf8_lossy(&said));
        let said = said.trim();
        let start = said.len().saturating_sub(TOLD);
        let start = (start..=said.len()).find(|place| said.is_char_boundary(*place)).unwrap_or_default();
        return Err(Fault::operator(format!("`{phase}` of {name} failed ({status}): {}", &said[start..])));
    }
    Ok(answer)
}

fn start(program: &Program, phase: &str, writing: bool) -> Result<Child, Fault> {
    let mut words = program.command.iter();
    let Some(executable) = words.next() else {
        return Err(Fault::operator("an integration of the process form has no `command`"));
    };
    let mut command = Command::new(executable);
    command.args(words).arg(phase).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    command.envs(&program.environment);
    if writing {
        command.envs(&program.write_environment);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.spawn().map_err(|error| Fault::operator(format!("{} cannot be started: {error}", program.name())))
}

fn limited(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("the answer is longer than {} MiB", LONGEST >> 20)));
    }
    Ok(bytes)
}

/// A child that takes its group with it.
struct Group(Child);

impl Group {
    /// How it ended by itself, if it does so in time; what it started and left behind ends with it.
    fn end(&mut self, is_late: &dyn Fn() -> bool) -> Option<ExitStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(self.pid()?), options).ok()?.is_none() {
            if is_late() {
                return None;
            }
            thread::sleep(LOOK);
        }
        // It is not reaped yet, so that its number, and that of its group, is still its own.
        self.kill();
        self.0.wait().ok()
    }

    fn kill(&self) {
        if let Some(pid) = self.pid() {
            // Gone already is fine.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Reaped already: the number may be another's by now.
        if self.0.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        self.kill();
        let _ = self.0.wait();
    }
}

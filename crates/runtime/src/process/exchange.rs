//! One question to an executable and its answer, within a deadline.
//!
//! **Invariant:** the executable and all that it starts are in a process group of their own, which outlives neither the
//! deadline nor the run that asked.

use std::io::{self, Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use qontract_child::Group;
use serde_json::Value;

use super::Program;
use super::memory::{Answer, AnswerMemory};
use crate::fault::Fault;

/// How much of the end of what it says on stderr is read into memory.
const STDERR_TAIL: usize = 64 << 10;
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
    /// What the answers of the program may take.
    pub memory: &'a Arc<AnswerMemory>,
}

/// Asks an executable: the answer is its stdout.
pub fn exchange(program: &Program, question: Question<'_>) -> Result<Answer, Fault> {
    let Question { phase, request, writing, given, memory } = question;
    let mut child = start(program, phase, writing)?;
    let text = request.to_string();
    let (done, finished) = mpsc::channel();
    let (stdin, stdout, stderr) = child.take_pipes();
    // An executable that does not read to the end has its reasons; its answer decides.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes())));
    let (talked, talk) = mpsc::channel();
    thread::spawn(move || talked.send(stderr.map(tail)));
    let memory = Arc::clone(memory);
    thread::spawn(move || done.send(stdout.map(|stdout| memory.read(stdout))));
    let name = program.name();
    let began = Instant::now();
    let left = || program.deadline.saturating_sub(began.elapsed());
    let answer = loop {
        let answer = finished.recv_timeout(left().min(LOOK_UP)).ok();
        if answer.is_some() || left().is_zero() || given.up() {
            break answer;
        }
    };
    let (Some(answer), Some(status)) = (answer, end(&mut child, || left().is_zero() || given.up())) else {
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
        let said = program.redacted(&String::from_utf8_lossy(&said), request);
        let said = said.trim();
        let start = said.len().saturating_sub(TOLD);
        let start = (start..=said.len()).find(|place| said.is_char_boundary(*place)).unwrap_or_default();
        return Err(Fault::operator(format!("`{phase}` of {name} failed ({status}): {}", &said[start..])));
    }
    Ok(answer)
}

fn start(program: &Program, phase: &str, writing: bool) -> Result<Group, Fault> {
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
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Group::start(&mut command)
        .map_err(|error| Fault::operator(format!("{} cannot be started: {error}", program.name())))
}

/// Reads a stream to its end, and keeps the end.
fn tail(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let (mut kept, mut piece) = (Vec::new(), [0; 8 << 10]);
    loop {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&piece[..length]);
        if kept.len() > 2 * STDERR_TAIL {
            kept.drain(..kept.len() - STDERR_TAIL);
        }
    }
}

/// How it ended by itself, if it does so in time.
fn end(child: &mut Group, is_late: impl Fn() -> bool) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.ended().ok()? {
            return Some(status);
        }
        if is_late() {
            return None;
        }
        thread::sleep(LOOK);
    }
}

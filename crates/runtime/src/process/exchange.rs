//! Sends one request to an executable and reads its response, with a deadline.
//!
//! **Invariant:** the executable and all processes that it starts are in a separate process group, which ends
//! no later than the deadline and the run that made the request.

use std::io::{self, Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use qontract_access::Access;
use qontract_child::{GRACE_PERIOD, GroupSettings, ProcessGroup, Purpose};
use serde_json::Value;

use super::phase::ProgramPhase;
use super::program::{Program, SANDBOX_VARIABLE, is_secret_name};
use super::response_memory::{ResponseBytes, ResponseMemory};
use crate::fault::Fault;

/// Size of the end of stderr that is held in memory, in bytes.
const STDERR_TAIL_BYTES: usize = 64 << 10;
/// Maximum size of the end of stderr that is reported when the program fails, in bytes.
const MAX_REPORTED_BYTES: usize = 4000;
/// Maximum number of characters of a line of stderr, or of a response, that are shown.
const MAX_LINE_CHARS: usize = 500;
/// The interval at which to check whether the program has ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The interval at which to check whether the request was cancelled.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time to wait for the rest of stderr after the program has ended.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);
/// Environment variables that a program inherits from this process.
const INHERITED_VARIABLES: [&str; 3] = ["PATH", "LANG", "TZ"];

/// Records whether a request was cancelled. All clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

/// Cancels a request when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(Cancellation);

impl CancelOnDrop {
    /// Creates a guard and the cancellation that it triggers.
    pub fn new() -> (Self, Cancellation) {
        let given = Cancellation::default();
        (Self(given.clone()), given)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Cancellation {
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One request to a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRequest<'a> {
    /// The phase, which is passed as the last argument of the executable.
    pub phase: ProgramPhase,
    /// The request body, which is written to the program's stdin.
    pub request: &'a Value,
    /// Whether the request was cancelled.
    pub cancellation: &'a Cancellation,
    /// The memory limit for the responses of the program.
    pub memory: &'a Arc<ResponseMemory>,
}

/// Runs a program for one request and returns its stdout as the response.
pub fn exchange(program: &Program, program_request: ProgramRequest<'_>) -> Result<ResponseBytes, Fault> {
    let ProgramRequest { phase, request, cancellation, memory } = program_request;
    let settings = group_settings(program, phase);
    let purpose = settings.purpose;
    let mut child = start(program, phase, settings)?;
    let text = request.to_string();
    let (done, finished) = mpsc::channel();
    let (stdin, stdout, stderr) = child.take_pipes();
    // Write errors are ignored: a program need not read its stdin, and only its response is relevant.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes())));
    let (stderr_sender, stderr_receiver) = mpsc::channel();
    let log = line_log(program, phase, request);
    thread::spawn(move || stderr_sender.send(stderr.map(|stderr| tail(stderr, log.as_ref()))));
    let memory = Arc::clone(memory);
    thread::spawn(move || done.send(stdout.map(|stdout| memory.read(stdout))));
    let of = program.describe_phase(phase);
    let began = Instant::now();
    let left = || program.deadline.saturating_sub(began.elapsed());
    let response = loop {
        let response = finished.recv_timeout(left().min(CANCEL_POLL_INTERVAL)).ok();
        if response.is_some() || left().is_zero() || cancellation.is_cancelled() {
            break response;
        }
        // Once the program has ended, `try_wait` terminates the processes that the program left behind, which may
        // keep stdout open. An error is ignored here, because the same error occurs again when the exit status is
        // read.
        let _ = child.try_wait();
    };
    let (Some(response), Some(status)) =
        (response, wait_for_exit(&mut child, || left().is_zero() || cancellation.is_cancelled()))
    else {
        // The result is no longer needed, so an error of the termination is ignored; in that case, the watchdog
        // cancels the run.
        if cancellation.is_cancelled() {
            let _ = child.terminate_within(GRACE_PERIOD);
            return Err(Fault::internal(format!("{of} was cancelled")));
        }
        let _ = child.terminate();
        let within = program.deadline.as_secs();
        return Err(Fault::remote(format!("{of} took longer than {within} s")));
    };
    // A process outside the process group may still hold stderr open, so the wait for its end is limited.
    let stderr_tail =
        stderr_receiver.recv_timeout(STDERR_TIMEOUT).ok().flatten().and_then(Result::ok).unwrap_or_default();
    if !status.success() && qontract_child::is_stopping(purpose) {
        return Err(Fault::interrupted(format!("{of} was interrupted")));
    }
    let response = match response {
        Some(Ok(response)) => response,
        // If a response is too long, its program fails only because stdout was closed. Therefore, the length of the
        // response is reported.
        Some(Err(error)) => return Err(Fault::operator(format!("{of}: {error}"))),
        None => return Err(Fault::internal(format!("{of} has no stdout"))),
    };
    if !status.success() {
        let stderr_tail = program.redacted(&String::from_utf8_lossy(&stderr_tail), phase, request);
        return Err(failure(&format!("{of} failed ({status})"), stderr_tail.trim()));
    }
    Ok(response)
}

/// Creates a fault that has the last line of stderr as its message and all lines as details. The last line is chosen
/// because it is the error in a traceback.
fn failure(what: &str, stderr: &str) -> Fault {
    let start = stderr.len().saturating_sub(MAX_REPORTED_BYTES);
    let start = (start..=stderr.len()).find(|place| stderr.is_char_boundary(*place)).unwrap_or_default();
    let reported = &stderr[start..];
    let last = reported.lines().rfind(|line| !line.trim().is_empty());
    let Some(last) = last else {
        return Fault::operator(format!("{what} and wrote nothing to stderr"));
    };
    let fault = Fault::operator(format!("{what}: {}", first_line(last)));
    if reported.lines().count() > 1 { fault.details(reported) } else { fault }
}

/// Returns the first line of a string, truncated if it is too long.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The settings that determine how the process group of a phase is terminated.
fn group_settings(program: &Program, phase: ProgramPhase) -> GroupSettings {
    match (phase.access(), program.shutdown) {
        (None | Some(Access::Read), _) => Purpose::Read.into(),
        (Some(Access::Write), None) => Purpose::Write.into(),
        (Some(Access::Write), Some(grace)) => GroupSettings { purpose: Purpose::InterruptibleWrite, grace },
    }
}

fn start(program: &Program, phase: ProgramPhase, settings: GroupSettings) -> Result<ProcessGroup, Fault> {
    let mut words = program.command.iter();
    let Some(executable) = words.next() else {
        return Err(Fault::operator(format!("the integration `{}` has no `command`", program.integration)));
    };
    let mut command = Command::new(executable);
    command.args(words).arg(phase.as_str()).env_clear();
    command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    // In a sandbox, no credentials are passed, whichever setting contains them.
    let is_given = |name: &str| program.sandbox.is_none() || !is_secret_name(name);
    command.envs(program.environment.iter().filter(|(name, _)| is_given(name)));
    if let Some(folder) = &program.sandbox {
        command.env(SANDBOX_VARIABLE, folder);
    } else {
        match phase.access() {
            None => {}
            Some(Access::Read) => drop(command.envs(&program.secret_environment)),
            Some(Access::Write) => {
                command.envs(&program.secret_environment).envs(&program.write_environment);
            }
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ProcessGroup::start_for(&mut command, settings).map_err(|error| {
        let of = program.describe_phase(phase);
        match error.kind() {
            io::ErrorKind::Interrupted => Fault::interrupted(format!("{of} was not started: shutting down")),
            _ => Fault::operator(format!("{of} cannot be started: {error}")),
        }
    })
}

/// Logs lines of stderr, with secrets redacted.
fn line_log(
    program: &Program,
    phase: ProgramPhase,
    request: &Value,
) -> Option<impl Fn(&[u8]) + Send + 'static> {
    let log = program.stderr_log.clone()?;
    let (integration, redactor) = (program.integration.clone(), program.redactor_for(phase, request));
    Some(move |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        let text = first_line(&redactor.lines(&text));
        if !text.is_empty() {
            log.line(&integration, &text);
        }
    })
}

/// The text that replaces the stderr tail if the last line alone exceeds the buffer.
const LINE_TOO_LONG: &[u8] = b"the last line of stderr is too long to be shown";

/// Reads a stream to its end, logs each complete line, and returns the last lines. Only whole lines are returned,
/// because redaction does not recognise a truncated secret.
fn tail(mut stream: impl Read, log: Option<&impl Fn(&[u8])>) -> io::Result<Vec<u8>> {
    let (mut end_of_stderr, mut piece, mut line) = (Vec::new(), [0; 8 << 10], Vec::new());
    let mut is_cut = false;
    loop {
        let length = stream.read(&mut piece)?;
        if let Some(log) = log {
            for byte in &piece[..length] {
                if *byte == b'\n' {
                    log(&std::mem::take(&mut line));
                } else if line.len() < STDERR_TAIL_BYTES {
                    line.push(*byte);
                }
            }
            if length == 0 {
                log(&line);
            }
        }
        if length == 0 {
            if is_cut {
                let first = end_of_stderr
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(end_of_stderr.len(), |end| end + 1);
                end_of_stderr.drain(..first);
            }
            if is_cut && end_of_stderr.is_empty() {
                end_of_stderr.extend_from_slice(LINE_TOO_LONG);
            }
            return Ok(end_of_stderr);
        }
        end_of_stderr.extend_from_slice(&piece[..length]);
        if end_of_stderr.len() > 2 * STDERR_TAIL_BYTES {
            end_of_stderr.drain(..end_of_stderr.len() - STDERR_TAIL_BYTES);
            is_cut = true;
        }
    }
}

/// Waits until the program exits; `None` if it does not exit in time.
fn wait_for_exit(child: &mut ProcessGroup, is_late: impl Fn() -> bool) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().ok()? {
            return Some(status);
        }
        if is_late() {
            return None;
        }
        thread::sleep(EXIT_POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        LINE_TOO_LONG, MAX_LINE_CHARS, MAX_REPORTED_BYTES, STDERR_TAIL_BYTES, failure, first_line, tail,
    };
    use std::sync::Mutex;

    #[test]
    fn a_failure_has_its_last_line_as_reason_and_all_lines_below() {
        let check = |stderr: &str, text: &str, details: &[&str]| {
            let fault = failure("it failed", stderr);
            assert_eq!((fault.text.as_str(), fault.details.as_slice()), (text, &details.map_owned()[..]));
        };
        check("", "it failed and wrote nothing to stderr", &[]);
        check("no", "it failed: no", &[]);
        check(
            "Traceback:\n  File x\nKeyError: 'a'\n\n",
            "it failed: KeyError: 'a'",
            &["Traceback:", "  File x", "KeyError: 'a'", ""],
        );
        let long = format!("{}\nlast", "é".repeat(MAX_REPORTED_BYTES));
        let details = failure("it failed", &long).details;
        assert_eq!((details.len(), details[0].len() <= MAX_REPORTED_BYTES), (2, true));
    }

    trait MapOwned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl MapOwned for &[&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|line| (*line).to_owned()).collect()
        }
    }

    #[test]
    fn a_first_line_is_short() {
        assert_eq!(first_line("\n  a b \nc"), "a b");
        assert_eq!(first_line(&"é".repeat(MAX_LINE_CHARS)), "é".repeat(MAX_LINE_CHARS));
        assert_eq!(first_line(&"é".repeat(MAX_LINE_CHARS + 1)), format!("{}…", "é".repeat(MAX_LINE_CHARS)));
        assert_eq!(first_line(""), "");
    }

    #[test]
    fn each_line_is_logged_and_the_end_is_kept() {
        let lines = Mutex::new(Vec::new());
        let log = |line: &[u8]| lines.lock().unwrap().push(String::from_utf8(line.to_vec()).unwrap());
        let kept = tail(&b"one\ntwo\nthr"[..], Some(&log)).unwrap();
        assert_eq!(kept, b"one\ntwo\nthr");
        assert_eq!(lines.into_inner().unwrap(), ["one", "two", "thr"]);
    }

    #[test]
    fn only_whole_lines_are_kept_of_a_long_stream() {
        let check = |text: &str, expect: &[u8]| {
            let kept = tail(text.as_bytes(), None::<&fn(&[u8])>).unwrap();
            assert_eq!(String::from_utf8_lossy(&kept), String::from_utf8_lossy(expect));
        };
        let long = "x".repeat(2 * STDERR_TAIL_BYTES);
        check(&long, long.as_bytes());
        check(&format!("{long}y"), LINE_TOO_LONG);
        check(&format!("{long}y\n"), LINE_TOO_LONG);
        check(&format!("{long}y\nlast"), b"last");
        check(&format!("{long}{long}y\none\ntwo\n"), b"one\ntwo\n");
    }
}

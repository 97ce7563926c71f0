//! Explains why a script cannot be started: the system reports a missing interpreter as if the script itself were
//! missing.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum length of the first line that is read; the kernel reads 256 bytes.
const MAX_LINE_BYTES: u64 = 256;

/// The error of a command that could not be started. If the command is a script whose interpreter is missing,
/// the error names the interpreter.
pub fn explain(command: &Command, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    match executable(command).and_then(|script| missing_interpreter(&script)) {
        Some(interpreter) => {
            let text = format!("the interpreter `{interpreter}`, which its `#!` line names, does not exist");
            io::Error::new(io::ErrorKind::NotFound, text)
        }
        None => error,
    }
}

/// The file that a command executes, if it exists.
fn executable(command: &Command) -> Option<PathBuf> {
    let program = Path::new(command.get_program());
    if program.components().count() > 1 {
        return Some(program.to_owned());
    }
    let own = command.get_envs().find(|(name, _)| *name == OsStr::new("PATH"));
    let path = own.map_or_else(|| std::env::var_os("PATH"), |(_, value)| value.map(OsStr::to_owned))?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The interpreter of a script, if it does not exist.
fn missing_interpreter(script: &Path) -> Option<String> {
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
    let words = String::from_utf8(line.strip_prefix(b"#!")?.to_vec()).ok()?;
    let interpreter = words.split_whitespace().next()?;
    (!Path::new(interpreter).exists()).then(|| interpreter.to_owned())
}

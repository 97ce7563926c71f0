//! One implementation per mechanism: finds a second copy by patterns in the code.

use super::{SourceTree, Violation};

const RULE: &str = "mechanisms";

/// Patterns in the code, the directories and files that may contain them, and the violation message.
struct Mechanism {
    patterns: &'static [&'static str],
    allowed_in: &'static [&'static str],
    instead: &'static str,
}

/// Mechanisms that tests may implement on their own.
const MECHANISMS: [Mechanism; 8] = [
    Mechanism {
        patterns: &["PoisonError", "std::sync::Mutex", "std::sync::RwLock", "std::sync::Condvar"],
        allowed_in: &[],
        instead: "use `parking_lot` locks, which a panic does not poison",
    },
    Mechanism {
        patterns: &["tokio::sync::OnceCell", "WeakShared"],
        allowed_in: &["crates/concurrency/"],
        instead: "use `qontract_concurrency::OnceMap` for work shared by concurrent callers",
    },
    Mechanism {
        patterns: &["fs::rename", "renameat", "tempfile_in", "NamedTempFile"],
        allowed_in: &[
            "crates/files/",
            // This file rotates the audit log.
            "crates/daemon/src/run_store/audit_file.rs",
            // This file replaces a directory.
            "xtask/src/setup/folder.rs",
            // This file creates a temporary file that replaces nothing.
            "xtask/src/test/cluster.rs",
        ],
        instead: "use `qontract_files::atomic` to replace a file",
    },
    Mechanism {
        patterns: &["TryLockError", "flock", "fcntl_lock"],
        allowed_in: &[
            "crates/files/",
            // The build tool depends on no library of the workspace for this.
            "xtask/src/setup.rs",
        ],
        instead: "use `qontract_files::lock` to lock a file or a directory",
    },
    Mechanism {
        patterns: &["error.into_panic"],
        allowed_in: &["crates/concurrency/"],
        instead: "use `qontract_concurrency::run_blocking` for blocking work",
    },
    Mechanism {
        patterns: &["Semaphore::new(1)"],
        allowed_in: &["crates/concurrency/"],
        instead: "use `qontract_concurrency::Limiter` to limit concurrency",
    },
    Mechanism {
        patterns: &["75", "130", "143"],
        allowed_in: &["benches/", "crates/runtime/src/outcome.rs", "crates/runtime/src/termination.rs"],
        instead: "use `RunEnd` or `TerminationSignal` for the exit code of a run",
    },
    Mechanism {
        patterns: &[
            "code() ==",
            "code() !=",
            "code() >",
            "code() <",
            "exit_code() ==",
            "exit_code() !=",
            "exit ==",
            "exit !=",
            "exit >",
        ],
        allowed_in: &["benches/", "xtask/"],
        instead: "use a method of `RunEnd` instead of comparing exit codes",
    },
];

/// Seeded random numbers, which are recognized by the constants of common generators. Tests are checked as
/// well.
const RANDOM_NUMBERS: Mechanism = Mechanism {
    patterns: &["0xbf58_476d_1ce4_e5b9", "6_364_136_223_846_793_005"],
    allowed_in: &["benches/src/corpus/random.rs", "xtask/src/tidy/"],
    instead: "use `fastrand::Rng::with_seed` for seeded random numbers",
};

/// Checks every line outside of tests, and every line of all files for random numbers.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let production = super::production_code(tree)
        .flat_map(|(path, text)| MECHANISMS.iter().flat_map(move |mechanism| mechanism.copies(path, &text)));
    let random = tree.texts(".rs").flat_map(|(path, text)| RANDOM_NUMBERS.copies(path, text));
    production.chain(random).collect()
}

impl Mechanism {
    /// The lines of a file that contain a second copy.
    fn copies(&self, path: &str, text: &str) -> Vec<Violation> {
        if self.allowed_in.iter().any(|home| path.starts_with(home)) {
            return Vec::new();
        }
        let lines = text.lines().map(expand_imports).zip(1..);
        let copies = lines.filter(|(line, _)| self.patterns.iter().any(|mark| contains_word(line, mark)));
        copies
            .map(|(_, line)| Violation {
                path: path.to_owned(),
                line,
                rule: RULE,
                message: self.instead.to_owned(),
            })
            .collect()
    }
}

/// Expands `use std::sync::{Arc, Mutex};` to `std::sync::Arc std::sync::Mutex`; returns other lines
/// unchanged.
fn expand_imports(line: &str) -> String {
    let names = line.strip_prefix("use ").and_then(|line| line.strip_suffix("};")?.split_once("::{"));
    match names {
        Some((path, names)) => {
            names.split(',').map(|name| format!("{path}::{}", name.trim())).collect::<Vec<_>>().join(" ")
        }
        None => line.to_owned(),
    }
}

/// Whether a line contains the pattern as a whole word or number.
fn contains_word(line: &str, mark: &str) -> bool {
    let is_number = mark.parse::<u32>().is_ok();
    let joins = |letter: char| letter.is_alphanumeric() || letter == '_' || is_number && letter == '.';
    line.match_indices(mark).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + mark.len()..].chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[track_caller]
    fn one(path: &str, line: &str, instead: Option<&str>) {
        let text = format!("//! A file: PoisonError, 75.\n{line}\n#[cfg(test)]\nmod tests {{\n{line}\n}}\n");
        let found = instead.map(|instead| format!("{path}:2: mechanisms: {instead}"));
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        expect(check, &SourceTree::of_files(&[(path, &text)]), &found);
    }

    #[test]
    fn a_second_copy_is_found() {
        let lock = Some("use `parking_lot` locks, which a panic does not poison");
        one("crates/x/src/a.rs", "let x = x.lock().unwrap_or_else(PoisonError::into_inner);", lock);
        one("clients/x/src/a.rs", "use std::sync::{Arc, Mutex};", lock);
        one("crates/x/src/a.rs", "use std::sync::Condvar;", lock);
        let random = "use `fastrand::Rng::with_seed` for seeded random numbers";
        let mixed = "//! A file.\nmixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);\n";
        for path in ["crates/x/src/a.rs", "crates/x/tests/a.rs"] {
            let found = format!("{path}:2: mechanisms: {random}");
            expect(check, &SourceTree::of_files(&[(path, mixed)]), &[&found]);
        }
        let once = Some("use `qontract_concurrency::OnceMap` for work shared by concurrent callers");
        one("crates/x/src/a.rs", "use tokio::sync::{OnceCell, Semaphore};", once);
        let replaced = Some("use `qontract_files::atomic` to replace a file");
        one("crates/x/src/a.rs", "fs::rename(&temporary, file)?;", replaced);
        one("clients/x/src/a.rs", "let file = tempfile::Builder::new().tempfile_in(folder)?;", replaced);
        let locked = Some("use `qontract_files::lock` to lock a file or a directory");
        one("crates/x/src/a.rs", "Err(TryLockError::WouldBlock) => Ok(None),", locked);
        let limited = Some("use `qontract_concurrency::Limiter` to limit concurrency");
        one("crates/x/src/a.rs", "let turn = Semaphore::new(1);", limited);
        let exit = Some("use `RunEnd` or `TerminationSignal` for the exit code of a run");
        one("crates/qontract/src/exit.rs", "Some(error) => Exit::Run(75),", exit);
        one("crates/x/src/a.rs", "stopper.interruption().map_or(130, TerminationSignal::exit_code)", exit);
        let compared = Some("use a method of `RunEnd` instead of comparing exit codes");
        one("crates/x/src/a.rs", "ended if ended.code() == 0 && has_changes => Exit::Changes,", compared);
        one("crates/x/src/a.rs", "} else if record.exit != 0 {", compared);
        one("crates/x/src/a.rs", "let failed = outcome.exit_code() != 0;", compared);
    }

    #[test]
    fn the_allowed_place_and_other_code_pass() {
        one("crates/files/src/atomic.rs", "use tempfile::NamedTempFile;", None);
        one("crates/runtime/src/outcome.rs", "RunEnd::Transient => 75,", None);
        one("crates/runtime/src/termination.rs", "Self::Interrupt => 130,", None);
        one("crates/x/src/a.rs", "match status.code() { Some(0) => Ok(()), _ => Err(error) }", None);
        one("benches/src/corpus/random.rs", "mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);", None);
        one("crates/x/src/a.rs", "use std::sync::{Arc, OnceLock};", None);
        one("crates/x/src/a.rs", "const A: [f64; 3] = [0.75, 750.0, 75.5]; let x75 = 175;", None);
        one("crates/x/tests/a.rs", "use std::sync::{Arc, Mutex};", None);
    }
}

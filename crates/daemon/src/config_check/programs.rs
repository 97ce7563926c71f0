//! Checks the programs of `[integrations.*]`: each must start, respond to `describe`, and be defined in the data.
//! Also checks the commands of `[foreign.*]`: each must exist, and so must its configuration.
//!
//! The programs are only started for `describe`, which neither reads nor changes a target.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::thread;

use qontract_runtime::process::ProcessIntegration;
use qontract_runtime::{Fault, ManagedKinds};

use qontract_config::{Config, ForeignTable, ProgramTable};

use super::cluster::NeededPermissions;
use super::report::CheckReport;

/// The check of one program.
#[derive(Default)]
struct ProgramCheck {
    report: CheckReport,
    /// The permissions that the program needs, if it declares Kubernetes objects.
    needed: Option<NeededPermissions>,
}

/// Checks all programs concurrently and returns the permissions that object programs need. `defined` contains the
/// integrations that the data defines, if data is available.
pub fn check(
    config: &Config,
    defined: Option<&[String]>,
    report: &mut CheckReport,
) -> Vec<NeededPermissions> {
    let mut needed = Vec::new();
    let is_sandbox = config.sandbox.is_some();
    let checks = thread::scope(|scope| {
        let started: Vec<_> = config
            .integrations
            .iter()
            .map(|(name, registered)| (name, scope.spawn(|| check_program(name, registered, is_sandbox))))
            .collect();
        started.into_iter().map(|(name, check)| (name, check.join())).collect::<Vec<_>>()
    });
    for (name, registered) in &config.foreign {
        report.extend(check_command(name, registered));
    }
    for (name, checked) in checks {
        let title = title(name);
        match checked {
            Ok(checked) => {
                report.extend(checked.report);
                needed.extend(checked.needed);
            }
            Err(_) => {
                report.failed(&title, "the check panicked: this is a bug".to_owned(), "report it");
            }
        }
        if defined.is_some_and(|defined| !defined.contains(name)) {
            let hint = format!("add a datafile of `/app-sre/integration-1.yml` with `name: {name}`");
            report.warning(
                &title,
                "the data does not define it: runs end with exit code 4".to_owned(),
                &hint,
            );
        }
    }
    needed
}

fn title(name: &str) -> String {
    format!("integration {name}")
}

/// Checks the command of a foreign integration without starting it.
fn check_command(name: &str, registered: &ForeignTable) -> CheckReport {
    let (mut report, title) = (CheckReport::default(), title(name));
    let key = format!("foreign.{name}");
    let Some(executable) = registered.command.first() else {
        report.failed(&title, format!("`{key}.command` is empty"), "name the command and its arguments");
        return report;
    };
    let hint = format!(
        "correct `{key}.command`; a relative path is relative to the configuration file if the file exists there, else to the working directory; a name without a path is searched for on `PATH`, then beside the configuration file"
    );
    match find(executable, std::env::var_os("PATH").as_deref()) {
        Ok(_) => report.ok(&title, format!("`{}` exists", registered.command.join(" "))),
        Err(why) => report.failed(&title, format!("`{executable}`: {why}"), &hint),
    }
    if let Some(config) = &registered.config
        && let Err(error) = std::fs::File::open(config)
    {
        let text = format!("`{}` cannot be read: {error}", config.display());
        report.failed(&title, text, &format!("correct `{key}.config`"));
    }
    report
}

/// Checks one program.
fn check_program(name: &str, registered: &ProgramTable, is_sandbox: bool) -> ProgramCheck {
    let (mut check, title) = (ProgramCheck::default(), title(name));
    let report = &mut check.report;
    let key = format!("integrations.{name}");
    let Some(executable) = registered.command.first() else {
        report.failed(
            &title,
            format!("`{key}.command` is empty"),
            "name the program and its first arguments",
        );
        return check;
    };
    if let Err(why) = find(executable, std::env::var_os("PATH").as_deref()) {
        let hint = format!(
            "correct `{key}.command`; a relative path is relative to the configuration file if the file exists there, else to the working directory; a name without a path is searched for on `PATH`, then beside the configuration file"
        );
        report.failed(&title, format!("`{executable}`: {why}"), &hint);
        return check;
    }
    match ProcessIntegration::describe(name, registered.program()) {
        Ok(process) if is_sandbox && !process.supports_sandbox() => report.failed(
            &title,
            "its program does not support a sandbox, and `[sandbox]` is set".to_owned(),
            "a program that works on the directory `$QONTRACT_SANDBOX` responds to `describe` with `\"sandbox\": true`",
        ),
        Ok(process) => {
            report.ok(&title, format!("`{}` responds to `describe`", registered.command.join(" ")));
            let permissions = ManagedKinds::Declared.permissions();
            let needed = NeededPermissions { integration: name.to_owned(), permissions };
            check.needed = process.declares_objects().then_some(needed);
        }
        Err(fault) => {
            let Fault { text, hint, .. } = fault;
            let default_hint = "run it manually: `echo '{\"protocol\": 1}' | COMMAND describe`; see docs/specs/process-integration.md";
            report.failed(&title, text, hint.as_deref().unwrap_or(default_hint));
        }
    }
    let lists = [
        ("environment", &registered.environment),
        ("secret_environment", &registered.secret_environment),
        ("write_environment", &registered.write_environment),
    ];
    for (list, names) in lists {
        for variable in names.iter().filter(|name| std::env::var_os(name).is_none()) {
            let detail = format!("`${variable}` is not set, but `{key}.{list}` lists it");
            report.warning(
                &title,
                detail,
                "set it, or remove it from the list if the program does not need it",
            );
        }
    }
    check
}

/// Finds the executable of a command: the first word of the command if it is a path, and otherwise the first program
/// with this name on the `PATH`.
fn find(executable: &str, path: Option<&OsStr>) -> Result<PathBuf, &'static str> {
    if executable.contains('/') {
        let file = Path::new(executable);
        return match file.metadata() {
            Err(_) => Err("no such file"),
            Ok(_) if is_executable(file) => Ok(file.to_owned()),
            Ok(_) => Err("not an executable file"),
        };
    }
    let mut files =
        path.map(std::env::split_paths).into_iter().flatten().map(|folder| folder.join(executable));
    files.find(|file| is_executable(file)).ok_or("found neither on PATH nor beside the configuration file")
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_slash_is_a_path_and_others_are_searched_on_the_path() {
        let check = |executable: &str, path: &str, expect: Result<&str, &str>| {
            let found = find(executable, Some(path.as_ref()));
            let found = found.as_ref().map(|file| file.to_str().unwrap()).map_err(|why| *why);
            assert_eq!(found, expect, "{executable}");
        };
        check("/bin/sh", "", Ok("/bin/sh"));
        check("/no/such/program", "/bin", Err("no such file"));
        check("/etc/passwd", "/bin", Err("not an executable file"));
        check("/etc/", "/bin", Err("not an executable file"));
        check("sh", "/no/such/folder:/bin", Ok("/bin/sh"));
        check("sh", "/no/such/folder", Err("found neither on PATH nor beside the configuration file"));
        check("passwd", "/etc", Err("found neither on PATH nor beside the configuration file"));
        assert_eq!(find("sh", None), Err("found neither on PATH nor beside the configuration file"));
    }
}

//! Finds the promtool program.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The configured program, otherwise the first `promtool` on `PATH`. The error names the location that was
/// searched.
pub fn find(configured: Option<&Path>, path: Option<&OsStr>) -> Result<PathBuf, String> {
    if let Some(program) = configured {
        let found = is_program(program).then(|| program.to_owned());
        return found.ok_or_else(|| format!("at `{}`: not an executable file", program.display()));
    }
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    // Relative entries of `PATH` are ignored, because they depend on the working directory.
    let mut programs = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join("promtool"));
    programs.find(|program| is_program(program)).ok_or_else(|| "on PATH".to_owned())
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::find;
    use std::path::Path;

    #[test]
    fn a_configured_program_takes_precedence_over_the_path() {
        let check = |configured: Option<&str>, path: &str, expect: Result<&str, &str>| {
            let found = find(configured.map(Path::new), Some(path.as_ref()));
            let found = found.as_ref().map(|path| path.to_str().unwrap()).map_err(String::as_str);
            assert_eq!(found, expect);
        };
        check(Some("/bin/sh"), "", Ok("/bin/sh"));
        check(Some("/no/promtool"), "/bin", Err("at `/no/promtool`: not an executable file"));
        check(Some("/etc/passwd"), "/bin", Err("at `/etc/passwd`: not an executable file"));
        check(None, "/no/such/folder:.", Err("on PATH"));
        check(None, "", Err("on PATH"));
    }
}

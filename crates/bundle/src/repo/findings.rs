//! Findings about files of a data repo that cannot be listed or read.

use qontract_diagnostics::{Diagnostic, code};

use super::MAX_DEPTH;

/// Reports a link that points outside of the data repo.
pub(super) fn link_outside(name: &str, target: &str) -> Diagnostic {
    let message = format!("the link points to `{target}`, which is not part of the data repo");
    Diagnostic::new(code::LINK_OUTSIDE, message).in_file(name)
}

/// Reports a link whose target cannot be read.
pub(super) fn link_broken(name: &str, target: &str, why: &str) -> Diagnostic {
    Diagnostic::new(code::LINK_BROKEN, format!("the link points to `{target}`, {why}")).in_file(name)
}

/// Reports a directory that is nested too deeply to be listed.
pub(super) fn too_deep(name: &str) -> Diagnostic {
    let message = format!("the folder is nested more than {MAX_DEPTH} levels deep, and is not read");
    Diagnostic::new(code::FOLDER_DEPTH, message).in_file(name).hint("move it up, or remove it")
}

/// Reports a file that cannot be read.
pub(crate) fn unreadable(name: &str, why: &str) -> Diagnostic {
    Diagnostic::new(code::UNREADABLE, format!("the file cannot be read: {why}")).in_file(name)
}

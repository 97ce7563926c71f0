//! Names of files and directories that are ignored.

/// Whether a file or directory of this name is ignored.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Whether a path of the data repo has an ignored component.
pub(crate) fn has_hidden_part(path: &str) -> bool {
    path.split('/').any(is_hidden)
}

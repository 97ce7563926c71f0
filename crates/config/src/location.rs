//! The location of the configuration file: a named file, or a trusted file in a default location.

use std::path::{Path, PathBuf};

use crate::environment::variable;
use crate::ownership;

/// The name of the configuration in the working directory.
const LOCAL_FILE: &str = "qontract.toml";

/// The file that identifies a data repo.
const DATA_REPO_FILE: &str = "graphql-schemas/schema.yml";

/// The configuration file, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigLocation {
    /// `--config`.
    Option(PathBuf),
    /// `$QONTRACT_CONFIG`.
    Variable(PathBuf),
    /// A default location.
    Default {
        /// The file that is read.
        file: PathBuf,
        /// A file in an earlier default location that is not read.
        ignored: Option<IgnoredFile>,
    },
    /// No file is read.
    None {
        /// A file in a default location that is not read.
        ignored: Option<IgnoredFile>,
    },
}

/// A configuration file in a default location that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredFile {
    /// The file.
    pub file: PathBuf,
    /// The reason why the file is not read.
    pub reason: IgnoreReason,
}

/// The reason why a configuration file in a default location is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// The file may be part of a data repo.
    InRepo,
    /// Another user owns the file.
    OtherOwner,
}

impl IgnoreReason {
    /// The reason as a clause: "… is not read, because *it belongs to another user*".
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InRepo => "it is inside a data repo or a Git work tree",
            Self::OtherOwner => "it belongs to another user",
        }
    }
}

impl ConfigLocation {
    /// The file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Option(file) | Self::Variable(file) | Self::Default { file, .. } => Some(file),
            Self::None { .. } => None,
        }
    }

    /// The file in a default location that is not read.
    pub fn ignored(&self) -> Option<&IgnoredFile> {
        match self {
            Self::Option(_) | Self::Variable(_) => None,
            Self::Default { ignored, .. } | Self::None { ignored } => ignored.as_ref(),
        }
    }

    /// The file that `--config` names, otherwise the file that `$QONTRACT_CONFIG` names.
    pub fn named(file: Option<&Path>) -> Self {
        match (file, variable("QONTRACT_CONFIG")) {
            (Some(file), _) => Self::Option(file.to_owned()),
            (None, Some(file)) => Self::Variable(file.into()),
            (None, None) => Self::None { ignored: None },
        }
    }

    /// The location of the named file, otherwise `./qontract.toml`, otherwise
    /// `$XDG_CONFIG_HOME/qontract/config.toml`.
    ///
    /// **Invariant:** a data repo never provides the configuration, which could name programs to run:
    /// `./qontract.toml` is not read inside a data repo or a Git work tree, nor if another user owns it.
    pub fn find(file: Option<&Path>) -> Self {
        let named = Self::named(file);
        if named.file().is_some() {
            return named;
        }
        let local = PathBuf::from(LOCAL_FILE);
        let ignored = match local.is_file().then(|| ignore_reason(&local)) {
            Some(None) => return Self::Default { file: local, ignored: None },
            Some(Some(reason)) => Some(IgnoredFile { file: local, reason }),
            None => None,
        };
        match user_file().filter(|file| file.is_file()) {
            Some(file) => Self::Default { file, ignored },
            None => Self::None { ignored },
        }
    }

    /// The note about a file that is not read.
    pub fn note(&self) -> Option<String> {
        let IgnoredFile { file, reason } = self.ignored()?;
        let (file, reason) = (file.display(), reason.as_str());
        Some(format!("note: `{file}` is not read, because {reason}; pass `--config {file}`"))
    }
}

/// The configuration of the user: `$XDG_CONFIG_HOME/qontract/config.toml`.
fn user_file() -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(home.join("qontract/config.toml"))
}

/// The reason not to read a file of the working directory; `None` if it is trusted. A working directory whose
/// path is unknown is treated as a repo.
fn ignore_reason(file: &Path) -> Option<IgnoreReason> {
    let ceilings = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
    let ceilings: Vec<PathBuf> = std::env::split_paths(&ceilings).collect();
    match std::env::current_dir() {
        Ok(folder) if !is_in_data_repo(&folder) && !is_in_work_tree(&folder, &ceilings) => {
            (!ownership::is_trusted(file)).then_some(IgnoreReason::OtherOwner)
        }
        _ => Some(IgnoreReason::InRepo),
    }
}

/// Whether a directory is inside a data repo.
fn is_in_data_repo(folder: &Path) -> bool {
    folder.ancestors().any(|folder| folder.join(DATA_REPO_FILE).is_file())
}

/// Whether a directory is inside a Git work tree. As in Git, parent directories are searched up to the first
/// ceiling; the directory itself is always checked, even if it is a ceiling.
fn is_in_work_tree(folder: &Path, ceilings: &[PathBuf]) -> bool {
    let is_work_tree = |folder: &Path| folder.join(".git").exists();
    let is_ceiling = |folder: &&Path| ceilings.iter().any(|ceiling| ceiling == folder);
    is_work_tree(folder)
        || folder.ancestors().skip(1).take_while(|folder| !is_ceiling(folder)).any(is_work_tree)
}

#[cfg(test)]
mod tests {
    use qontract_testkit::Scratch;

    use super::*;

    #[test]
    fn a_ceiling_never_hides_the_working_directory() {
        let scratch = Scratch::new();
        scratch.write("work/.git/HEAD", "");
        scratch.write("work/a/b/here", "");
        let folder = |name: &str| scratch.path().join(name);
        let check = |at: &str, ceiling: &str, expect: bool| {
            assert_eq!(is_in_work_tree(&folder(at), &[folder(ceiling)]), expect, "{at}, ceiling {ceiling}");
        };
        check("work", "work", true);
        check("work", "", true);
        check("work/a", "work/a", true);
        check("work/a/b", "work/a/b", true);
        check("work/a/b", "", true);
        // As in Git, a ceiling above the working directory is not searched.
        check("work/a", "work", false);
        check("work/a/b", "work/a", false);
    }

    #[test]
    fn a_data_repo_is_recognised_from_every_directory_inside() {
        let scratch = Scratch::new();
        scratch.write("repo/graphql-schemas/schema.yml", "[]");
        scratch.write("repo/data/a/here", "");
        for (folder, expect) in [("repo", true), ("repo/data/a", true), ("", false)] {
            assert_eq!(is_in_data_repo(&scratch.path().join(folder)), expect, "{folder}");
        }
    }

    #[test]
    fn an_ignored_file_is_noted_even_if_another_is_read() {
        let ignored = |reason| Some(IgnoredFile { file: LOCAL_FILE.into(), reason });
        let note = |location: ConfigLocation| location.note();
        let expect = |why: &str| {
            Some(format!("note: `qontract.toml` is not read, because {why}; pass `--config qontract.toml`"))
        };
        let file = PathBuf::from("/user/.config/qontract/config.toml");
        let default = ConfigLocation::Default { file: file.clone(), ignored: ignored(IgnoreReason::InRepo) };
        assert_eq!(note(default), expect("it is inside a data repo or a Git work tree"));
        let none = ConfigLocation::None { ignored: ignored(IgnoreReason::OtherOwner) };
        assert_eq!(note(none), expect("it belongs to another user"));
        assert_eq!(note(ConfigLocation::Default { file, ignored: None }), None);
    }
}

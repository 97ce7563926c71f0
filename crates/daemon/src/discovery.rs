//! Finds the data repo that contains the working directory, as Git finds a repository.
//!
//! A data repo is recognised by its file of GraphQL types. Parent directories are searched only for `.`, the
//! default of every command; any other path is used unchanged.

use std::path::{Component, Path, PathBuf};

use qontract_bundle::Layout;

use qontract_config::ownership;

use crate::exit::UsageError;

/// The example data repo, which `up` runs if the working directory is not in a data repo.
pub const EXAMPLE_REPO: &str = "examples/app-interface";

/// The default base of a change.
pub const DEFAULT_BASE: &str = "origin/HEAD";

/// The revisions with which commands compare by default. These words always name revisions, even if files with these
/// names exist.
pub const DEFAULT_REVISIONS: [&str; 2] = [DEFAULT_BASE, "HEAD"];

/// The form in which a command accepts the directory of a data repo, for hints in error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedAs {
    /// The option `--data DIR`.
    Option,
    /// A positional argument.
    Argument,
}

impl PassedAs {
    fn usage(self) -> &'static str {
        match self {
            Self::Option => "--data DIR",
            Self::Argument => "DIR",
        }
    }
}

/// The root of the data repo that `given` names. For `.`, this is the data repo that contains the working directory;
/// any other path is returned unchanged.
pub fn root(given: &Path, layout: &Layout, passed: PassedAs) -> Result<PathBuf, UsageError> {
    if !is_current_dir(given) {
        return Ok(given.to_owned());
    }
    let missing = || {
        let (file, pass) = (&layout.graphql, passed.usage());
        let text =
            format!("not a data repo: `./{file}` not found here or above (run inside one, or pass {pass})");
        UsageError(text)
    };
    let here = std::env::current_dir().map_err(|_| missing())?;
    let Some(depth) = depth(&here, layout) else { return Err(missing()) };
    let root = parent_path(depth);
    if depth > 0 && !ownership::is_trusted(&root.join(&layout.graphql)) {
        let (file, pass) = (root.join(&layout.graphql), passed.usage());
        let text = format!("`{}` belongs to another user: pass {pass} to use its data repo", file.display());
        return Err(UsageError(text));
    }
    Ok(root)
}

/// The directory of the data repo that an argument names: the argument itself or, if it is a Git revision, `repo`.
/// `None` for a bundle file or a server.
pub fn repo_of<'p>(word: &'p str, repo: &'p Path) -> Option<&'p Path> {
    let path = Path::new(word);
    match (path.is_dir(), path.exists() || word.contains("://")) {
        (true, _) => Some(path),
        (false, true) => None,
        (false, false) => Some(repo),
    }
}

/// The directory in which Git revisions are looked up. It is determined as by [`root`], but it is `given` itself if
/// the working tree has no data repo, because the revision may contain one.
pub fn revision_root(given: &Path, layout: &Layout) -> PathBuf {
    root(given, layout, PassedAs::Option).unwrap_or_else(|_| given.to_owned())
}

/// The default data repo of `up`: the data repo that contains the working directory or, if there is none, the
/// example.
pub fn root_or_example(layout: &Layout) -> Result<PathBuf, UsageError> {
    root(Path::new("."), layout, PassedAs::Argument).or_else(|error| {
        let example = PathBuf::from(EXAMPLE_REPO);
        if example.join(&layout.graphql).is_file() { Ok(example) } else { Err(error) }
    })
}

/// The data repo that contains a file or directory: the root of the data repo, and the path of the file or directory
/// below the root.
pub fn repo_of_path(path: &Path, layout: &Layout) -> Option<(PathBuf, String)> {
    let full = std::path::absolute(path).ok()?;
    let parent = full.parent()?.canonicalize().ok()?;
    let depth = depth(&parent, layout)?;
    let root = parent.ancestors().nth(depth)?.to_owned();
    let below = parent.join(full.file_name()?).strip_prefix(&root).ok()?.to_str()?.to_owned();
    Some((root, below))
}

/// Whether a root is above the working directory (`..`, `../..`). If it is, findings have file names relative to the
/// working directory.
pub fn is_above(root: &Path) -> bool {
    let is_up = |part: &Component<'_>| matches!(part, Component::ParentDir);
    let mut parts = root.components().filter(|part| !matches!(part, Component::CurDir)).peekable();
    parts.peek().is_some() && parts.all(|part| is_up(&part))
}

/// Whether file names in text output are relative to the working directory. If the root is an absolute path
/// elsewhere, they are relative to the data repo instead.
pub fn has_relative_names(root: &Path) -> bool {
    let is_below = || {
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
        here.zip(root.canonicalize().ok()).is_some_and(|(here, root)| root.starts_with(here))
    };
    root.is_relative() || is_below()
}

/// The title of a data repo: the path from the command line or, if the data repo was discovered, the name of its
/// directory.
pub fn title(root: &Path) -> String {
    let found = is_current_dir(root) || is_above(root);
    let full = root.canonicalize().ok().filter(|_| found);
    let name = full.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| root.display().to_string())
}

fn is_current_dir(path: &Path) -> bool {
    path.components().eq([Component::CurDir]) || path.as_os_str().is_empty()
}

/// Number of directories between `here` and the root of the nearest data repo.
fn depth(here: &Path, layout: &Layout) -> Option<usize> {
    here.ancestors().position(|folder| folder.join(&layout.graphql).is_file())
}

/// The relative path to the directory `depth` levels up.
fn parent_path(depth: usize) -> PathBuf {
    if depth == 0 { PathBuf::from(".") } else { std::iter::repeat_n("..", depth).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_above_if_its_path_only_leads_up() {
        for above in ["..", "./..", "../.."] {
            assert!(is_above(Path::new(above)), "{above}");
        }
        for other in [".", "", "repo", "../repo", "/"] {
            assert!(!is_above(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn the_title_of_a_discovered_data_repo_is_the_name_of_its_directory() {
        let here = std::env::current_dir().unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(title(Path::new(".")), name(&here));
        assert_eq!(title(Path::new("..")), name(here.parent().unwrap()));
        assert_eq!(title(Path::new("examples/app-interface")), "examples/app-interface");
    }

    #[test]
    fn a_path_up_has_one_component_per_directory() {
        assert_eq!(parent_path(0), Path::new("."));
        assert_eq!(parent_path(1), Path::new(".."));
        assert_eq!(parent_path(3), Path::new("../../.."));
    }

    #[test]
    fn the_nearest_directory_with_the_file_is_the_root() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("outer/graphql-schemas/schema.yml", "[]");
        scratch.write("outer/inner/types.yml", "[]");
        scratch.write("outer/inner/data/a.yml", "a: 1");
        let inner = scratch.path().join("outer/inner/data");
        assert_eq!(depth(&inner, &Layout::default()), Some(2));
        let named = Layout { graphql: "types.yml".to_owned(), ..Layout::default() };
        assert_eq!(depth(&inner, &named), Some(1));
        assert_eq!(depth(scratch.path(), &named), None);
        let (root, below) = repo_of_path(&inner.join("a.yml"), &named).expect("a data repo");
        assert_eq!(root, scratch.path().canonicalize().unwrap().join("outer/inner"));
        assert_eq!(below, "data/a.yml");
    }

    #[test]
    fn a_named_directory_is_used_unchanged() {
        let root = |given: &str| root(Path::new(given), &Layout::default(), PassedAs::Option);
        assert_eq!(root("nowhere").unwrap(), Path::new("nowhere"));
        let error = root(".").unwrap_err().0;
        assert_eq!(
            error,
            "not a data repo: `./graphql-schemas/schema.yml` not found here or above (run inside one, or pass --data DIR)"
        );
    }
}

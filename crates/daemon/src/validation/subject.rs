//! Parses the arguments of `validate`: a data repo, files of a data repo, a Git revision, or a bundle.

use std::path::{Path, PathBuf};

use qontract_bundle::Layout;

use crate::discovery::{self, DEFAULT_REVISIONS};
use crate::exit::UsageError;

/// The subject of a validation.
#[derive(Debug, PartialEq, Eq)]
pub enum ValidationSubject {
    /// A data repo.
    Folder(PathBuf),
    /// Some files of a data repo, whose findings are shown.
    Files(FileSelection),
    /// A bundle file.
    BundleFile(PathBuf),
    /// A Git revision of the data repo in a directory.
    Revision {
        /// The name of the revision.
        word: String,
        /// The directory of the data repo.
        repo: PathBuf,
    },
}

/// Files and directories of one data repo.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileSelection {
    /// The data repo.
    pub root: PathBuf,
    /// The paths of the files, relative to the data repo.
    paths: Vec<String>,
    /// Arguments that are inside the data repo but not part of the data.
    pub outside: Vec<String>,
}

impl FileSelection {
    /// Whether a file of the data repo is selected, directly or through its directory.
    pub fn contains(&self, file: &str) -> bool {
        self.paths.iter().any(|path| {
            file.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

impl ValidationSubject {
    /// Determines the subject that `words` name; Git revisions are looked up in `repo`.
    pub fn of(words: &[String], repo: PathBuf, layout: &Layout) -> Result<Self, UsageError> {
        if let [word] = words {
            let path = PathBuf::from(word);
            let is_root = word == "." || path.join(&layout.graphql).is_file();
            if DEFAULT_REVISIONS.contains(&word.as_str()) || !path.exists() {
                return Ok(Self::Revision { word: word.clone(), repo });
            }
            let selected = if is_root { None } else { Self::files(words, layout)? };
            return Ok(match selected.filter(|selection| selection.outside.is_empty()) {
                Some(selection) => Self::Files(selection),
                None if path.is_dir() => Self::Folder(path),
                None => Self::BundleFile(path),
            });
        }
        let selection = Self::files(words, layout)?;
        Ok(Self::Files(selection.ok_or_else(|| UsageError("no files to check".to_owned()))?))
    }

    /// The files whose findings are shown; `None` means all.
    pub fn selection(&self) -> Option<&FileSelection> {
        match self {
            Self::Files(selection) => Some(selection),
            Self::Folder(_) | Self::BundleFile(_) | Self::Revision { .. } => None,
        }
    }

    /// The files that `words` name, which must be in one data repo; `None` if the only word is not in a data repo.
    fn files(words: &[String], layout: &Layout) -> Result<Option<FileSelection>, UsageError> {
        let mut all = FileSelection::default();
        for word in words {
            if !Path::new(word).exists() {
                return Err(UsageError(format!("`{word}` does not exist")));
            }
            let Some((root, below)) = discovery::repo_of_path(Path::new(word), layout) else {
                if words.len() == 1 {
                    return Ok(None);
                }
                return Err(UsageError(format!("`{word}` is not in a data repo")));
            };
            if !all.root.as_os_str().is_empty() && all.root != root {
                let text = format!("`{}` and `{word}` are in different data repos", words[0]);
                return Err(UsageError(text));
            }
            all.root = root;
            if is_part(&below, layout) {
                all.paths.push(below);
            } else {
                all.outside.push(word.clone());
            }
        }
        Ok(Some(all))
    }
}

/// Whether a path of a data repo is part of the data.
fn is_part(path: &str, layout: &Layout) -> bool {
    let Layout { data, resources, schemas, graphql } = layout;
    let within = |part: &&String| {
        path.strip_prefix(part.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    path == graphql || [data, resources, schemas].iter().any(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use qontract_testkit::Scratch;

    #[test]
    fn a_file_is_part_of_the_data_repo_by_its_directory() {
        let check = |path: &str, expect: bool| {
            assert_eq!(is_part(path, &Layout::default()), expect, "{path}");
        };
        for part in ["data", "data/a.yml", "resources/a", "schemas/a/b.yml", "graphql-schemas/schema.yml"] {
            check(part, true);
        }
        for other in ["README.md", "database/a.yml", "graphql-schemas/other.yml", "graphql-schemas", ""] {
            check(other, false);
        }
    }

    #[test]
    fn a_selected_directory_has_all_its_files() {
        let paths = ["data/a", "data/b.yml"].map(str::to_owned).to_vec();
        let selection = FileSelection { paths, ..FileSelection::default() };
        for (file, expect) in [
            ("data/a/x.yml", true),
            ("data/b.yml", true),
            ("data/ab.yml", false),
            ("data/b.yml2", false),
            ("data", false),
        ] {
            assert_eq!(selection.contains(file), expect, "{file}");
        }
    }

    #[test]
    fn words_are_distinguished_by_the_files_that_exist() {
        let scratch = Scratch::new();
        for repo in ["one", "two"] {
            scratch.write(&format!("{repo}/graphql-schemas/schema.yml"), "[]");
            scratch.write(&format!("{repo}/data/a.yml"), "a: 1");
            scratch.write(&format!("{repo}/bundle.json"), "{}");
        }
        scratch.write("plain.json", "{}");
        let at = |name: &str| scratch.path().join(name).display().to_string();
        let of = |words: &[String]| ValidationSubject::of(words, PathBuf::from("."), &Layout::default());
        assert_eq!(of(&[at("one")]).unwrap(), ValidationSubject::Folder(at("one").into()));
        assert_eq!(
            of(&[at("one/bundle.json")]).unwrap(),
            ValidationSubject::BundleFile(at("one/bundle.json").into())
        );
        assert_eq!(of(&[at("plain.json")]).unwrap(), ValidationSubject::BundleFile(at("plain.json").into()));
        assert!(matches!(of(&["main".to_owned()]).unwrap(), ValidationSubject::Revision { .. }));
        let files = of(&[at("one/data/a.yml"), at("one/bundle.json")]).unwrap();
        let selection = files.selection().expect("files");
        assert!(selection.contains("data/a.yml") && !selection.contains("bundle.json"));
        assert_eq!(selection.outside, [at("one/bundle.json")]);
        assert!(of(&[at("one/data")]).unwrap().selection().is_some());
        let error = of(&[at("one/data/a.yml"), at("two/data/a.yml")]).unwrap_err().0;
        assert!(error.ends_with("are in different data repos"), "{error}");
        let error = of(&[at("one/data/a.yml"), at("plain.json")]).unwrap_err().0;
        assert!(error.ends_with("is not in a data repo"), "{error}");
        let error = of(&[at("one/data/a.yml"), at("gone.yml")]).unwrap_err().0;
        assert!(error.ends_with("does not exist"), "{error}");
    }
}

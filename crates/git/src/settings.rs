//! The settings of a repository that determine the layout of its refs and objects.

/// The settings of a repository's configuration that this crate reads. All other settings are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `extensions.objectFormat`, for example `sha256`.
    pub object_format: Option<String>,
    /// `extensions.refStorage`, for example `reftable`.
    pub ref_storage: Option<String>,
    /// `core.worktree`: the work tree of a Git directory that is not inside that work tree.
    pub work_tree: Option<String>,
}

/// Reads the settings from the text of a configuration file. Included files are not read.
pub fn parse(config: &str) -> Settings {
    let mut settings = Settings::default();
    let mut section = String::new();
    for line in config.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.split(']').next().unwrap_or_default().trim().to_ascii_lowercase();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches('"').to_owned();
        match (section.as_str(), key.trim().to_ascii_lowercase().as_str()) {
            ("extensions", "objectformat") => settings.object_format = Some(value),
            ("extensions", "refstorage") => settings.ref_storage = Some(value),
            ("core", "worktree") => settings.work_tree = Some(value),
            _ => {}
        }
    }
    settings
}

/// Whether a value is one word that needs no quoting in a configuration file.
pub fn is_word(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::{Settings, is_word, parse};

    #[test]
    fn only_the_layout_is_read() {
        let text = "[core]\n\trepositoryformatversion = 1\n\tworktree = ../../../sub\n\tfsmonitor = touch x\n\
                    [include]\n\tpath = other\n[Extensions]\n\tobjectFormat = sha256\n\trefstorage=\"reftable\"\n\
                    [remote \"extensions\"]\n\tobjectformat = no\n";
        let expect = Settings {
            object_format: Some("sha256".to_owned()),
            ref_storage: Some("reftable".to_owned()),
            work_tree: Some("../../../sub".to_owned()),
        };
        assert_eq!(parse(text), expect);
        assert_eq!(parse("worktree = x\n[corex]\nworktree = x\n[core]\nworktree\n"), Settings::default());
    }

    #[test]
    fn a_word_has_letters_and_digits_only() {
        assert!(is_word("sha256"));
        for value in ["", "a b", "a\nb", "a]", "\"", "x#"] {
            assert!(!is_word(value), "{value:?}");
        }
    }
}

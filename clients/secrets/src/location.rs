//! The location of a secret, as shown in errors, and validation of paths.

use std::fmt;

use crate::error::SecretsError;

/// The location of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretLocation {
    /// The path, with the mount.
    pub path: String,
    /// The requested version; `None` for the latest.
    pub version: Option<u64>,
    /// The mount, if it is known.
    pub mount: Option<String>,
}

impl SecretLocation {
    /// A location without a known mount.
    pub(crate) fn new(path: &str, version: Option<u64>) -> Self {
        Self { path: path.to_owned(), version, mount: None }
    }

    /// A location in a known mount.
    pub(crate) fn in_mount(path: &str, version: Option<u64>, mount: &str) -> Self {
        Self { mount: Some(mount.to_owned()), ..Self::new(path, version) }
    }
}

impl fmt::Display for SecretLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path)?;
        if let Some(version) = self.version {
            write!(f, ", version {version},")?;
        }
        match &self.mount {
            Some(mount) => write!(f, " of mount `{mount}`"),
            None => Ok(()),
        }
    }
}

/// The segments of a path. Paths that a server could resolve to another path are refused.
pub(crate) fn segments(path: &str) -> Result<Vec<&str>, SecretsError> {
    let wrong = |why| SecretsError::Path { path: path.to_owned(), why };
    let segments: Vec<&str> = path.split('/').collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        return Err(wrong("it has an empty segment"));
    }
    if segments.iter().any(|segment| [".", ".."].contains(segment)) {
        return Err(wrong("it contains a `.` or `..` segment"));
    }
    if path.chars().any(char::is_control) {
        return Err(wrong("it contains a control character"));
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::{SecretLocation, segments};

    fn check(path: &str, expect: Result<&[&str], &str>) {
        let found = segments(path).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn a_path_is_its_segments() {
        check("secret", Ok(&["secret"]));
        check("app-sre/creds/a b", Ok(&["app-sre", "creds", "a b"]));
    }

    #[test]
    fn a_path_that_could_lead_elsewhere_is_refused() {
        check("", Err("`` is not a valid secret path: it has an empty segment"));
        check("/a", Err("`/a` is not a valid secret path: it has an empty segment"));
        check("a//b", Err("`a//b` is not a valid secret path: it has an empty segment"));
        check("a/../b", Err("`a/../b` is not a valid secret path: it contains a `.` or `..` segment"));
        check("a\nb", Err("`a\nb` is not a valid secret path: it contains a control character"));
    }

    #[test]
    fn a_location_shows_version_and_mount() {
        assert_eq!(SecretLocation::new("a/b", None).to_string(), "`a/b`");
        assert_eq!(
            SecretLocation::in_mount("a/b", Some(3), "a/").to_string(),
            "`a/b`, version 3, of mount `a/`"
        );
    }
}

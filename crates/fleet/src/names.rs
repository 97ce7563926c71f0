//! The names of the Kubernetes objects of shards, within the limits of Kubernetes.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Maximum length of the name of a Deployment.
pub const MAX_DEPLOYMENT_NAME: usize = 253;
/// Maximum length of the name of a `StatefulSet`: its pods have a label with the name and a hash.
pub const MAX_STATEFUL_SET_NAME: usize = 52;
/// Maximum length of the name of a `CronJob`: the names of its jobs have a suffix.
pub const MAX_CRON_JOB_NAME: usize = 52;
/// Maximum length of the value of a label.
pub const MAX_LABEL_VALUE: usize = 63;

/// Number of hexadecimal digits of the hash that replaces the end of a name that is too long.
const HASH_DIGITS: usize = 8;

/// The name of the objects of a shard, before it is shortened.
///
/// ```
/// assert_eq!(
///     qontract_fleet::names::shard_name("terraform-resources", "-app-sre"),
///     "qontract-reconcile-terraform-resources-app-sre"
/// );
/// ```
pub fn shard_name(integration: &str, suffix: &str) -> String {
    format!("{}{suffix}", app_name(integration))
}

/// The name that all shards of an integration share, as a value of the label `app`.
pub fn app_name(integration: &str) -> String {
    format!("qontract-reconcile-{integration}")
}

/// Shortens a name to `max` bytes. The end of a longer name is replaced by a hash of the whole name, so that the
/// result is the same in every run, and different names stay different.
///
/// ```
/// use qontract_fleet::names::shorten;
///
/// assert_eq!(shorten("qontract-reconcile-a", 52), "qontract-reconcile-a");
/// let long = |end| format!("qontract-reconcile-{}-{end}", "x".repeat(60));
/// assert_eq!(shorten(&long("a"), 52).len(), 52);
/// assert_ne!(shorten(&long("a"), 52), shorten(&long("b"), 52));
/// ```
pub fn shorten(name: &str, max: usize) -> String {
    if name.len() <= max {
        return name.to_owned();
    }
    let digest = Sha256::digest(name.as_bytes());
    let mut hash = String::new();
    for byte in digest.iter().take(HASH_DIGITS / 2) {
        let _ = write!(hash, "{byte:02x}");
    }
    let mut end = max - HASH_DIGITS - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", name[..end].trim_end_matches(['-', '.', '_']))
}

/// Checks that Kubernetes accepts the name of an object: lower-case letters, digits, `-` and `.`, beginning and
/// ending with a letter or a digit, and likewise between dots.
///
/// ```
/// use qontract_fleet::names::is_object_name;
///
/// assert!(is_object_name("qontract-reconcile-a.b"));
/// assert!(!is_object_name("qontract-reconcile-Prod") && !is_object_name("a..b"));
/// ```
pub fn is_object_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.split('.').all(|part| {
        !part.is_empty() && part.bytes().all(is_inner) && !part.starts_with('-') && !part.ends_with('-')
    })
}

/// Whether a key of the data is one word on a command line, so that it cannot add arguments to a command.
///
/// ```
/// use qontract_fleet::names::is_argument;
///
/// assert!(is_argument("Prod.c-1_a"));
/// assert!(!is_argument("c1 --no-dry-run") && !is_argument("--no-dry-run") && !is_argument("a'b"));
/// ```
pub fn is_argument(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !key.is_empty() && !key.starts_with('-') && key.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::{MAX_CRON_JOB_NAME, is_object_name, shorten};

    #[test]
    fn a_shortened_name_is_stable_and_valid() {
        let name = format!("qontract-reconcile-{}", "a-".repeat(40));
        let short = shorten(&name, MAX_CRON_JOB_NAME);
        assert_eq!(short, "qontract-reconcile-a-a-a-a-a-a-a-a-a-a-a-a-05fd21d5");
        assert!(short.len() <= MAX_CRON_JOB_NAME && is_object_name(&short), "{short}");
    }

    #[test]
    fn a_name_of_the_maximum_length_is_kept() {
        let name = "a".repeat(MAX_CRON_JOB_NAME);
        assert_eq!(shorten(&name, MAX_CRON_JOB_NAME), name);
        assert_eq!(shorten(&format!("{name}a"), MAX_CRON_JOB_NAME).len(), MAX_CRON_JOB_NAME);
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        assert!(shorten(&"ü".repeat(40), 52).len() <= 52);
    }

    #[test]
    fn names_that_kubernetes_refuses_are_detected() {
        for name in ["", "-a", "a-", "a.", ".a", "a..b", "A", "a_b", "a/b", "ü"] {
            assert!(!is_object_name(name), "{name}");
        }
        for name in ["a", "a-b", "a.b", "0", "1abc.2-d"] {
            assert!(is_object_name(name), "{name}");
        }
    }
}

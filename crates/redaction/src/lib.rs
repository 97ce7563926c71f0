//! Redaction: replaces secrets in text. It protects output in addition to the types that keep secrets out of
//! it. Pure.
//!
//! **Invariant:** a field that contains a held secret, in one of the known encodings, is never returned
//! (`tests::a_field_that_contains_a_secret_is_replaced_as_a_whole`).
//!
//! **Invariant:** a redactor is not an oracle: text that the caller declares public is returned unchanged,
//! whether or not it equals a secret (`tests::public_text_is_shown_whether_or_not_it_equals_a_secret`).

mod decoding;
mod forms;
mod normalization;
mod words;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

pub use words::first_words;

/// The replacement for a field that contains a secret.
pub const REDACTED: &str = "[redacted]";

/// Minimum length of the secrets that are searched for. Shorter strings occur in ordinary text.
pub const MIN_BYTES: usize = 8;

/// Minimum length of the forms that are also found if they are interrupted by white space, as in wrapped
/// base64 or in an indented block.
const MIN_SPREAD_BYTES: usize = 16;

/// Recognises secrets in text.
///
/// ```
/// use qontract_redaction::{REDACTED, Redactor};
///
/// let redactor = Redactor::new(["correct horse"]);
/// assert_eq!(redactor.field("password: correct horse"), REDACTED);
/// assert_eq!(redactor.field("password: battery"), "password: battery");
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    /// Every form of every secret, by its first `window` bytes.
    forms: HashMap<Box<[u8]>, BTreeSet<Box<[u8]>>>,
    /// The forms of secrets that have several lines.
    multi_line: HashSet<Box<[u8]>>,
    window: usize,
}

impl Redactor {
    /// Holds the secrets that have [`MIN_BYTES`] or more.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        Self::with_min_bytes(secrets, MIN_BYTES)
    }

    /// Holds the secrets that have `min_bytes` or more. Use a lower minimum for values that are known to be
    /// credentials.
    pub fn with_min_bytes<'s>(secrets: impl IntoIterator<Item = &'s str>, min_bytes: usize) -> Self {
        let window = min_bytes.max(1);
        let mut redactor = Self { forms: HashMap::new(), multi_line: HashSet::new(), window };
        for secret in secrets {
            let is_multi_line = secret.trim().contains('\n');
            for form in forms::forms_of(secret, window) {
                if is_multi_line {
                    redactor.multi_line.insert(form.clone());
                }
                let start = form[..window].into();
                redactor.forms.entry(start).or_default().insert(form);
            }
        }
        redactor
    }

    /// Drops every form that occurs in these public strings.
    ///
    /// ```
    /// use qontract_redaction::Redactor;
    ///
    /// // A value that the data itself contains stays readable.
    /// let redactor = Redactor::new(["eu-west-1a", "correct horse"]).except(["region: eu-west-1a"]);
    /// assert!(!redactor.finds("moved to eu-west-1a"));
    /// assert!(redactor.finds("password: correct horse"));
    /// ```
    #[must_use]
    pub fn except<'t>(mut self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        for text in texts {
            if self.is_empty() {
                break;
            }
            let mut found: Vec<Box<[u8]>> = Vec::new();
            self.search(text, &mut |form| {
                found.push(form.into());
                SearchFlow::Continue
            });
            for form in found {
                let start = &form[..self.window];
                let is_last = self.forms.get_mut(start).is_some_and(|forms| {
                    forms.remove(&form);
                    forms.is_empty()
                });
                if is_last {
                    self.forms.remove(start);
                }
            }
        }
        self
    }

    /// Whether the redactor holds no secrets.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Whether a string contains a secret.
    pub fn finds(&self, text: &str) -> bool {
        let mut found = false;
        self.search(text, &mut |_| {
            found = true;
            SearchFlow::Stop
        });
        found
    }

    /// Returns the string unchanged, or [`REDACTED`] if it contains a secret.
    pub fn field<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.finds(text) { Cow::Borrowed(REDACTED) } else { Cow::Borrowed(text) }
    }

    /// Redacts a multi-line string, each line as a separate field. If part of a multi-line secret is found,
    /// the whole string is redacted, because the other lines of the secret may be too short to be recognised.
    ///
    /// ```
    /// use qontract_redaction::Redactor;
    ///
    /// let redactor = Redactor::new(["correct horse", "the first of two lines of one secret\nend"]);
    /// assert_eq!(redactor.lines("user: ann\npassword: correct horse"), "user: ann\n[redacted]");
    /// assert_eq!(redactor.lines("key: |\n  the first of two lines of one secret\n  end"), "[redacted]");
    /// ```
    pub fn lines<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let (mut is_found, mut is_multi_line) = (false, false);
        self.search(text, &mut |form| {
            is_found = true;
            is_multi_line = self.multi_line.contains(form);
            if is_multi_line { SearchFlow::Stop } else { SearchFlow::Continue }
        });
        if !is_found {
            return Cow::Borrowed(text);
        }
        if is_multi_line {
            return Cow::Borrowed(REDACTED);
        }
        let lines: Vec<Cow<'_, str>> = text.lines().map(|line| self.field(line)).collect();
        let joined = lines.join("\n");
        if self.finds(&joined) { Cow::Borrowed(REDACTED) } else { Cow::Owned(joined) }
    }

    /// Calls `on` for every form that occurs in a string, verbatim, decoded or normalized, until `on` stops
    /// the search.
    fn search(&self, text: &str, on: &mut dyn FnMut(&[u8]) -> SearchFlow) {
        if self.is_empty() {
            return;
        }
        for decoded in decoding::decoded_texts(text) {
            let composed = normalization::to_nfkc(&decoded);
            for bytes in std::iter::once(&*decoded).chain(composed.as_deref()) {
                if matches!(self.scan(bytes, 0, on), SearchFlow::Stop) {
                    return;
                }
                let spread = normalization::without_white_space(bytes).unwrap_or_default();
                if matches!(self.scan(&spread, MIN_SPREAD_BYTES, on), SearchFlow::Stop) {
                    return;
                }
            }
        }
    }

    /// Calls `on` for every form of at least `min_bytes` in these bytes, until `on` stops the search.
    fn scan(&self, bytes: &[u8], min_bytes: usize, on: &mut dyn FnMut(&[u8]) -> SearchFlow) -> SearchFlow {
        for (at, start) in bytes.windows(self.window).enumerate() {
            let forms = self.forms.get(start).into_iter().flatten();
            let is_here = |form: &&[u8]| form.len() >= min_bytes && bytes[at..].starts_with(form);
            for form in forms.map(AsRef::as_ref).filter(is_here) {
                if matches!(on(form), SearchFlow::Stop) {
                    return SearchFlow::Stop;
                }
            }
        }
        SearchFlow::Continue
    }
}

/// Whether a search continues.
enum SearchFlow {
    Continue,
    Stop,
}

/// Prints the number of forms, never the secrets.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.values().map(BTreeSet::len).sum::<usize>())
    }
}

#[cfg(test)]
mod tests;

//! Resolves data specifiers of the command line: a bundle file, a directory, or a Git revision.

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use qontract_bundle::repo::{GitError, Revision, merge_base};
use qontract_bundle::{Bundle, Layout, Pool, Repo, Sha256, load_from};
use qontract_diagnostics::{MessageSink, Report, Sources};
use qontract_graphql::{Engine, SchemaCache, SchemaError};

use crate::discovery::{self, DEFAULT_BASE, DEFAULT_REVISIONS, PassedAs};
use crate::exit::UsageError;
use crate::opened_repo::OpenedRepo;
use crate::reconciled_data::MAX_BUNDLE_BYTES;
use crate::repo_cache::RepoCache;
use crate::validation::{self, CheckedBundle, FailedCheck};

pub use crate::validation::InputCheck;

/// A bundle and, unless it was read from a bundle file, its data repo.
pub struct Input {
    /// The bundle that was read or built.
    pub bundle: Bundle,
    /// The data repo, in which source lines are looked up.
    pub repo: Option<Repo>,
}

impl Input {
    /// Creates a query engine for the bundle. The engine shares indexes with `beside`, the engine of a similar
    /// bundle, and takes the schema from `schemas`, the cache with which the bundle was checked.
    pub fn engine(&self, beside: Option<&Engine>, schemas: &SchemaCache) -> Result<Engine, SchemaError> {
        let bundle = Arc::new(self.bundle.clone());
        match beside {
            Some(other) => other.derive_with_schemas(bundle, schemas),
            None => Engine::with_schemas(bundle, schemas),
        }
    }
}

/// The content of the files that have not changed since they were bundled: line numbers in changed files
/// would be wrong.
impl Sources for Input {
    fn text(&self, file: &str) -> Option<Cow<'_, str>> {
        let repo = self.repo.as_ref()?;
        let text = repo.text(file)?;
        let datafile = repo.layout().path_of(file).and_then(|path| self.bundle.datafile(path));
        let bundled = datafile.and_then(|datafile| datafile.value.get("$file_sha256sum")?.as_str());
        let is_same = |bundled: &str| bundled == Sha256::of(text.as_bytes()).to_string();
        bundled.is_none_or(is_same).then_some(text)
    }
}

/// The error message for data `spec` whose query engine cannot be built.
pub fn invalid_types_message(spec: &str) -> String {
    format!("the GraphQL types of `{spec}` are invalid")
}

/// The error of a data repo that cannot be bundled or has errors. The findings were already reported.
pub struct ValidationFailed {
    spec: String,
    /// The findings of bundling and of the check.
    pub findings: Report,
    /// The data repo, for the content of its files.
    pub repo: Repo,
    /// The commit of the data repo.
    pub commit: String,
    /// The SHA-256 of the bundle, if the data could be bundled.
    pub sha: Option<String>,
}

impl std::fmt::Display for ValidationFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.sha {
            Some(_) => write!(f, "`{}` is invalid; no integration runs on it", self.spec),
            None => write!(f, "`{}` cannot be bundled", self.spec),
        }
    }
}

impl std::fmt::Debug for ValidationFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ValidationFailed").field(&self.spec).finish()
    }
}

impl std::error::Error for ValidationFailed {}

/// Resolves and opens data specifiers. Inputs that one resolver opens share equal documents.
pub struct InputResolver<'a> {
    /// The repo in which revisions are looked up.
    folder: &'a Path,
    /// The layout of data repos.
    pub layout: Layout,
    pool: Pool,
    /// The schema of the input that was opened last.
    pub schemas: SchemaCache,
    messages: &'a dyn MessageSink,
}

impl<'a> InputResolver<'a> {
    /// Creates a resolver that looks up revisions in the repo at `folder`.
    pub fn new(folder: &'a Path, layout: Layout, messages: &'a dyn MessageSink) -> Self {
        Self { folder, layout, pool: Pool::default(), schemas: SchemaCache::default(), messages }
    }

    /// The base and head of a comparison, with defaults: the default branch of the remote as the base, and the
    /// directory of the data repo as the head. If the remote has no such branch, the base is the commit that is
    /// checked out, and a note reports this. If the head lacks commits of that branch, the base is their merge base,
    /// because newer commits of the branch are not part of the change.
    pub fn base_and_head(
        &self,
        base: Option<String>,
        head: Option<String>,
    ) -> Result<(String, String), UsageError> {
        let of_head =
            head.clone().filter(|spec| !Path::new(spec).exists()).unwrap_or_else(|| "HEAD".to_owned());
        let head = head.unwrap_or_else(|| self.folder.display().to_string());
        if let Some(base) = base {
            return Ok((base, head));
        }
        let base = match Revision::open(self.folder, DEFAULT_BASE) {
            Err(GitError::NoRevision(_)) => {
                let text = format!("note: `{DEFAULT_BASE}` not found; comparing with `HEAD`");
                self.messages.note(&text);
                "HEAD"
            }
            Err(GitError::NoRepository(_)) => {
                let folder = self.folder.display();
                let text = format!("`{folder}` is not in a Git repository: pass BASE and HEAD");
                return Err(UsageError(text));
            }
            Ok(_) => return Ok((self.merge_base_of(&of_head), head)),
            // Other errors are reported when the base is opened.
            Err(_) => DEFAULT_BASE,
        };
        Ok((base.to_owned(), head))
    }

    /// The base for a revision: its merge base with the default branch, or the branch itself if the merge base is the
    /// tip of the branch.
    fn merge_base_of(&self, revision: &str) -> String {
        let base = |other: &str| merge_base(self.folder, DEFAULT_BASE, other).ok().flatten();
        match base(revision) {
            Some(base_of_both) if Some(&base_of_both) != base(DEFAULT_BASE).as_ref() => {
                let base = base_of_both;
                let short = base.get(..12).unwrap_or(&base);
                let text = format!(
                    "note: comparing with {short}, where `{revision}` branched off `{DEFAULT_BASE}`; newer commits of that branch are not included"
                );
                self.messages.note(&text);
                base
            }
            _ => DEFAULT_BASE.to_owned(),
        }
    }

    /// Fails if `spec` is both a path and a revision: a change that adds such a file must not determine the base of
    /// its comparison. A path that begins with a dot or a slash is not a revision.
    fn check_unambiguous(&self, spec: &str) -> Result<(), UsageError> {
        let is_plain = matches!(Path::new(spec).components().next(), Some(Component::Normal(_)));
        if is_plain
            && !spec.starts_with('.')
            && OpenedRepo::open_revision(self.folder, spec, &self.layout).is_ok()
        {
            let text = format!("`{spec}` is both a path and a Git revision: write `./{spec}` for the path");
            return Err(UsageError(text));
        }
        Ok(())
    }

    /// Opens `spec`: a file is a bundle, a directory is a data repo, and any other word is a revision. If a data repo
    /// cannot be bundled or does not pass the check, its findings are reported, and an error is returned. A bundle
    /// file is not checked: it was validated when it was built.
    pub fn open(&self, spec: &str, check: InputCheck) -> anyhow::Result<Input> {
        let Self { folder, layout, pool, schemas, messages } = self;
        let path = PathBuf::from(spec);
        let is_path = !DEFAULT_REVISIONS.contains(&spec) && path.exists();
        if is_path {
            self.check_unambiguous(spec)?;
        }
        if is_path && path.is_file() {
            let bundle =
                load_file(&path, pool).with_context(|| format!("cannot read the bundle `{spec}`"))?;
            return Ok(Input { bundle, repo: None });
        }
        let opened = if is_path && path.is_dir() {
            OpenedRepo::in_folder(&discovery::root(&path, layout, PassedAs::Option)?, layout.clone())?
        } else {
            OpenedRepo::resolve_revision(folder, spec, layout)?
        };
        let mut cache = RepoCache::load(&opened.repo, pool);
        let outcome = opened.bundle(pool, cache.build_options())?;
        let OpenedRepo { repo, stamp } = opened;
        if outcome.built.is_some() {
            cache.save(None);
        }
        let checked = validation::checked_bundle(&repo, outcome, check, &mut cache.validation, schemas)?;
        let bundle = match checked {
            CheckedBundle::Passed(bundle) => bundle,
            CheckedBundle::Failed(FailedCheck { findings, sha }) => {
                let (findings, sha) = (Report::new(findings), sha.map(|sha| sha.to_string()));
                messages.report(&findings, &repo);
                let (spec, commit) = (spec.to_owned(), stamp.commit);
                return Err(ValidationFailed { spec, findings, repo, commit, sha }.into());
            }
        };
        cache.validation.save();
        Ok(Input { bundle, repo: Some(repo) })
    }
}

/// The bytes with which compressed bundles of the journal begin.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Loads a bundle file: JSON, or a compressed bundle of the journal.
fn load_file(path: &Path, pool: &Pool) -> anyhow::Result<Bundle> {
    let mut bytes = BufReader::new(std::fs::File::open(path)?);
    if bytes.fill_buf()?.starts_with(&ZSTD_MAGIC) {
        let decoder = zstd::Decoder::with_buffer(bytes)?.take(MAX_BUNDLE_BYTES);
        return Ok(load_from(&mut BufReader::new(decoder), pool)?);
    }
    Ok(load_from(&mut bytes, pool)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct SilentSink;

    impl MessageSink for SilentSink {
        fn note(&self, _: &str) {}

        fn report(&self, _: &Report, _: &dyn Sources) {}
    }

    #[test]
    fn a_file_that_was_edited_after_bundling_has_no_lines() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.copy(&qontract_testkit::example(), "repo");
        let (repo, messages) = (scratch.path().join("repo"), SilentSink);
        let resolver = InputResolver::new(&repo, Layout::default(), &messages);
        let input = resolver.open(&repo.display().to_string(), InputCheck::Nothing).expect("a data repo");
        let (file, other) = ("data/services/billing/app.yml", "data/services/catalog/app.yml");
        let text = input.text(file).expect("a text").into_owned();
        scratch.write(&format!("repo/{file}"), format!("# above\n{text}"));
        assert_eq!(input.text(file), None);
        assert!(input.text(other).is_some() && input.text("graphql-schemas/schema.yml").is_some());
        scratch.write(&format!("repo/{file}"), &text);
        assert_eq!(input.text(file).as_deref(), Some(text.as_str()));
    }
}

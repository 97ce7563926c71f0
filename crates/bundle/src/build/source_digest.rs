//! Source digest: identifies the files from which a bundle is built. It does not depend on the commit that
//! the bundle names.

use qontract_diagnostics::Diagnostic;
use rayon::prelude::*;

use super::context::SchemaContext;
use super::parse;
use crate::digest::{Hasher, Sha256};
use crate::model::Bundle;
use crate::repo::{FileReadError, NameFilter, Repo, RepoError, RepoFile};

/// A file of a bundle.
#[derive(Default)]
struct FileDigest {
    path: String,
    /// The digest of the file's bytes, as text; for a file that is too large to be read, its size.
    digest: String,
}

impl Bundle {
    /// The digest of the files that the bundle was built from; `None` if it was loaded from a bundle file.
    pub fn source_digest(&self) -> Option<Sha256> {
        let context = self.context_digest?;
        let data = self.datafiles.iter().map(|file| {
            let [digest] = file.document.value.strings(["$file_sha256sum"]);
            FileDigest { path: file.path.to_string(), digest: digest.unwrap_or_default() }
        });
        let resources = self
            .resources
            .iter()
            .map(|one| FileDigest { path: one.path.to_string(), digest: one.sha256sum.to_string() });
        Some(combined(context, data, resources))
    }
}

impl Repo {
    /// The digest of the files from which a bundle of this data repo is built. Reads all these files.
    ///
    /// **Invariant:** it equals the source digest of the bundle
    /// (`a_bundle_has_the_source_digest_of_its_data_repo`).
    pub fn source_digest(&self) -> Result<Sha256, RepoError> {
        let layout = self.layout();
        // A file with findings is compared by its bytes, like every other file.
        let ignored = &mut Vec::new();
        let context = SchemaContext::read(self, ignored)?.digest(self);
        let mut data = self.list(&layout.data, NameFilter::Documents)?.files;
        data.retain(|file| parse::is_document(file, ignored));
        let data: Vec<Option<FileDigest>> = data.par_iter().map(datafile_digest).collect::<Result<_, _>>()?;
        let resources = match self.list(&layout.resources, NameFilter::All) {
            Err(RepoError::Missing { .. }) => Vec::new(),
            listing => listing?.files.par_iter().map(resource_digest).collect::<Result<_, _>>()?,
        };
        Ok(combined(context, data.into_iter().flatten(), resources.into_iter()))
    }
}

fn combined(
    context: Sha256,
    data: impl Iterator<Item = FileDigest>,
    resources: impl Iterator<Item = FileDigest>,
) -> Sha256 {
    let mut hasher = Hasher::default();
    hasher.update(context.as_bytes());
    let mut add = |FileDigest { path, digest }| {
        for part in [&path, "\0", &digest, "\0"] {
            hasher.update(part.as_bytes());
        }
    };
    data.for_each(&mut add);
    // No path is empty.
    add(FileDigest::default());
    resources.for_each(&mut add);
    hasher.finish()
}

/// The digest of a datafile; `None` if it is empty, because empty files are not part of a bundle.
fn datafile_digest(file: &RepoFile) -> Result<Option<FileDigest>, RepoError> {
    let is_empty = |bytes: &[u8]| {
        let mut findings = Vec::new();
        let document = parse::parse_bytes(file, bytes, &mut findings);
        document.is_none() && !findings.iter().any(Diagnostic::is_error)
    };
    file_digest(file, |bytes| may_be_empty(bytes) && is_empty(bytes))
}

fn resource_digest(file: &RepoFile) -> Result<FileDigest, RepoError> {
    file_digest(file, |_| false).map(Option::unwrap_or_default)
}

fn file_digest(
    file: &RepoFile,
    is_left_out: impl FnOnce(&[u8]) -> bool,
) -> Result<Option<FileDigest>, RepoError> {
    let digest = match file.read() {
        Ok(bytes) if is_left_out(&bytes) => return Ok(None),
        Ok(bytes) => Sha256::of(&bytes).to_string(),
        Err(FileReadError::TooLarge(size)) => format!("{size} bytes"),
        Err(FileReadError::Failed(source)) => {
            return Err(RepoError::List { name: file.name.clone(), source });
        }
    };
    Ok(Some(FileDigest { path: file.path.clone(), digest }))
}

/// Whether a YAML file may have no value, judged without parsing it. A datafile that has
/// a value is a map, so one of its lines has a colon. A colon in a directive or after a `#` does not count.
/// The result may be `true` for a file with a value: a map whose only colons follow a `#` in a key.
fn may_be_empty(bytes: &[u8]) -> bool {
    let has_colon = |line: &[u8]| {
        let text = line.split(|byte| *byte == b'#').next().unwrap_or_default();
        !text.starts_with(b"%") && text.contains(&b':')
    };
    !bytes.split(|byte| *byte == b'\n').any(has_colon)
}

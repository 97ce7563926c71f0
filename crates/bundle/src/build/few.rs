//! The bundle of a data repo in which a few files say something else, when it is known which.
//!
//! Nobody looks at the other files: what they made of the last bundle stays. **Invariant:** it is the bundle that would be made of all
//! files. Where that cannot be told from the few, nothing is made here: files that come or go, schemas that get other fields,
//! mistakes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::Metadata;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::datafiles::{self, Identity, Read, Said, Ways};
use super::encode;
use super::memory::{self, Found, Kept, Known, Memory, Recollection, Whole};
use super::resources;
use crate::model::{Bundle, Document, Pool, Resource, Stamp};
use crate::repo::{DiskPath, File, Names, Repo, Root, has_hidden_part};

type Paths<'a> = HashSet<&'a str, RandomState>;

/// The bundle, if these are the only files that may have changed since the last one. It is remembered then.
pub fn build(
    repo: &Repo,
    stamp: &Stamp,
    pool: &Pool,
    memory: &mut Memory,
    told: &BTreeSet<PathBuf>,
) -> Option<Bundle> {
    let begun = memory.now();
    let Recollection { datafiles, resources, last, whole, .. } = &mut memory.known;
    let (whole, last) = (whole.as_mut()?, last.as_mut().filter(|last| last.stamp == *stamp)?);
    // Places among those that are known are places in the bundle.
    if (datafiles.len(), resources.len()) != (last.datafiles.len(), last.resources.len()) {
        return None;
    }
    let few = Few { repo, datafiles, resources, whole };
    let (data, raw) = few.places(told)?;
    let guide = whole.ground.schemas.guide();
    let ways = Ways { known: datafiles, begun: Some(begun), guide: &guide, types: &whole.ground.types };
    let read = |place: usize, file: DiskPath| {
        let (path, kept) = &datafiles.files()[place];
        let file = File::on_disk(repo.layout().datafile(path), path, file);
        let kept = datafiles::look(&file, Some(kept), &ways).ok()?;
        kept.what.findings.is_empty().then_some((place, kept))
    };
    let data = data.into_iter().map(|(place, file)| read(place, file)).collect::<Option<BTreeMap<_, _>>>()?;
    let documents = few.documents(&data, pool)?;
    let raw = few.resources(&data, &raw, begun, pool)?;

    let mut built = last.clone();
    let first = documents.first_key_value().map(|(place, _)| *place);
    let first_resource =
        raw.iter().find(|(_, (_, is_new))| *is_new).map(|(place, _)| datafiles.len() + place);
    let same = first.or(first_resource);
    for (place, document) in documents {
        built.datafiles[place].document = document;
    }
    for (place, (kept, _)) in raw {
        built.resources[place] = Arc::clone(&kept.what);
        resources.set(place, kept);
    }
    if let Some(same) = same {
        encode::rename(&mut built, same, &mut whole.marks);
    }
    for (place, kept) in data {
        datafiles.set(place, kept);
    }
    *last = built.clone();
    Some(built)
}

/// Whether a file may be there under another name too, which nobody tells of.
fn has_other_names(about: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(about) > 1;
    #[cfg(not(unix))]
    return about.is_symlink();
}

/// What is known of all files.
struct Few<'a> {
    repo: &'a Repo,
    datafiles: &'a Known<Read>,
    resources: &'a Known<Resource>,
    whole: &'a Whole,
}

/// Files that may have changed, by their places among all.
type Places = BTreeMap<usize, DiskPath>;

impl<'a> Few<'a> {
    /// Which datafiles and which resources the files are; nothing if others may have changed too.
    fn places(&self, told: &BTreeSet<PathBuf>) -> Option<(Places, Places)> {
        let (root, layout) = (std::path::absolute(self.repo.folder()?).ok()?, self.repo.layout());
        let opened = Root::open(&root.canonicalize().ok()?).ok()?;
        let (mut data, mut raw) = (Places::new(), Places::new());
        let parts = [&layout.data, &layout.resources, &layout.schemas, &layout.graphql];
        for file in told {
            let within = |part: &str| file.strip_prefix(root.join(part)).ok();
            // A part itself, or a folder above it: all that is in it may be another.
            if parts.iter().any(|part| root.join(part).starts_with(file)) {
                return None;
            }
            let is_ground = within(&layout.schemas).is_some() || within(&layout.graphql).is_some();
            if is_ground || !file.starts_with(&root) {
                return None;
            }
            let (below, is_data) = match (within(&layout.data), within(&layout.resources)) {
                (None, None) => continue,
                (Some(_), Some(_)) => return None,
                (Some(below), None) => (below, true),
                (None, Some(below)) => (below, false),
            };
            let path = format!("/{}", below.to_str()?);
            if has_hidden_part(&path) {
                continue;
            }
            let (known, names, places) = if is_data {
                (self.datafiles.find(&path), Names::Documents, &mut data)
            } else {
                (self.resources.find(&path), Names::All, &mut raw)
            };
            match (file.symlink_metadata(), known) {
                (Ok(about), Ok(place)) if about.is_file() && !has_other_names(&about) => {
                    places.insert(place, DiskPath::new(&opened, file.strip_prefix(&root).ok()?));
                }
                // Editors write other files for a moment.
                (Ok(about), Err(_)) if about.is_file() && !names.wants(&path) => {}
                (Err(error), Err(false)) if error.kind() == io::ErrorKind::NotFound => {}
                _ => return None,
            }
        }
        Some((data, raw))
    }

    /// What datafiles say, those that changed and the others.
    fn said(&self, data: &'a BTreeMap<usize, Kept<Read>>) -> impl Iterator<Item = (&'a str, &'a Said)> {
        let files = self.datafiles.files().iter().enumerate();
        files.filter_map(|(place, (path, known))| {
            Some((&**path, data.get(&place).unwrap_or(known).what.said.as_ref()?))
        })
    }

    /// The documents that are others now, by place.
    fn documents(
        &self,
        data: &'a BTreeMap<usize, Kept<Read>>,
        pool: &Pool,
    ) -> Option<BTreeMap<usize, Arc<Document>>> {
        let Whole { ground, patches, .. } = self.whole;
        let mut changed: BTreeMap<usize, (&Said, &Said)> = BTreeMap::new();
        for (place, kept) in data {
            let known = &self.datafiles.files()[*place].1;
            if Arc::ptr_eq(&known.what, &kept.what) {
                continue;
            }
            let (was, is) = (known.what.said.as_ref()?, kept.what.said.as_ref()?);
            if was.schema != is.schema || was.facts.patches != is.facts.patches {
                return None;
            }
            changed.insert(*place, (was, is));
        }
        // Who stands in a list has its identifier, and whether one does may have changed.
        let listed = |said: &'a Said| said.facts.listed.iter().map(|path| &**path);
        let (mut before, mut after) = (Paths::default(), Paths::default());
        for (was, is) in changed.values() {
            before.extend(listed(was));
            after.extend(listed(is));
        }
        let own = changed.keys().map(|place| &*self.datafiles.files()[*place].0);
        let asked: BTreeSet<&str> = before.symmetric_difference(&after).copied().chain(own).collect();
        let others = self.datafiles.files().iter().enumerate();
        let others = others.filter(|(place, _)| !changed.contains_key(place));
        let others = others.filter_map(|(_, (_, kept))| kept.what.said.as_ref());
        let listed: Paths<'_> = others.flat_map(listed).filter(|path| asked.contains(path)).collect();

        let mut documents = BTreeMap::new();
        for path in asked {
            let Ok(place) = self.datafiles.place(path) else { continue };
            let known = &self.datafiles.files()[place].1;
            let (was, is) = match changed.get(&place) {
                Some(change) => *change,
                None => known.what.said.as_ref().map(|said| (said, said))?,
            };
            let identity = |said: &'a Said, own: &Paths<'_>| {
                let is_listed = listed.contains(path) || own.contains(path);
                is_listed.then(|| said.identity(&ground.schemas, &ground.types)).flatten()
            };
            let (had, has) = (identity(was, &before), identity(is, &after));
            let properties = |one: Option<&Identity>| one.and_then(|identity| identity.properties);
            let is_patched = properties(has).is_none_or(|place| patches.properties.contains(&place));
            if !is_patched || properties(had).is_some() && properties(had) != properties(has) {
                return None;
            }
            if changed.contains_key(&place) || had.is_some() != has.is_some() {
                documents.insert(place, encode::document(is.content(has), pool, &mut Vec::new()));
            }
        }
        Some(documents)
    }

    /// The resources that may be others now, by place, and whether they are.
    fn resources(
        &self,
        data: &'a BTreeMap<usize, Kept<Read>>,
        raw: &Places,
        begun: std::time::SystemTime,
        pool: &Pool,
    ) -> Option<BTreeMap<usize, (Kept<Resource>, bool)>> {
        let mut asked: BTreeSet<&str> = raw.keys().map(|place| &*self.resources.files()[*place].0).collect();
        for (place, kept) in data {
            let named =
                |read: &'a Read| read.said.as_ref().map(|said| &said.facts.backrefs[..]).unwrap_or_default();
            let (was, is) = (named(&self.datafiles.files()[*place].1.what), named(&kept.what));
            if was != is {
                asked.extend(was.iter().chain(is).map(|(resource, _)| resource.as_str()));
            }
        }
        if asked.is_empty() {
            return Some(BTreeMap::new());
        }
        let backrefs = datafiles::backrefs(self.said(data), |resource| asked.contains(resource));
        let mut resources = BTreeMap::new();
        for path in asked {
            let Ok(place) = self.resources.place(path) else { continue };
            let known = &self.resources.files()[place].1;
            let at = raw.get(&place);
            let name = self.repo.layout().resource(path);
            let file = match at {
                Some(at) => File::on_disk(name, path, at.clone()),
                None => File::without_content(name, path),
            };
            let found = match at {
                Some(_) => memory::look(&file, Some(known), Some(begun)).ok()?,
                None => Found::Kept(known.clone()),
            };
            let backrefs = backrefs.get(path).map(Vec::as_slice).unwrap_or_default();
            let one = resources::one(&file, found, Some(known), backrefs).ok()?;
            let (sight, sum) = (one.sight, one.sum);
            let what = encode::resource(one.text, pool, &mut Vec::new());
            let is_new = !Arc::ptr_eq(&what, &known.what);
            resources.insert(place, (Kept { sight, sum, what }, is_new));
        }
        Some(resources)
    }
}

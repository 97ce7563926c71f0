//! The position of the executor: in the answer, and in the data. Both are linked lists on the stack, read
//! only when needed.

use crate::failure::Step;
use crate::index::{FileId, ResourceId};
use crate::provenance::Provenance;
use crate::source::View;

/// A path in the answer.
#[derive(Clone, Copy)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: PathStep<'p>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Key(&'p str),
    /// The index in the data, and in the answer once empty objects are left out.
    Index(usize, usize),
}

impl<'p> Path<'p> {
    /// A field of the object at `parent`.
    pub fn key(parent: Option<&'p Path<'p>>, key: &'p str) -> Self {
        Self { parent, step: PathStep::Key(key) }
    }

    /// An element of the list at `self`.
    pub fn index(&'p self, index: usize, kept: usize) -> Self {
        Self { parent: Some(self), step: PathStep::Index(index, kept) }
    }

    /// The segments from the root, as errors report them: with the indices of the data.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(path) = at {
            steps.push(match path.step {
                PathStep::Key(key) => Step::Key(key.into()),
                PathStep::Index(index, _) => Step::Index(index),
            });
            at = path.parent;
        }
        steps.reverse();
        steps
    }

    /// The path as a JSON pointer into the answer's `data`.
    fn pointer(&self) -> String {
        let mut pointer = self.parent.map(Path::pointer).unwrap_or_default();
        pointer.push('/');
        match self.step {
            PathStep::Key(key) => pointer.push_str(key),
            PathStep::Index(_, kept) => pointer.push_str(&kept.to_string()),
        }
        pointer
    }
}

/// A position in the data.
#[derive(Clone, Copy)]
pub enum Origin<'p> {
    /// None: the schema, or the root of a request.
    Nowhere,
    /// A datafile.
    File(FileId),
    /// A resource.
    Resource(ResourceId),
    /// A key of the parent map.
    Key(&'p Origin<'p>, &'p str),
    /// An element of the parent list.
    Index(&'p Origin<'p>, usize),
}

impl Origin<'_> {
    /// The path of the file and the JSON pointer into it.
    fn place(&self, view: View<'_>) -> Option<(Box<str>, String)> {
        match self {
            // Resources are in another tree than datafiles.
            Origin::Nowhere | Origin::Resource(_) => None,
            Origin::File(file) => {
                Some(((*view.bundle.datafiles()[*file as usize].path).into(), String::new()))
            }
            Origin::Key(parent, key) => {
                let (file, mut pointer) = parent.place(view)?;
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                Some((file, pointer))
            }
            Origin::Index(parent, index) => {
                let (file, mut pointer) = parent.place(view)?;
                pointer.push_str(&format!("/{index}"));
                Some((file, pointer))
            }
        }
    }
}

/// A position in the answer and the position in the data it is written from.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    /// In the answer; the root has none.
    pub path: Option<&'p Path<'p>>,
    /// In the data.
    pub origin: Origin<'p>,
}

impl Place<'_> {
    /// Adds the object at this position to the provenance.
    pub fn record(&self, view: View<'_>, provenance: &mut Provenance) {
        let Some(path) = self.path else { return };
        if let Origin::Resource(resource) = self.origin {
            let file = view.bundle.resources()[resource as usize].path.clone();
            provenance.add_resource(path.pointer(), file);
        } else if let Some((file, pointer)) = self.origin.place(view) {
            provenance.add(path.pointer(), file, pointer);
        }
    }
}

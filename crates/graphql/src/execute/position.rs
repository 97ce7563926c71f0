//! The position of the executor: in the answer, and in the data. Both are linked lists on the stack, read
//! only when needed.

use crate::failure::ErrorPathSegment;
use crate::index::{FileId, ResourceId};
use crate::provenance::Provenance;
use crate::source::DataView;

/// A path in the answer.
#[derive(Clone, Copy)]
pub struct AnswerPath<'p> {
    parent: Option<&'p AnswerPath<'p>>,
    step: PathStep<'p>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Key(&'p str),
    /// The index in the data, and in the answer once empty objects are left out.
    Index(usize, usize),
}

impl<'p> AnswerPath<'p> {
    /// A field of the object at `parent`.
    pub fn key(parent: Option<&'p AnswerPath<'p>>, key: &'p str) -> Self {
        Self { parent, step: PathStep::Key(key) }
    }

    /// An element of the list at `self`.
    pub fn index(&'p self, index: usize, kept: usize) -> Self {
        Self { parent: Some(self), step: PathStep::Index(index, kept) }
    }

    /// The segments from the root, as errors report them: with the indices of the data.
    pub fn steps(&self) -> Vec<ErrorPathSegment> {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(path) = at {
            steps.push(match path.step {
                PathStep::Key(key) => ErrorPathSegment::Key(key.into()),
                PathStep::Index(index, _) => ErrorPathSegment::Index(index),
            });
            at = path.parent;
        }
        steps.reverse();
        steps
    }

    /// The path as a JSON pointer into the answer's `data`.
    fn pointer(&self) -> String {
        let mut pointer = self.parent.map(AnswerPath::pointer).unwrap_or_default();
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
pub enum DataOrigin<'p> {
    /// None: the schema, or the root of a request.
    Nowhere,
    /// A datafile.
    File(FileId),
    /// A resource.
    Resource(ResourceId),
    /// A key of the parent map.
    Key(&'p DataOrigin<'p>, &'p str),
    /// An element of the parent list.
    Index(&'p DataOrigin<'p>, usize),
}

impl DataOrigin<'_> {
    /// The path of the file and the JSON pointer into it.
    fn locate(&self, view: DataView<'_>) -> Option<(Box<str>, String)> {
        match self {
            // Resources are in another tree than datafiles.
            DataOrigin::Nowhere | DataOrigin::Resource(_) => None,
            DataOrigin::File(file) => {
                Some(((*view.bundle.datafiles()[*file as usize].path).into(), String::new()))
            }
            DataOrigin::Key(parent, key) => {
                let (file, mut pointer) = parent.locate(view)?;
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                Some((file, pointer))
            }
            DataOrigin::Index(parent, index) => {
                let (file, mut pointer) = parent.locate(view)?;
                pointer.push_str(&format!("/{index}"));
                Some((file, pointer))
            }
        }
    }
}

/// A position in the answer and the position in the data it is written from.
#[derive(Clone, Copy)]
pub struct ExecutionPosition<'p> {
    /// In the answer; the root has none.
    pub path: Option<&'p AnswerPath<'p>>,
    /// In the data.
    pub origin: DataOrigin<'p>,
}

impl ExecutionPosition<'_> {
    /// Adds the object at this position to the provenance.
    pub fn record(&self, view: DataView<'_>, provenance: &mut Provenance) {
        let Some(path) = self.path else { return };
        if let DataOrigin::Resource(resource) = self.origin {
            let file = view.bundle.resources()[resource as usize].path.clone();
            provenance.add_resource(path.pointer(), file);
        } else if let Some((file, pointer)) = self.origin.locate(view) {
            provenance.add(path.pointer(), file, pointer);
        }
    }
}

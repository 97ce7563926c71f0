//! The position of the executor in the response and in the data. Each of the two is a linked list on the
//! stack, which is read only when it is needed.

use crate::data_view::DataView;
use crate::failure::ErrorPathSegment;
use crate::provenance::Provenance;
use crate::source::{FileId, ResourceId};

/// A path in the response.
#[derive(Clone, Copy)]
pub struct AnswerPath<'p> {
    parent: Option<&'p AnswerPath<'p>>,
    step: PathStep<'p>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Key(&'p str),
    /// The index in the data, and the index in the response, which omits empty objects.
    Index(usize, usize),
}

impl<'p> AnswerPath<'p> {
    /// A field of the object at `parent`.
    pub fn key(parent: Option<&'p AnswerPath<'p>>, key: &'p str) -> Self {
        Self { parent, step: PathStep::Key(key) }
    }

    /// An element of the list at `self`.
    pub fn index(&'p self, index: usize, written: usize) -> Self {
        Self { parent: Some(self), step: PathStep::Index(index, written) }
    }

    /// The path from the root for an error, with the indices in the data.
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

    /// The path as a JSON pointer into the `data` of the response.
    fn pointer(&self) -> String {
        let mut pointer = self.parent.map(AnswerPath::pointer).unwrap_or_default();
        pointer.push('/');
        match self.step {
            PathStep::Key(key) => pointer.push_str(key),
            PathStep::Index(_, written) => pointer.push_str(&written.to_string()),
        }
        pointer
    }
}

/// A position in the data.
#[derive(Clone, Copy)]
pub enum DataOrigin<'p> {
    /// Not in the data: the schema, or the root of a request.
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
            // Resources are not values of datafiles.
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

/// A position in the response, and the position in the data from which it is written.
#[derive(Clone, Copy)]
pub struct ExecutionPosition<'p> {
    /// The path in the response; `None` at the root.
    pub path: Option<&'p AnswerPath<'p>>,
    /// The position in the data.
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

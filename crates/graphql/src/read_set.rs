//! The read set: the files that a query read, recorded during execution. The read set is used only to explain
//! results; decisions are based on the [footprint](crate::Footprint).

use crate::data_view::DataView;
use crate::source::Source;

/// The files that a query read.
#[derive(Clone, Debug, Default)]
pub struct ReadSet {
    files: Vec<bool>,
    resources: Vec<bool>,
}

impl ReadSet {
    /// Creates an empty read set for a bundle.
    pub(crate) fn new(view: DataView<'_>) -> Self {
        Self {
            files: vec![false; view.bundle.datafiles().len()],
            resources: vec![false; view.bundle.resources().len()],
        }
    }

    pub(crate) fn note(&mut self, source: Source<'_>) {
        match source {
            Source::File(file) => self.files[file as usize] = true,
            Source::Resource(resource) => self.resources[resource as usize] = true,
            _ => {}
        }
    }

    /// The indexes of the datafiles that were read, in order.
    pub fn files(&self) -> impl Iterator<Item = usize> {
        numbers(&self.files)
    }

    /// The indexes of the resources that were read, in order.
    pub fn resources(&self) -> impl Iterator<Item = usize> {
        numbers(&self.resources)
    }
}

fn numbers(flags: &[bool]) -> impl Iterator<Item = usize> {
    flags.iter().enumerate().filter(|(_, flag)| **flag).map(|(number, _)| number)
}

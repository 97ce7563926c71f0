//! How people call the files of a bundle: by their path in the data repo.

use qontract_bundle::Layout;
use qontract_diagnostics::Place;

/// Turns paths of a bundle into names of files.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a>(pub &'a Layout);

impl Names<'_> {
    /// The name of the datafile at `path`.
    pub fn data(self, path: &str) -> String {
        joined(&self.0.data, path)
    }

    /// The name of the resource at `path`.
    pub fn resource(self, path: &str) -> String {
        joined(&self.0.resources, path)
    }

    /// The name of the schema at `path`.
    pub fn schema(self, path: &str) -> String {
        joined(&self.0.schemas, path)
    }

    /// The name of the file that describes the GraphQL types.
    pub fn graphql(self) -> String {
        self.0.graphql.clone()
    }

    /// A place in a datafile.
    pub fn data_place(self, path: &str, pointer: &str) -> Place {
        Place { file: self.data(path), span: None, pointer: Some(pointer.to_owned()) }
    }
}

fn joined(folder: &str, path: &str) -> String {
    format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches('/'))
}

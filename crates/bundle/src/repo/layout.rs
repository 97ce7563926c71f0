//! The locations of the parts of a data repo, and the names of their files in messages.

/// The locations of the parts of a data repo, relative to its root.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Directory of datafiles.
    pub data: String,
    /// Directory of resources.
    pub resources: String,
    /// Directory of JSON Schemas.
    pub schemas: String,
    /// File that defines the GraphQL types.
    pub graphql: String,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            data: "data".to_owned(),
            resources: "resources".to_owned(),
            schemas: "schemas".to_owned(),
            graphql: "graphql-schemas/schema.yml".to_owned(),
        }
    }
}

impl Layout {
    /// The layout with paths as Git writes them: without a leading `./` and a trailing slash.
    #[must_use]
    pub fn normalized(self) -> Self {
        let normal = |path: String| {
            let path = path.trim_start_matches("./");
            if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path.to_owned() }
        };
        let Self { data, resources, schemas, graphql } = self;
        Self {
            data: normal(data),
            resources: normal(resources),
            schemas: normal(schemas),
            graphql: normal(graphql),
        }
    }
    /// The name, in messages, of the datafile at `path` of the bundle.
    pub fn datafile(&self, path: &str) -> String {
        joined(&self.data, path)
    }

    /// The name of the resource at `path`.
    pub fn resource(&self, path: &str) -> String {
        joined(&self.resources, path)
    }

    /// The name of the schema at `path`.
    pub fn schema(&self, path: &str) -> String {
        joined(&self.schemas, path)
    }

    /// The bundle path of the datafile or resource with this name.
    pub fn path_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let mut inside = [&self.data, &self.resources].into_iter().map(|folder| folder.trim_end_matches('/'));
        inside.find_map(|folder| name.strip_prefix(folder).filter(|path| path.starts_with('/')))
    }
}

/// The relative path from the directory `from` to `to`, both relative to the same directory.
pub fn relative(from: &str, to: &str) -> String {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let (from, to) = (parts(from), parts(to));
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - common);
    up.chain(to[common..].iter().cloned()).collect::<Vec<_>>().join("/")
}

fn joined(folder: &str, path: &str) -> String {
    format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_from_another_directory() {
        let check =
            |from: &str, to: &str, expect: &str| assert_eq!(relative(from, to), expect, "{from} {to}");
        check("data/services", "data/services/a.yml", "a.yml");
        check("data/services", "data/services/b/a.yml", "b/a.yml");
        check("data/services", "data/teams/a.yml", "../teams/a.yml");
        check("data/services", "schemas/a.yml", "../../schemas/a.yml");
        check("data/serv", "data/services/a.yml", "../services/a.yml");
        check("", "./data/a.yml", "data/a.yml");
        check("data", "data", "");
    }

    #[test]
    fn a_file_has_a_name_for_people_and_a_path_in_the_bundle() {
        let layout = Layout { data: "here/data/".to_owned(), ..Layout::default() };
        assert_eq!(layout.datafile("/teams/core.yml"), "here/data/teams/core.yml");
        assert_eq!(layout.resource("/a.yaml"), "resources/a.yaml");
        assert_eq!(layout.schema("tiny/team-1.yml"), "schemas/tiny/team-1.yml");
        assert_eq!(layout.path_of("here/data/teams/core.yml"), Some("/teams/core.yml"));
        assert_eq!(layout.path_of("resources/a.yaml"), Some("/a.yaml"));
        for other in ["/teams/core.yml", "here/database/a.yml", "resources", "schemas/tiny/team-1.yml"] {
            assert_eq!(layout.path_of(other), None, "{other}");
        }
    }
}

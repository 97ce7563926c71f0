//! Template parameters: the settings that all pods of an environment share, and where each of them comes from.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::Environment;

/// The parameter with the tags of repositories.
const UPSTREAM_REPOS: &str = "INTEGRATION_UPSTREAM_REPOS";

/// A ref of a repository, whose commit is the tag of the image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RepositoryRef {
    /// The repository.
    pub repository: String,
    /// The branch, tag or commit.
    pub git_ref: String,
}

/// The sources of parameters, other than the environment.
#[derive(Clone, Debug, Default)]
pub struct ParameterSources<'s> {
    /// The parameters that exist. A variable of the process sets only these.
    pub names: BTreeSet<String>,
    /// Variables of the process.
    pub variables: BTreeMap<String, String>,
    /// The repository with the source code of the integrations.
    pub upstream: &'s str,
    /// The image; empty to take the image of the other sources.
    pub image: &'s str,
    /// The refs that determine the image tag, by environment.
    pub tag_from_ref: BTreeMap<String, String>,
}

/// The parameters of an environment.
///
/// In order of precedence, the lowest first: the parameters of the environment, variables of the process, the entry of
/// `INTEGRATION_UPSTREAM_REPOS` for the repository, the ref for the environment, and the image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TemplateParameters {
    /// The values, except for a tag that is the commit of a ref.
    pub values: Map<String, Value>,
    /// The ref whose commit is the parameter `IMAGE_TAG`.
    pub tag_of_ref: Option<RepositoryRef>,
}

impl TemplateParameters {
    /// The parameters of an environment.
    pub fn of(environment: Option<&Environment>, sources: &ParameterSources<'_>) -> Self {
        let of_environment = environment.and_then(|environment| environment.parameters.as_ref());
        let mut values = of_environment.and_then(Value::as_object).cloned().unwrap_or_default();
        let variables = sources.variables.iter().filter(|(name, _)| sources.names.contains(*name));
        values.extend(variables.map(|(name, value)| (name.clone(), value.as_str().into())));
        let name = environment.map(|environment| environment.name.as_str()).unwrap_or_default();
        let git_ref = sources.tag_from_ref.get(name).cloned();
        let git_ref = git_ref.or_else(|| upstream_ref(&values, sources.upstream));
        let tag_of_ref =
            git_ref.map(|git_ref| RepositoryRef { repository: sources.upstream.to_owned(), git_ref });
        if tag_of_ref.is_some() {
            values.remove("IMAGE_TAG");
        }
        if !sources.image.is_empty() {
            values.insert("IMAGE".to_owned(), sources.image.into());
        }
        Self { values, tag_of_ref }
    }

    /// A parameter as text; `None` if it is not set.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.values.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// A parameter as text, or its default.
    pub fn text_or(&self, name: &str, default: &str) -> String {
        self.text(name).unwrap_or_else(|| default.to_owned())
    }
}

/// The ref of a repository in the parameters of an environment.
fn upstream_ref(values: &Map<String, Value>, upstream: &str) -> Option<String> {
    let repositories = values.get(UPSTREAM_REPOS)?.as_array()?;
    let entry = repositories.iter().find(|entry| entry["repo"] == upstream)?;
    entry["ref"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{ParameterSources, RepositoryRef, TemplateParameters};
    use crate::model::Environment;

    #[test]
    fn the_ref_of_the_command_line_takes_precedence_over_the_data() {
        let parameters = json!({
            "IMAGE_TAG": "old",
            "INTEGRATION_UPSTREAM_REPOS": [{"repo": "https://e/r", "ref": "main"}],
            "N": 3,
        });
        let environment = Environment { name: "prod".to_owned(), parameters: Some(parameters) };
        let mut sources = ParameterSources { upstream: "https://e/r", ..ParameterSources::default() };
        let tag = |sources: &ParameterSources<'_>| {
            let parameters = TemplateParameters::of(Some(&environment), sources);
            assert_eq!(parameters.text("N").as_deref(), Some("3"));
            let tag = parameters.tag_of_ref.map(|RepositoryRef { git_ref, .. }| git_ref);
            tag.or_else(|| Some(format!("literal {}", parameters.values["IMAGE_TAG"].as_str()?)))
        };
        assert_eq!(tag(&sources).as_deref(), Some("main"));
        sources.tag_from_ref = BTreeMap::from([("prod".to_owned(), "v2".to_owned())]);
        assert_eq!(tag(&sources).as_deref(), Some("v2"));
        sources.tag_from_ref = BTreeMap::from([("stage".to_owned(), "v2".to_owned())]);
        sources.upstream = "https://e/other";
        assert_eq!(tag(&sources).as_deref(), Some("literal old"));
    }

    #[test]
    fn parameters_that_are_not_a_map_are_ignored() {
        let environment = Environment { name: "prod".to_owned(), parameters: Some(json!([1])) };
        let parameters = TemplateParameters::of(Some(&environment), &ParameterSources::default());
        assert_eq!(parameters, TemplateParameters::default());
    }
}

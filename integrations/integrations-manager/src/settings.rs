//! The settings of the manager, from its flags.

use std::collections::BTreeMap;

use qontract_runtime::{Fault, Options};

/// The caller of a manager without `--upstream`, as in qontract-reconcile.
pub const DEFAULT_UPSTREAM: &str = "https://github.com/app-sre/qontract-reconcile";

/// The flag with the environment whose namespaces are managed.
pub const ENVIRONMENT_NAME: &str = "environment-name";
/// The flag with the repository whose integrations are managed.
pub const UPSTREAM: &str = "upstream";
/// The flag with the image.
pub const IMAGE: &str = "image";
/// The flag with the refs whose commits are image tags.
pub const IMAGE_TAG_FROM_REF: &str = "image-tag-from-ref";
/// The flag with template parameters.
pub const PARAMETER: &str = "parameter";

/// The settings of the manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagerSettings {
    /// The environment whose namespaces are managed; all environments by default.
    pub environment: Option<String>,
    /// The repository whose integrations are managed; all integrations by default.
    pub upstream: Option<String>,
    /// The image of the pods.
    pub image: Option<String>,
    /// The refs whose commits are image tags, by environment.
    pub tag_from_ref: BTreeMap<String, String>,
    /// Template parameters.
    pub parameters: BTreeMap<String, String>,
}

impl ManagerSettings {
    /// Reads the flags.
    pub fn of(options: &Options) -> Result<Self, Fault> {
        let last = |flag: &str| options.values(flag).last().cloned();
        Ok(Self {
            environment: last(ENVIRONMENT_NAME),
            upstream: last(UPSTREAM),
            image: last(IMAGE),
            tag_from_ref: pairs(options, IMAGE_TAG_FROM_REF)?,
            parameters: pairs(options, PARAMETER)?,
        })
    }

    /// The caller in the marks of objects.
    pub fn caller(&self) -> String {
        self.upstream.clone().unwrap_or_else(|| DEFAULT_UPSTREAM.to_owned())
    }

    /// Whether integrations of a repository are managed.
    pub fn selects_upstream(&self, upstream: Option<&str>) -> bool {
        self.upstream.is_none() || self.upstream.as_deref() == upstream
    }

    /// Whether namespaces of an environment are managed.
    pub fn selects_environment(&self, environment: &str) -> bool {
        self.environment.as_deref().is_none_or(|selected| selected == environment)
    }

    /// The settings as variables, which pods of the manager itself get.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let tags = self.tag_from_ref.iter().map(|(environment, git_ref)| format!("{environment}={git_ref}"));
        let tags = tags.collect::<Vec<_>>().join(" ");
        [
            ("INTEGRATIONS_MANAGER_UPSTREAM", self.upstream.clone()),
            ("INTEGRATIONS_MANAGER_IMAGE", self.image.clone()),
            ("INTEGRATIONS_MANAGER_IMAGE_TAG_FROM_REF", Some(tags).filter(|tags| !tags.is_empty())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }
}

/// The values of a flag of the form `NAME=VALUE`. A value may contain several pairs, separated by white space, because
/// a variable of the process has one value.
fn pairs(options: &Options, flag: &str) -> Result<BTreeMap<String, String>, Fault> {
    let mut pairs = BTreeMap::new();
    for pair in options.values(flag).iter().flat_map(|value| value.split_whitespace()) {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Fault::operator(format!("`--{flag}` has the value `{pair}`; expected NAME=VALUE")));
        };
        pairs.insert(name.to_owned(), value.to_owned());
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use qontract_runtime::Options;

    use super::{DEFAULT_UPSTREAM, ManagerSettings};

    #[test]
    fn pairs_are_read_from_repeated_flags_and_from_one_value() {
        let mut options = Options::default();
        options.add("image-tag-from-ref", "prod=v1 stage=main");
        options.add("image-tag-from-ref", "prod=v2");
        let settings = ManagerSettings::of(&options).expect("valid flags");
        assert_eq!((&*settings.tag_from_ref["prod"], &*settings.tag_from_ref["stage"]), ("v2", "main"));
        assert_eq!(settings.caller(), DEFAULT_UPSTREAM);
        assert_eq!(settings.variables()["INTEGRATIONS_MANAGER_IMAGE_TAG_FROM_REF"], "prod=v2 stage=main");
        options.add("parameter", "=x");
        let fault = ManagerSettings::of(&options).expect_err("a pair without a name");
        assert_eq!(fault.text, "`--parameter` has the value `=x`; expected NAME=VALUE");
    }

    #[test]
    fn without_a_selection_everything_is_managed() {
        let settings = ManagerSettings::default();
        assert!(settings.selects_upstream(None) && settings.selects_environment("prod"));
        let settings = ManagerSettings { upstream: Some("a".to_owned()), ..settings };
        assert!(!settings.selects_upstream(None) && settings.selects_upstream(Some("a")));
    }
}

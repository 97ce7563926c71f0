//! The files of a new integration. The templates are in `xtask/templates`, one directory for each form.

use super::name::IntegrationName;
use crate::cli::TemplateForm;

/// Paths in the directory of an integration, each with its template.
type Templates = [(&'static str, &'static str)];

const STAGED: &Templates = &[
    ("Cargo.toml", include_str!("../../templates/staged/Cargo.toml")),
    ("README.md", include_str!("../../templates/staged/README.md")),
    ("cases/first.md", include_str!("../../templates/staged/cases/first.md")),
    ("src/apply.rs", include_str!("../../templates/staged/src/apply.rs")),
    ("src/declare.rs", include_str!("../../templates/staged/src/declare.rs")),
    ("src/lib.rs", include_str!("../../templates/staged/src/lib.rs")),
    ("src/observe.rs", include_str!("../../templates/staged/src/observe.rs")),
    ("src/plan.rs", include_str!("../../templates/staged/src/plan.rs")),
    ("src/query.graphql", include_str!("../../templates/staged/src/query.graphql")),
];

const FUNCTION: &Templates = &[
    ("Cargo.toml", include_str!("../../templates/function/Cargo.toml")),
    ("README.md", include_str!("../../templates/function/README.md")),
    ("cases/first.md", include_str!("../../templates/function/cases/first.md")),
    ("src/check.rs", include_str!("../../templates/function/src/check.rs")),
    ("src/lib.rs", include_str!("../../templates/function/src/lib.rs")),
    ("src/query.graphql", include_str!("../../templates/function/src/query.graphql")),
];

const DEFINITION: &str = include_str!("../../templates/definition.yml");

/// The files of an integration. Each has a path from the root of the checkout, and a text.
pub fn files(name: &IntegrationName, form: TemplateForm) -> Vec<(String, String)> {
    let templates = match form {
        TemplateForm::Staged => STAGED,
        TemplateForm::Function => FUNCTION,
    };
    templates.iter().map(|(path, text)| (format!("integrations/{name}/{path}"), fill(text, name))).collect()
}

/// The datafile that defines the integration.
pub fn definition(name: &IntegrationName) -> String {
    fill(DEFINITION, name)
}

fn fill(template: &str, name: &IntegrationName) -> String {
    template.replace("{{name}}", &name.to_string()).replace("{{Type}}", &name.type_name())
}

#[cfg(test)]
mod tests {
    use super::{definition, files};
    use crate::cli::TemplateForm;

    #[test]
    fn every_placeholder_is_filled() {
        let name = "an-example".parse().expect("a name");
        let all = [TemplateForm::Staged, TemplateForm::Function].map(|form| files(&name, form)).concat();
        for (path, text) in all.iter().chain([&("the definition".to_owned(), definition(&name))]) {
            assert!(!text.contains("{{"), "{path}: {text}");
        }
        let text = |path: &str| all.iter().find(|(other, _)| other == path).map(|(_, text)| text.as_str());
        let lib = text("integrations/an-example/src/lib.rs").expect("an integration has a `lib.rs`");
        assert!(lib.contains("pub struct AnExample {") && lib.contains("\"an-example\""), "{lib}");
        assert!(text("integrations/an-example/cases/first.md").is_some());
    }
}

//! Adds a new integration (`cargo xtask new-integration`): writes the files of an integration, registers it,
//! and defines it in the example data.
//!
//! All content is computed first, so that nothing is written if a step fails.

mod lists;
mod name;
mod scaffold;

use crate::cli::{GenerateArgs, NewIntegrationArgs, TemplateForm};
use crate::workspace::Workspace;
use crate::{console, generate};
use anyhow::{Context as _, Result, bail};
use name::IntegrationName;
use std::fs;

/// The schema that the query of a new integration reads.
const READ_SCHEMA: &str = "/app-sre/app-1.yml";

/// Creates an integration in this checkout.
pub fn run(workspace: &Workspace, arguments: &NewIntegrationArgs) -> Result<()> {
    let name: IntegrationName = arguments.name.parse()?;
    let folder = format!("integrations/{name}");
    if workspace.root.join(&folder).exists() {
        bail!("`{folder}` already exists");
    }
    let read = |path: &str| {
        fs::read_to_string(workspace.root.join(path)).with_context(|| format!("cannot read `{path}`"))
    };
    let mut files = scaffold::files(&name, arguments.form);
    for (path, edit) in lists::EDITS {
        let text = edit(&read(path)?, &name, arguments.form).with_context(|| format!("`{path}`"))?;
        files.push((path.to_owned(), text));
    }
    let defined = format!("examples/app-interface/data/integrations/{name}.yml");
    let is_defined = workspace.root.join(&defined).exists();
    let definition = if is_defined {
        lists::add_schema(&read(&defined)?, READ_SCHEMA)?
    } else {
        scaffold::definition(&name)
    };
    files.push((defined, definition));
    for (path, text) in &files {
        let full = workspace.root.join(path);
        if let Some(folder) = full.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        fs::write(&full, text).with_context(|| format!("cannot write `{path}`"))?;
        console::print(format_args!("wrote {path}"));
    }
    generate::run(workspace, &GenerateArgs::default())?;
    let package = format!("qontract-integration-{name}");
    workspace.cargo("fmt --package qontract --package").args([&package]).run()?;
    console::print(next_steps(&name, arguments.form));
    Ok(())
}

/// Instructions to print at the end.
fn next_steps(name: &IntegrationName, form: TemplateForm) -> String {
    let begin = match form {
        TemplateForm::Staged => "src/query.graphql and src/declare.rs",
        TemplateForm::Function => "src/query.graphql and src/check.rs",
    };
    format!(
        "\nnext: edit {begin} in integrations/{name}; see docs/how-to/add-an-integration.md\n\n    \
         cargo xtask test cases\n        runs its first case\n    \
         UPDATE=1 cargo test --package qontract --test suite -- query:: reconcile::\n        \
         rewrites the snapshots that list all integrations"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_how_to_shows_the_integration_as_it_is() {
        let how_to = include_str!("../../docs/how-to/add-an-integration.md");
        let lib = include_str!("../../integrations/openshift-resourcequotas/src/lib.rs");
        let declare = include_str!("../../integrations/openshift-resourcequotas/src/declare.rs");
        for (file, text) in [("lib.rs", lib), ("declare.rs", declare)] {
            assert!(how_to.contains(&format!("`src/{file}`:\n\n```rust\n{text}```\n")), "{file} differs");
        }
        let lines = format!("complete: {} lines of Rust", lib.lines().count() + declare.lines().count());
        assert!(how_to.contains(&lines), "expected `{lines}`");
    }
}

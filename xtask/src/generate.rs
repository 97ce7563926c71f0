//! Generates committed files: the Rust types of every GraphQL query, and the configuration reference.

use crate::cli::GenerateArgs;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};

/// Runs the generator over this checkout.
pub fn run(workspace: &Workspace, arguments: &GenerateArgs) -> Result<()> {
    let generator = workspace
        .cargo("run --quiet --package qontract-graphql --example generate --")
        .args([&workspace.root]);
    if arguments.check {
        generator.args(["--check"]).run()?;
    } else {
        generator.run()?;
    }
    PAGES.iter().try_for_each(|page| page.generate(workspace, arguments))
}

/// A page that the binary prints.
struct GeneratedPage {
    /// The file, from the root of the workspace.
    file: &'static str,
    /// The command that prints the page.
    command: &'static str,
}

/// The generated pages: every configuration key and environment variable, and every command.
const PAGES: [GeneratedPage; 2] = [
    GeneratedPage { file: "docs/reference/configuration.md", command: "config reference" },
    GeneratedPage { file: "docs/reference/cli.md", command: "help --markdown" },
];

impl GeneratedPage {
    /// Writes the page. With `--check`, compares it with the committed page instead.
    fn generate(&self, workspace: &Workspace, arguments: &GenerateArgs) -> Result<()> {
        let Self { file, command } = self;
        let run = format!("run --quiet --package qontract --bin qontract -- {command}");
        let page = String::from_utf8(workspace.cargo(&run).output()?).context("the page is not UTF-8")?;
        let path = workspace.root.join(file);
        if arguments.check {
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            if committed != page {
                bail!("{file} is out of date: run `cargo xtask generate`");
            }
            return Ok(());
        }
        std::fs::create_dir_all(path.parent().unwrap_or(&workspace.root))?;
        std::fs::write(&path, page).with_context(|| format!("cannot write {file}"))
    }
}

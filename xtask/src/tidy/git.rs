//! **Invariant:** every `git` process of the product is started by `crates/git`, which keeps hostile repositories from running anything.

use super::{Tree, Violation};

const RULE: &str = "git";

/// How a `git` process is started.
const START: &str = "Command::new(\"git";

/// Folders of the product.
const PRODUCT: [&str; 3] = ["crates/", "clients/", "integrations/"];

/// Folders that may start it: the crate itself, and what tests make repositories with. Build scripts and tests read the checkout that they
/// are part of, and are not in a folder `src`.
const ALLOWED: [&str; 2] = ["crates/git/", "crates/testkit/"];

/// Looks at every source file of the product.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let is_product = |path: &str| {
        PRODUCT.iter().any(|folder| path.starts_with(folder))
            && path.contains("/src/")
            && !ALLOWED.iter().any(|folder| path.starts_with(folder))
    };
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".rs").filter(|(path, _)| is_product(path)) {
        for (index, _) in text.lines().enumerate().filter(|(_, line)| line.contains(START)) {
            let message = "only `qontract-git` starts `git`: use it, or add there what is missing".to_owned();
            violations.push(Violation { path: path.to_owned(), line: index + 1, rule: RULE, message });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{Tree, expect};

    #[test]
    fn git_is_started_in_one_place() {
        let text = "//! A file.\nlet git = Command::new(\"git\");\nlet other = Command::new(\"sh\");\n";
        let message = "2: git: only `qontract-git` starts `git`: use it, or add there what is missing";
        let files = [
            "clients/x/src/lib.rs",
            "crates/bundle/src/repo/revision.rs",
            "crates/git/src/command.rs",
            "crates/qontract/build.rs",
            "crates/qontract/tests/suite/cli.rs",
            "crates/testkit/src/scratch.rs",
            "integrations/x/src/observe.rs",
            "xtask/src/main.rs",
        ];
        let found = [0, 1, 6].map(|index| format!("{}:{message}", files[index]));
        expect(
            check,
            &Tree::of_files(&files.map(|file| (file, text))),
            &found.each_ref().map(String::as_str),
        );
    }
}

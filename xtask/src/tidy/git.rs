//! **Invariant:** only `crates/git`, which prevents hostile repositories from running commands, starts `git`
//! processes.

use super::{SourceTree, Violation};

const RULE: &str = "git";

/// Code that starts a `git` process.
const START: &str = "Command::new(\"git";

/// Directories of the product.
const PRODUCT: [&str; 3] = ["crates/", "clients/", "integrations/"];

/// Directories that may start `git`: the crate itself, and the testkit, which creates repositories. Build
/// scripts and tests are not checked: they read their own checkout, and they are not in a directory `src`.
const ALLOWED: [&str; 2] = ["crates/git/", "crates/testkit/"];

/// Checks every source file of the product.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let is_product = |path: &str| {
        PRODUCT.iter().any(|folder| path.starts_with(folder))
            && path.contains("/src/")
            && !ALLOWED.iter().any(|folder| path.starts_with(folder))
    };
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".rs").filter(|(path, _)| is_product(path)) {
        for (index, _) in text.lines().enumerate().filter(|(_, line)| line.contains(START)) {
            let message = "only `qontract-git` may start `git`: use it, or extend it".to_owned();
            violations.push(Violation { path: path.to_owned(), line: index + 1, rule: RULE, message });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn git_is_started_in_one_place() {
        let text = "//! A file.\nlet git = Command::new(\"git\");\nlet other = Command::new(\"sh\");\n";
        let message = "2: git: only `qontract-git` may start `git`: use it, or extend it";
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
            &SourceTree::of_files(&files.map(|file| (file, text))),
            &found.each_ref().map(String::as_str),
        );
    }
}

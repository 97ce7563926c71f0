//! Limits the length of files.

use super::{SourceTree, Violation};

const RULE: &str = "size";

/// Maximum number of lines by file name suffix; the first match counts.
const LIMITS: [(&str, usize); 2] = [("ARCHITECTURE.md", 400), (".rs", 800)];

/// Checks the number of lines of every file.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let files = tree.texts("").filter_map(|(path, text)| {
        let (_, limit) = LIMITS.into_iter().find(|(suffix, _)| path.ends_with(suffix))?;
        let lines = text.lines().count();
        (lines > limit).then(|| Violation {
            path: path.to_owned(),
            line: limit + 1,
            rule: RULE,
            message: format!("{lines} lines, more than the limit of {limit}: split the file"),
        })
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn a_file_at_the_limit_passes() {
        let (source, page) = ("//! x\n".repeat(800), "x\n".repeat(400));
        let data = "{}\n".repeat(5000);
        expect(
            check,
            &SourceTree::of_files(&[("a.rs", &source), ("ARCHITECTURE.md", &page), ("data.json", &data)]),
            &[],
        );
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        let (source, page) = ("//! x\n".repeat(801), "x\n".repeat(401));
        expect(
            check,
            &SourceTree::of_files(&[("ARCHITECTURE.md", &page), ("a.rs", &source)]),
            &[
                "ARCHITECTURE.md:401: size: 401 lines, more than the limit of 400: split the file",
                "a.rs:801: size: 801 lines, more than the limit of 800: split the file",
            ],
        );
    }
}

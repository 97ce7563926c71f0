//! No file grows so long that nobody reads it.

use super::{Tree, Violation};

const RULE: &str = "size";

/// Which files may have how many lines: the first that fits counts.
const LIMITS: [(&str, usize); 2] = [("ARCHITECTURE.md", 400), (".rs", 800)];

/// Counts lines.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let files = tree.texts("").filter_map(|(path, text)| {
        let (_, limit) = LIMITS.into_iter().find(|(suffix, _)| path.ends_with(suffix))?;
        let lines = text.lines().count();
        (lines > limit).then(|| Violation {
            path: path.to_owned(),
            line: limit + 1,
            rule: RULE,
            message: format!("{lines} lines, at most {limit} are allowed: split it by meaning"),
        })
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{Tree, expect};

    #[test]
    fn the_limit_itself_is_fine() {
        let (source, page) = ("//! x\n".repeat(800), "x\n".repeat(400));
        let data = "{}\n".repeat(5000);
        expect(
            check,
            &Tree::of_files(&[("a.rs", &source), ("ARCHITECTURE.md", &page), ("data.json", &data)]),
            &[],
        );
    }

    #[test]
    fn one_line_more_is_not() {
        let (source, page) = ("//! x\n".repeat(801), "x\n".repeat(401));
        expect(
            check,
            &Tree::of_files(&[("ARCHITECTURE.md", &page), ("a.rs", &source)]),
            &[
                "ARCHITECTURE.md:401: size: 401 lines, at most 400 are allowed: split it by meaning",
                "a.rs:801: size: 801 lines, at most 800 are allowed: split it by meaning",
            ],
        );
    }
}

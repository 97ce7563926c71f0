//! Words that do not belong into the project: paths of somebody's machine, and texts left over from elsewhere.

use super::{Tree, Violation};

const RULE: &str = "words";

/// What must not appear, in lower case. Written in halves, so that this file does not hold it.
const FOREIGN: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("language", " model"),
    concat!("as an", " ai"),
];

/// Looks at every text file, except recorded data in folders called `vectors`.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts("").filter(|(path, _)| !path.split('/').any(|folder| folder == "vectors"))
    {
        for (index, line) in text.lines().enumerate() {
            let line = line.to_ascii_lowercase();
            for word in FOREIGN.into_iter().filter(|word| stands_alone(&line, word)) {
                let message = format!("`{word}` does not belong here");
                violations.push(Violation { path: path.to_owned(), line: index + 1, rule: RULE, message });
            }
        }
    }
    violations
}

/// Whether the word is in the line, not as a part of a longer word or path.
fn stands_alone(line: &str, word: &str) -> bool {
    let is_path = word.starts_with('/');
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let begins = !before.is_some_and(|c| c.is_alphanumeric() || is_path && "._-}/".contains(c));
        begins && (is_path || after.is_none_or(|c| !c.is_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::{FOREIGN, check};
    use crate::tidy::{Tree, expect};

    #[test]
    fn every_foreign_word_is_found_once() {
        for word in FOREIGN {
            let text = format!("fine\nsee `{}`, please\n", word.to_uppercase());
            let expected = format!("a.md:2: words: `{word}` does not belong here");
            expect(check, &Tree::of_files(&[("a.md", &text)]), &[&expected]);
        }
    }

    #[test]
    fn parts_of_longer_words_and_paths_are_fine() {
        let [work, _, home, _, ai] = FOREIGN;
        let text = format!("data{work}a.yml https://example.com{home} {ai}d");
        expect(check, &Tree::of_files(&[("a.md", &text)]), &[]);
    }

    #[test]
    fn recorded_data_is_left_alone() {
        expect(check, &Tree::of_files(&[("crates/a/tests/vectors/b.json", FOREIGN[2])]), &[]);
    }
}

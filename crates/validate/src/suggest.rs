//! "Did you mean": the nearest of the words that would have been right.

/// The candidate nearest to `written`, if one is near enough to be what was meant.
pub fn nearest<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    within((written.chars().count() / 3).clamp(1, 6), written, candidates)
}

fn within<'c>(most: usize, written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == written || candidate.len().abs_diff(written.len()) > most * 4 {
            continue;
        }
        let distance = if candidate.eq_ignore_ascii_case(written) { 0 } else { distance(written, candidate) };
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The path nearest to `written`: by its text, or by its last step in another folder.
pub fn nearest_path<'c>(written: &str, paths: impl Iterator<Item = &'c str> + Clone) -> Option<&'c str> {
    let last = written.rsplit('/').next().unwrap_or(written);
    // Most of a path is its folders: only what is left may differ.
    let most = (last.chars().count() / 5).clamp(1, 4);
    within(most, written, paths.clone()).or_else(|| {
        let mut same = paths.filter(|path| path.rsplit('/').next() == Some(last) && !last.is_empty());
        same.next().filter(|_| same.next().is_none())
    })
}

/// How many characters are to be added, dropped, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // What two paths have in common at both ends costs nothing and is most of them.
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, candidates: &[&str], expect: Option<&str>) {
        assert_eq!(nearest(written, candidates.iter().copied()), expect, "{written}");
    }

    #[test]
    fn the_nearest_word_is_meant_if_it_is_near() {
        check("naem", &["name", "game"], Some("name"));
        check("$scemaRef", &["$schemaRef", "$ref"], Some("$schemaRef"));
        check("minimal", &["minimum", "maximum"], Some("minimum"));
        check("Name", &["name"], Some("name"));
        check("xyz", &["name"], None);
    }

    #[test]
    fn a_file_in_another_folder_is_meant_if_it_is_the_only_one() {
        let paths = ["/teams/a.yml", "/roles/b.yml", "/users/b.yml"];
        assert_eq!(nearest_path("/old/a.yml", paths.into_iter()), Some("/teams/a.yml"));
        assert_eq!(nearest_path("/old/folder/b.yml", paths.into_iter()), None);
    }
}

//! Suggestions ("did you mean"): the closest valid word by edit distance. The only implementation in the
//! workspace, except for that of graphql-js.

use std::cell::Cell;

/// Maximum length of a word, in bytes, for which suggestions are computed.
const MAX_WORD_BYTES: usize = 1_000;

/// Maximum edit distance of a typo.
const MAX_TYPING_ERROR: usize = 2;

/// Budget of word comparisons. When it is exhausted, no more suggestions are made, because a long list of
/// suggestions does not help the reader.
#[derive(Debug)]
pub struct ComparisonBudget(Cell<usize>);

impl ComparisonBudget {
    /// Creates a budget for this many comparisons.
    pub fn new(words: usize) -> Self {
        Self(Cell::new(words))
    }

    /// Calls `find`, which compares `words` words, if the budget allows it.
    pub fn spend<T>(&self, words: usize, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let left = self.0.get().checked_sub(words);
        self.0.set(left.unwrap_or_default());
        left.and_then(|_| find())
    }
}

/// `` did you mean `name`? `` for the candidate closest to `written`, if one is close enough.
///
/// ```
/// use qontract_diagnostics::suggest::did_you_mean;
/// assert_eq!(did_you_mean("biling", ["billing", "catalog"]).as_deref(), Some("did you mean `billing`?"));
/// assert_eq!(did_you_mean("ns", ["gitlabinstances", "integrations"]), None);
/// ```
pub fn did_you_mean<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest_name(written, candidates).map(|name| format!("did you mean `{name}`?"))
}

/// The most likely intended candidate for `written`: a candidate that differs by a typo, otherwise one that
/// contains all words of `written`, otherwise the closest candidate.
fn nearest_name<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let most = max_distance(written);
    nearest_within(most.min(MAX_TYPING_ERROR), written, candidates.iter().copied())
        .or_else(|| with_words_of(written, &candidates))
        .or_else(|| nearest_within(most, written, candidates.iter().copied()))
}

/// The shortest candidate that contains every word of a name of several words.
fn with_words_of<'c>(written: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let lower = written.to_lowercase();
    let words: Vec<&str> = lower.split(['-', '_', '.', ' ']).filter(|word| !word.is_empty()).collect();
    if written.len() > MAX_WORD_BYTES || words.len() < 2 {
        return None;
    }
    let has_all = |candidate: &&&str| {
        let candidate = candidate.to_lowercase();
        words.iter().all(|word| candidate.contains(word))
    };
    let others = candidates.iter().filter(|candidate| **candidate != written);
    others.filter(has_all).min_by_key(|candidate| candidate.len()).copied()
}

/// The candidate closest to `written`, if one is close enough to be a likely correction.
pub fn nearest<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    nearest_within(max_distance(written), written, candidates)
}

/// Maximum edit distance of a likely correction.
fn max_distance(written: &str) -> usize {
    (written.chars().count() / 3).clamp(1, 6)
}

fn nearest_within<'c>(
    most: usize,
    written: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if written.len() > MAX_WORD_BYTES {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == written || candidate.len().abs_diff(written.len()) > most * 4 {
            continue;
        }
        let same = candidate.eq_ignore_ascii_case(written);
        let distance = if same { Some(0) } else { edit_distance(most, written, candidate) };
        if let Some(distance) = distance
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The path closest to `written`: `written` with an extension or a leading slash, a path with a small edit
/// distance, or a path with the same file name in another directory.
pub fn nearest_path<'c>(written: &str, paths: impl Iterator<Item = &'c str> + Clone) -> Option<&'c str> {
    if let Some(path) = paths.clone().find(|path| is_same_but_ending(written, path)) {
        return Some(path);
    }
    let last = written.rsplit('/').next().unwrap_or(written);
    // Directories make up most of a path, so the limit depends on the file name only.
    let most = (last.chars().count() / 5).clamp(1, 4);
    nearest_within(most, written, paths.clone()).or_else(|| {
        let mut same = paths.filter(|path| path.rsplit('/').next() == Some(last) && !last.is_empty());
        same.next().filter(|_| same.next().is_none())
    })
}

/// Whether `path` is `written` with a datafile extension, a leading slash, or both.
fn is_same_but_ending(written: &str, path: &str) -> bool {
    let stem = |path: &str| {
        let ending = [".yml", ".yaml", ".json"].into_iter().find(|ending| path.ends_with(ending));
        path.len() - ending.map_or(0, str::len)
    };
    let (whole, stem) = (path.trim_start_matches('/'), path[..stem(path)].trim_start_matches('/'));
    let plain = written.trim_start_matches('/');
    path != written && !plain.is_empty() && (plain == stem || plain == whole)
}

/// The edit distance (additions, deletions, changes and swaps of neighbours), if it is at most `most`.
fn edit_distance(most: usize, a: &str, b: &str) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // A common prefix and a common suffix do not affect the distance, and they make up most of two similar
    // paths.
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    // Distances above `most` are not distinguished, so cells that are more than `most` away from the diagonal
    // are skipped.
    let over = most + 1;
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).map(|column| column.min(over)).collect();
    let mut least_before = 0;
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![over; b.len() + 1];
        next[0] = (i + 1).min(over);
        let mut least_here = next[0];
        for j in i.saturating_sub(most)..(i + over).min(b.len()) {
            let y = &b[j];
            let mut least = (row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            next[j + 1] = least.min(over);
            least_here = least_here.min(least);
        }
        if least_here > most && least_before >= most {
            return None;
        }
        least_before = least_here;
        before = std::mem::replace(&mut row, next);
    }
    Some(row[b.len()]).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, candidates: &[&str], expect: Option<&str>) {
        assert_eq!(nearest(written, candidates.iter().copied()), expect, "{written}");
    }

    #[test]
    fn the_closest_word_is_suggested_if_it_is_close() {
        check("naem", &["name", "game"], Some("name"));
        check("$scemaRef", &["$schemaRef", "$ref"], Some("$schemaRef"));
        check("minimal", &["minimum", "maximum"], Some("minimum"));
        check("Name", &["name"], Some("name"));
        check("xyz", &["name"], None);
    }

    #[test]
    fn a_name_is_suggested_by_typing_error_then_by_words_then_by_distance() {
        let check = |written: &str, expect: Option<&str>| {
            let names =
                ["openshift-routes", "openshift-resourcequotas", "openshift-resources", "vault-replication"];
            assert_eq!(nearest_name(written, names), expect, "{written}");
        };
        check("openshift-quotas", Some("openshift-resourcequotas"));
        check("quotas-openshift", Some("openshift-resourcequotas"));
        check("Openshift-Quotas", Some("openshift-resourcequotas"));
        check("openshift_quota", Some("openshift-resourcequotas"));
        check("openshift-rotues", Some("openshift-routes"));
        check("openshift-resource", Some("openshift-resources"));
        check("openshift-source", Some("openshift-resources"));
        check("openshift-roots", Some("openshift-routes"));
        check("openshift-routxyz", Some("openshift-routes"));
        check("quotas", None);
        check("kafka-topics", None);
        // A name is not its own suggestion.
        assert_eq!(nearest_name("a-b", ["a-b"]), None);
        // A name with two typos is close enough; with three typos, matching words decide.
        assert_eq!(nearest_name("team-abcdef", ["team-abcdef-longer", "team-abcdxy"]), Some("team-abcdxy"));
        assert_eq!(
            nearest_name("team-abcdef", ["team-abcdef-longer", "team-abcxyz"]),
            Some("team-abcdef-longer")
        );
    }

    #[test]
    fn a_name_of_more_than_a_thousand_letters_is_not_searched_by_words() {
        let (written, other) = (format!("a-{}", "x".repeat(998)), format!("{}-a-more", "x".repeat(1_000)));
        assert_eq!(nearest_name(&written, [other.as_str()]), Some(other.as_str()));
        assert_eq!(nearest_name(&format!("{written}x"), [other.as_str()]), None);
    }

    #[test]
    fn a_word_of_more_than_a_thousand_letters_gets_no_suggestion() {
        let (written, other) = ("x".repeat(1_001), "x".repeat(1_002));
        check(&written, &[&other], None);
        check(&written[..1_000], &[&other[..999]], Some(&other[..999]));
    }

    #[test]
    fn a_distance_is_none_only_above_the_limit() {
        let check = |a: &str, b: &str, expect: usize| {
            assert_eq!(edit_distance(expect, a, b), Some(expect), "{a} {b}");
            assert_eq!(edit_distance(expect - 1, a, b), None, "{a} {b}");
            assert_eq!(edit_distance(expect + 3, b, a), Some(expect), "{b} {a}");
        };
        check("abcd", "badc", 2);
        check("kitten", "sitting", 3);
        check("xab", "yba", 2);
        check("abcdef", "x", 6);
    }

    #[test]
    fn a_spent_budget_makes_no_suggestions() {
        let patience = ComparisonBudget::new(5);
        assert_eq!(patience.spend(3, || Some(1)), Some(1));
        assert_eq!(patience.spend(3, || Some(1)), None);
        assert_eq!(patience.spend(1, || Some(1)), None);
    }

    #[test]
    fn an_ending_or_a_slash_that_is_missing_is_added() {
        let check = |written: &str, expect: Option<&str>| {
            let paths = ["/clusters/other.yml", "/clusters/cliffs-stage.yml", "/a.json"];
            assert_eq!(nearest_path(written, paths.into_iter()), expect, "{written}");
        };
        check("/clusters/cliffs-stage", Some("/clusters/cliffs-stage.yml"));
        check("clusters/cliffs-stage.yml", Some("/clusters/cliffs-stage.yml"));
        check("clusters/cliffs-stage", Some("/clusters/cliffs-stage.yml"));
        check("a", Some("/a.json"));
        check("/", None);
    }

    #[test]
    fn a_file_in_another_folder_is_meant_if_it_is_the_only_one() {
        let paths = ["/teams/a.yml", "/roles/b.yml", "/users/b.yml"];
        assert_eq!(nearest_path("/old/a.yml", paths.into_iter()), Some("/teams/a.yml"));
        assert_eq!(nearest_path("/old/folder/b.yml", paths.into_iter()), None);
    }
}

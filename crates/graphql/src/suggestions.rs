//! Suggestions for misspelled names, with the edit distance and the threshold of graphql-js, so that
//! messages are equal. `qontract_diagnostics` has its own distance for other messages.

use std::cmp::Ordering;

/// `Did you mean …?`, or an empty string if there are no suggestions.
pub fn did_you_mean(what: Option<&str>, names: &[&str]) -> String {
    const MAX_SUGGESTIONS: usize = 5;
    let quoted: Vec<String> = names.iter().take(MAX_SUGGESTIONS).map(|name| format!("\"{name}\"")).collect();
    let listed = match quoted.as_slice() {
        [] => return String::new(),
        [only] => only.clone(),
        [first, second] => format!("{first} or {second}"),
        [first @ .., last] => format!("{}, or {last}", first.join(", ")),
    };
    let what = what.map(|what| format!("{what} ")).unwrap_or_default();
    format!(" Did you mean {what}{listed}?")
}

/// Suggests values of an enum.
pub fn enum_hint<T>(given: &str, values: &[(Box<str>, T)]) -> String {
    did_you_mean(Some("the enum value"), &similar(given, values.iter().map(|(name, _)| &**name)))
}

/// The names similar to `given`, most similar first.
pub fn similar<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let threshold = given.encode_utf16().count() * 2 / 5 + 1;
    let mut measure = Distance::new(given);
    let mut ranked: Vec<(usize, &str)> = Vec::new();
    for name in names {
        if let Some(distance) = measure.to(name, threshold)
            && !ranked.iter().any(|(_, other)| *other == name)
        {
            ranked.push((distance, name));
        }
    }
    sort(&mut ranked, |one, other| one.0.cmp(&other.0).then_with(|| natural(one.1, other.1)));
    ranked.into_iter().map(|(_, name)| name).collect()
}

/// Insertion sort, which also works with an inconsistent order.
pub fn sort<T>(list: &mut [T], mut order: impl FnMut(&T, &T) -> Ordering) {
    for index in 1..list.len() {
        let target = list[..index].partition_point(|sorted| order(&list[index], sorted) != Ordering::Less);
        list[target..=index].rotate_right(1);
    }
}

/// Natural order of names: digits compare as numbers.
pub fn natural(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (mut left, mut right) = (0, 0);
    while let (Some(mine), Some(theirs)) = (one.get(left), other.get(right)) {
        let order = if mine.is_ascii_digit() && theirs.is_ascii_digit() {
            number(one, &mut left).total_cmp(&number(other, &mut right))
        } else {
            (left, right) = (left + 1, right + 1);
            mine.cmp(theirs)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    one.len().cmp(&other.len())
}

/// Parses the number at an offset; each leading zero is a separate number.
fn number(bytes: &[u8], at: &mut usize) -> f64 {
    let mut value = 0.0;
    while let Some(digit) = bytes.get(*at).filter(|byte| byte.is_ascii_digit()) {
        value = value * 10.0 + f64::from(digit - b'0');
        *at += 1;
        if value == 0.0 {
            break;
        }
    }
    value
}

/// Edit distance with insertions, deletions, substitutions and transpositions.
struct Distance<'g> {
    given: &'g str,
    lower: Vec<u8>,
    rows: [Vec<usize>; 3],
}

impl<'g> Distance<'g> {
    fn new(given: &'g str) -> Self {
        let lower = given.to_ascii_lowercase().into_bytes();
        let row = vec![0; lower.len() + 1];
        Self { given, rows: [row.clone(), row.clone(), row], lower }
    }

    /// The distance, if it is within the threshold.
    fn to(&mut self, name: &str, threshold: usize) -> Option<usize> {
        if name == self.given {
            return Some(0);
        }
        let name = name.to_ascii_lowercase().into_bytes();
        // A different case counts as one edit.
        if name == self.lower {
            return Some(1);
        }
        let (long, short) =
            if name.len() < self.lower.len() { (&self.lower, &name) } else { (&name, &self.lower) };
        if long.len() - short.len() > threshold {
            return None;
        }
        let rows = &mut self.rows;
        for (index, cell) in rows[0].iter_mut().enumerate().take(short.len() + 1) {
            *cell = index;
        }
        for i in 1..=long.len() {
            let mut smallest = i;
            rows[i % 3][0] = i;
            for j in 1..=short.len() {
                let up = &rows[(i - 1) % 3];
                let cost = usize::from(long[i - 1] != short[j - 1]);
                let mut cell = (up[j] + 1).min(rows[i % 3][j - 1] + 1).min(up[j - 1] + cost);
                if i > 1 && j > 1 && long[i - 1] == short[j - 2] && long[i - 2] == short[j - 1] {
                    cell = cell.min(rows[(i - 2) % 3][j - 2] + 1);
                }
                smallest = smallest.min(cell);
                rows[i % 3][j] = cell;
            }
            if smallest > threshold {
                return None;
            }
        }
        Some(rows[long.len() % 3][short.len()]).filter(|distance| *distance <= threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested_the_most_similar_first() {
        let check = |given: &str, names: &[&'static str], expect: &[&str]| {
            assert_eq!(similar(given, names.iter().copied()), expect, "{given}");
        };
        check("nope", &["path", "name", "labels"], &["name"]);
        check("nmae", &["name", "NAME", "game"], &["NAME", "name", "game"]);
        check("A", &["a", "b", "abc"], &["a", "b"]);
        check("a_v", &["a_v10", "a_v9", "a_v1"], &["a_v1", "a_v9", "a_v10"]);
        check("", &["a", "ab"], &["a"]);
    }

    #[test]
    fn suggestions_are_joined_with_commas_and_or() {
        let check = |names: &[&str], expect: &str| assert_eq!(did_you_mean(None, names), expect);
        check(&[], "");
        check(&["a"], " Did you mean \"a\"?");
        check(&["a", "b"], " Did you mean \"a\" or \"b\"?");
        check(&["a", "b", "c", "d", "e", "f"], " Did you mean \"a\", \"b\", \"c\", \"d\", or \"e\"?");
        assert_eq!(did_you_mean(Some("the value"), &["a"]), " Did you mean the value \"a\"?");
    }

    #[test]
    fn digits_in_names_compare_as_numbers() {
        let check = |one: &str, other: &str, expect| assert_eq!(natural(one, other), expect, "{one} {other}");
        check("a2", "a10", Ordering::Less);
        check("a02", "a2", Ordering::Less);
        check("B", "a", Ordering::Less);
        check("a", "ab", Ordering::Less);
        check("a1b", "a1b", Ordering::Equal);
    }
}

//! Relative links in Markdown files point to existing files.

use super::{SourceTree, Violation};

const RULE: &str = "links";

/// Checks every relative link of every Markdown file.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".md") {
        for (line, target) in links(text) {
            let Some(target) = local_target(target) else { continue };
            let message = match resolve(path, target) {
                Some(found) if found.is_empty() || tree.has(&found) => continue,
                Some(found) => format!("broken link to `{target}`: `{found}` does not exist"),
                None => format!("the link to `{target}` leaves the repository"),
            };
            violations.push(Violation { path: path.to_owned(), line, rule: RULE, message });
        }
    }
    violations
}

/// Line and target of each link outside of code: `[text](target)` and `[label]: target`.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let ticks = &start[..start.len() - start.trim_start_matches(['`', '~']).len()];
        match fence {
            Some(open) if ticks.starts_with(open) => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => found.extend(links_in_line(line).into_iter().map(|target| (index + 1, target))),
        }
    }
    found
}

fn links_in_line(line: &str) -> Vec<&str> {
    if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
        return vec![target];
    }
    // Text between backticks is code.
    let mut targets = Vec::new();
    for (start, _) in line.match_indices("](") {
        let in_code = line[..start].matches('`').count() % 2 == 1;
        let rest = &line[start + 2..];
        if let Some(end) = rest.find(')').filter(|_| !in_code) {
            targets.push(&rest[..end]);
        }
    }
    targets
}

/// The path in a link to a file of the repository, without title and anchor; `None` for URLs.
fn local_target(target: &str) -> Option<&str> {
    let target = target.trim().trim_matches(['<', '>']);
    let target = target.split_whitespace().next()?;
    let target = target.split(['#', '?']).next().unwrap_or_default();
    (!target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")).then_some(target)
}

/// The path from the root of the checkout, or `None` if it leaves the checkout.
fn resolve(page: &str, target: &str) -> Option<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let base = if target.starts_with('/') { "" } else { folder };
    let mut names = Vec::new();
    for name in base.split('/').chain(target.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    fn page(text: &str, expected: &[&str]) {
        let files = [("README.md", ""), ("docs/a.md", text), ("docs/adr/0001-x.md", "")];
        expect(check, &SourceTree::of_files(&files), expected);
    }

    #[test]
    fn valid_links_pass() {
        page(
            "[up](../README.md#top), ![b](adr/0001-x.md \"title\"), [folder](adr/), [top](/docs), [root](..)\n",
            &[],
        );
        page("[web](https://example.com/x) [mail](mailto:a@example.com) [here](#below)\n", &[]);
    }

    #[test]
    fn links_in_code_are_ignored() {
        page("`a[0](x)`\n```text\n[x](nowhere.md)\n```\n````markdown\n```\n[x](nowhere.md)\n````\n", &[]);
    }

    #[test]
    fn a_broken_link_is_found() {
        page(
            "fine\n[x](b.md) and [y](../../z.md)\n\n[label]: adr/none.md\n",
            &[
                "docs/a.md:2: links: broken link to `b.md`: `docs/b.md` does not exist",
                "docs/a.md:2: links: the link to `../../z.md` leaves the repository",
                "docs/a.md:4: links: broken link to `adr/none.md`: `docs/adr/none.md` does not exist",
            ],
        );
    }
}

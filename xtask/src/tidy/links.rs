//! Links between the project's pages lead somewhere.

use super::{Tree, Violation};

const RULE: &str = "links";

/// Looks at every relative link of every Markdown file.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".md") {
        for (line, target) in links(text) {
            let Some(target) = local(target) else { continue };
            let message = match resolve(path, target) {
                Some(found) if found.is_empty() || tree.has(&found) => continue,
                Some(found) => format!("the link to `{target}` leads nowhere: there is no `{found}`"),
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
            None => found.extend(of_line(line).into_iter().map(|target| (index + 1, target))),
        }
    }
    found
}

fn of_line(line: &str) -> Vec<&str> {
    if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
        return vec![target];
    }
    // what stands between backticks is code: every second piece
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

/// The path in a link, if it leads to a file of ours: no title, no anchor, no address.
fn local(target: &str) -> Option<&str> {
    let target = target.trim().trim_matches(['<', '>']);
    let target = target.split_whitespace().next()?;
    let target = target.split(['#', '?']).next().unwrap_or_default();
    (!target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")).then_some(target)
}

/// The path from the top of the checkout, or `None` if it leaves it.
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
    use crate::tidy::{Tree, expect};

    fn page(text: &str, expected: &[&str]) {
        let files = [("README.md", ""), ("docs/a.md", text), ("docs/adr/0001-x.md", "")];
        expect(check, &Tree::of_files(&files), expected);
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        page(
            "[up](../README.md#top), ![b](adr/0001-x.md \"title\"), [folder](adr/), [top](/docs), [root](..)\n",
            &[],
        );
        page("[web](https://example.com/x) [mail](mailto:a@example.com) [here](#below)\n", &[]);
    }

    #[test]
    fn code_holds_no_links() {
        page("`a[0](x)`\n```text\n[x](nowhere.md)\n```\n````markdown\n```\n[x](nowhere.md)\n````\n", &[]);
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        page(
            "fine\n[x](b.md) and [y](../../z.md)\n\n[label]: adr/none.md\n",
            &[
                "docs/a.md:2: links: the link to `b.md` leads nowhere: there is no `docs/b.md`",
                "docs/a.md:2: links: the link to `../../z.md` leaves the repository",
                "docs/a.md:4: links: the link to `adr/none.md` leads nowhere: there is no `docs/adr/none.md`",
            ],
        );
    }
}

//! Rule: the top-level modules of a package do not depend on each other in cycles, so that each module can be read
//! without those that use it.
//!
//! The error type of a package is exempt: it names values of the modules that return it.

use super::{SourceTree, Violation};
use std::collections::{BTreeMap, BTreeSet};

const RULE: &str = "module-cycles";

/// The module with the error type of a package.
const ERROR_MODULE: &str = "error";

/// Modules that still form cycles. Do not add to this list: move what both modules need into a module below them.
struct Exception {
    package: &'static str,
    modules: &'static [&'static str],
    /// Why the cycle remains.
    #[expect(dead_code, reason = "for the reader of the list")]
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        package: "crates/child",
        modules: &["registry", "watchdog"],
        reason: "the watchdog process ends what the registry has listed, and the registry starts it",
    },
    Exception {
        package: "crates/daemon",
        modules: &[
            "bundle_analysis",
            "input",
            "journal",
            "pinned_data",
            "reconciled_data",
            "run_store",
            "sandbox_folder",
            "source",
            "targets",
            "unfinished_runs",
        ],
        reason: "data sources open earlier data, and run records are stored in the journal: not untangled yet",
    },
    Exception {
        package: "crates/diagnostics",
        modules: &["code", "diagnostic"],
        reason: "a code has a severity, and a diagnostic has a code: two types that are read together",
    },
    Exception {
        package: "crates/git",
        modules: &["object", "tree"],
        reason: "a tree lists objects, and a tree is an object",
    },
    Exception {
        package: "crates/server",
        modules: &[
            "admission",
            "analysis",
            "batch",
            "body",
            "bundle_source",
            "bundles",
            "diff",
            "graphql",
            "lease",
            "page",
            "reply",
            "response_cache",
            "server",
            "settings",
        ],
        reason: "the handlers of the routes use the state of the server, which calls them: not untangled yet",
    },
    Exception {
        package: "crates/template",
        modules: &[
            "constant",
            "filters",
            "functions",
            "interpreter",
            "iterators",
            "jinja_tests",
            "jsonpath",
            "methods",
            "parser",
            "percent_format",
            "scope",
            "str_format",
            "value",
            "yaml",
        ],
        reason: "filters and values call the interpreter that evaluates them, as in Jinja2",
    },
    Exception {
        package: "clients/kubernetes",
        modules: &["discovery", "draft", "fields", "object"],
        reason: "an object has managed fields, which refer to objects: not untangled yet",
    },
    Exception {
        package: "clients/server",
        modules: &["client", "extension"],
        reason: "the client sends requests of the extension, which contain its queries",
    },
];

/// The modules that each module of a package uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Finds cycles between the top-level modules of each library and of the binary.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let packages = packages(tree);
    let mut violations = Vec::new();
    for (package, uses) in &packages {
        let mut violation = |module: &str, message: String| {
            violations.push(Violation {
                path: format!("{package}/src/{module}.rs"),
                line: 1,
                rule: RULE,
                message,
            });
        };
        let exceptions = EXCEPTIONS.iter().filter(|exception| exception.package == *package);
        let allowed: BTreeSet<&str> =
            exceptions.flat_map(|exception| exception.modules.iter().copied()).collect();
        let cycles = cycles(uses);
        for cycle in cycles.iter().filter(|cycle| !cycle.iter().all(|module| allowed.contains(module))) {
            let names: Vec<String> = cycle.iter().map(|module| format!("`{module}`")).collect();
            let text = format!(
                "the modules {} depend on each other: move what they share into a module below them",
                names.join(", ")
            );
            violation(cycle.first().copied().unwrap_or_default(), text);
        }
        let cyclic: BTreeSet<&str> = cycles.into_iter().flatten().collect();
        for module in allowed.difference(&cyclic) {
            violation(
                module,
                format!("`{module}` is in no cycle: remove it from the exceptions of this rule"),
            );
        }
    }
    violations
}

/// The uses of all packages, by directory.
fn packages(tree: &SourceTree) -> BTreeMap<String, Uses> {
    let mut packages: BTreeMap<String, Uses> = BTreeMap::new();
    for (path, code) in super::production_code(tree) {
        let Some((package, file)) = path.split_once("/src/") else { continue };
        let module = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
        if package.starts_with("xtask") || ["lib", "main", ERROR_MODULE].contains(&module) {
            continue;
        }
        let is_module = |name: &&str| *name != module && tree.has(&format!("{package}/src/{name}.rs"));
        let used = paths_in_crate(&code);
        let uses = packages.entry(package.to_owned()).or_default().entry(module.to_owned()).or_default();
        uses.extend(used.into_iter().filter(is_module).map(str::to_owned));
    }
    packages
}

/// The first segments of all paths that begin with `crate::`, including those of a nested import.
fn paths_in_crate(code: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (start, prefix) in code.match_indices("crate::") {
        if code[..start].ends_with(is_word) {
            continue;
        }
        let rest = &code[start + prefix.len()..];
        match rest.strip_prefix('{') {
            None => names.extend(first_word(rest)),
            Some(list) => names.extend(elements(list).into_iter().filter_map(first_word)),
        }
    }
    names
}

/// The elements of a list in braces, without those of nested lists. `list` begins after the opening brace.
fn elements(list: &str) -> Vec<&str> {
    let (mut elements, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                elements.push(list[start..index].trim_start());
                start = index + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    elements
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

fn first_word(text: &str) -> Option<&str> {
    let end = text.find(|character| !is_word(character)).unwrap_or(text.len());
    Some(&text[..end]).filter(|word| !word.is_empty())
}

/// The sets of modules that can reach each other, in order.
fn cycles(uses: &Uses) -> BTreeSet<BTreeSet<&str>> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|module| (module.as_str(), reachable_from(module, uses))).collect();
    let reaches = |from: &str, to: &str| reachable.get(from).is_some_and(|modules| modules.contains(to));
    let cycle_of = |module: &&str| {
        let others = reachable[*module].iter().copied().filter(|other| reaches(other, module));
        others.collect::<BTreeSet<&str>>()
    };
    reachable.keys().map(cycle_of).filter(|cycle| !cycle.is_empty()).collect()
}

/// All modules that a module uses, directly or not.
fn reachable_from<'u>(module: &str, uses: &'u Uses) -> BTreeSet<&'u str> {
    let mut reachable = BTreeSet::new();
    let mut pending = vec![module];
    while let Some(next) = pending.pop() {
        for used in uses.get(next).into_iter().flatten() {
            if reachable.insert(used.as_str()) {
                pending.push(used);
            }
        }
    }
    reachable
}

#[cfg(test)]
mod tests {
    use super::{check, paths_in_crate};
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn modules_that_use_each_other_are_reported() {
        let tree = SourceTree::of_files(&[
            ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\nuse crate::a::A;"),
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b.rs", "use super::c;"),
            ("crates/x/src/b/deep.rs", "fn f() -> crate::c::C {}"),
            ("crates/x/src/c.rs", "use crate::{\n    a::{A, d},\n    C,\n};"),
            ("crates/x/src/d.rs", "use crate::a::A;"),
        ]);
        expect(
            check,
            &tree,
            &[
                "crates/x/src/a.rs:1: module-cycles: the modules `a`, `b`, `c` depend on each other: move what they share into a module below them",
            ],
        );
    }

    #[test]
    fn tests_comments_errors_and_other_packages_do_not_count() {
        let tree = SourceTree::of_files(&[
            ("crates/x/src/a.rs", "use crate::b::B;\nuse crate::error::E;"),
            (
                "crates/x/src/b.rs",
                "/// See [`crate::a`].\n\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
            ),
            ("crates/x/src/b/tests.rs", "use crate::a::A;"),
            ("crates/x/src/error.rs", "use crate::a::A;"),
            ("crates/y/src/b.rs", "use crate::a::A;\nuse other_crate::b::B;"),
            ("crates/y/src/a.rs", "use crate::c::C;"),
        ]);
        expect(check, &tree, &[]);
    }

    #[test]
    fn an_exception_that_is_not_needed_is_reported() {
        let tree = SourceTree::of_files(&[
            ("crates/git/src/object.rs", "use crate::tree::T;"),
            ("crates/git/src/tree.rs", ""),
        ]);
        expect(
            check,
            &tree,
            &[
                "crates/git/src/object.rs:1: module-cycles: `object` is in no cycle: remove it from the exceptions of this rule",
                "crates/git/src/tree.rs:1: module-cycles: `tree` is in no cycle: remove it from the exceptions of this rule",
            ],
        );
    }

    #[test]
    fn the_first_segment_of_each_path_counts() {
        let names = |code: &'static str| paths_in_crate(code).into_iter().collect::<Vec<_>>();
        assert_eq!(names("use crate::{a, b::{c, d}, e::F};"), ["a", "b", "e"]);
        assert_eq!(names("crate::a::b(crate::c::d) my_crate::x $crate::y"), ["a", "c"]);
    }
}

//! Shared fragments: finds those that a request needs, and imports their types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use apollo_compiler::ast;
use apollo_compiler::executable::ExecutableDocument;

use super::failure;
use crate::failure::Failure;
use crate::schema::Schema;

/// A fragment in its own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFragment {
    /// The name, which is also the name of the Rust type.
    pub name: String,
    /// The content of the fragment's file.
    pub text: String,
    /// The name of the fragment's file, such as `cluster_access.graphql`.
    pub file: String,
    /// The crate that defines the fragment's Rust type, in the module `fragments`.
    pub package: String,
}

/// All shared fragments, by name.
#[derive(Clone, Debug, Default)]
pub struct SharedFragments(BTreeMap<String, SharedFragment>);

impl SharedFragments {
    /// Adds the fragment of a file, which must contain nothing else.
    pub fn add(&mut self, text: String, file: String, package: String) -> Result<(), String> {
        let document = parse(&text)?;
        let [ast::Definition::FragmentDefinition(fragment)] = &document.definitions[..] else {
            return Err(format!("`{file}` must contain exactly one fragment"));
        };
        let name = fragment.name.to_string();
        let added = SharedFragment { name: name.clone(), text, file, package };
        match self.0.insert(name, added) {
            None => Ok(()),
            Some(SharedFragment { name, file, .. }) => {
                Err(format!("the fragment `{name}` is also in `{file}`"))
            }
        }
    }

    /// All fragments, by name.
    pub fn iter(&self) -> impl Iterator<Item = &SharedFragment> {
        self.0.values()
    }

    /// The shared fragments that a request spreads directly, by name.
    pub fn spread_by(&self, query: &str) -> Result<Vec<&SharedFragment>, String> {
        let names = spreads(&parse(query)?);
        Ok(names.iter().filter_map(|name| self.0.get(name)).collect())
    }

    /// The shared fragments that a request spreads directly or through other shared fragments, by name.
    pub fn needed_by(&self, query: &str) -> Result<Vec<&SharedFragment>, String> {
        let mut open = spreads(&parse(query)?);
        let mut needed = BTreeMap::new();
        while let Some(name) = open.pop_first() {
            let Some(fragment) = self.0.get(&name) else { continue };
            if needed.insert(name, fragment).is_none() {
                open.extend(spreads(&parse(&fragment.text)?));
            }
        }
        Ok(needed.into_values().collect())
    }

    /// All fragments as one document.
    pub(super) fn document(&self, schema: &Schema) -> Result<ExecutableDocument, Failure> {
        let text = self.iter().fold(String::new(), |text, fragment| format!("{text}\n{}", fragment.text));
        let document = parse(&text).map_err(failure)?;
        document.to_executable(schema.compiled()).map_err(|error| failure(error.errors.to_string()))
    }
}

/// The `use` declarations for the types of these fragments.
pub fn imports(fragments: &[&SharedFragment], package: &str) -> String {
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for SharedFragment { name, package: owner, .. } in fragments {
        let module = if owner == package { "crate" } else { owner };
        modules.entry(module).or_default().push(name);
    }
    let mut lines = String::new();
    for (module, names) in modules {
        let _ = writeln!(lines, "use {module}::fragments::{{{}}};", names.join(", "));
    }
    lines
}

/// The sources of these fragments, as elements of a Rust array.
pub fn texts(fragments: &[&SharedFragment]) -> String {
    let texts: Vec<String> =
        fragments.iter().map(|fragment| format!("{}::FRAGMENTS", fragment.name)).collect();
    texts.join(", ")
}

fn parse(text: &str) -> Result<ast::Document, String> {
    ast::Document::parse(text, "request").map_err(|error| error.errors.to_string())
}

/// The names of all fragments that a document spreads.
fn spreads(document: &ast::Document) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for definition in &document.definitions {
        match definition {
            ast::Definition::OperationDefinition(operation) => collect(&operation.selection_set, &mut names),
            ast::Definition::FragmentDefinition(fragment) => collect(&fragment.selection_set, &mut names),
            _ => {}
        }
    }
    names
}

fn collect(set: &[ast::Selection], names: &mut BTreeSet<String>) {
    for selection in set {
        match selection {
            ast::Selection::Field(field) => collect(&field.selection_set, names),
            ast::Selection::InlineFragment(inline) => collect(&inline.selection_set, names),
            ast::Selection::FragmentSpread(spread) => drop(names.insert(spread.fragment_name.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SharedFragment, SharedFragments, imports, texts};

    fn shared() -> SharedFragments {
        let mut shared = SharedFragments::default();
        for (file, text) in [
            ("a.graphql", "fragment A on T { b { ...B } }"),
            ("b.graphql", "fragment B on T { name ... on T { c { ...C } } }"),
            ("c.graphql", "fragment C on T { name }"),
            ("d.graphql", "fragment D on T { name }"),
        ] {
            shared.add(text.to_owned(), file.to_owned(), "objects".to_owned()).expect("a fragment");
        }
        shared
    }

    #[track_caller]
    fn check(query: &str, expect: &[&str]) {
        let shared = shared();
        let needed = shared.needed_by(query).expect("a request");
        assert_eq!(names(&needed), expect);
    }

    fn names<'a>(fragments: &[&'a SharedFragment]) -> Vec<&'a str> {
        fragments.iter().map(|fragment| fragment.name.as_str()).collect()
    }

    #[test]
    fn a_request_needs_direct_and_indirect_fragments() {
        check("query Q { t { ...A } }", &["A", "B", "C"]);
        check("query Q { t { ...Own } } fragment Own on T { x { ...C } }", &["C"]);
        check("query Q { t { ...D c { ... { ...C } } } }", &["C", "D"]);
        check("query Q { t { name } }", &[]);
    }

    #[test]
    fn a_file_contains_one_fragment_with_a_unique_name() {
        let mut shared = shared();
        let mut add = |text: &str| shared.add(text.to_owned(), "x.graphql".to_owned(), "objects".to_owned());
        assert_eq!(
            add("fragment A on U { name }").expect_err("a second"),
            "the fragment `A` is also in `a.graphql`"
        );
        assert_eq!(
            add("query Q { t }").expect_err("a query"),
            "`x.graphql` must contain exactly one fragment"
        );
        assert!(add("fragment").is_err());
    }

    #[test]
    fn types_are_imported_from_the_crate_that_defines_them() {
        let shared = shared();
        let spread = shared.spread_by("query Q { t { ...D ...A } }").expect("a request");
        assert_eq!(names(&spread), ["A", "D"]);
        assert_eq!(imports(&spread, "other"), "use objects::fragments::{A, D};\n");
        assert_eq!(imports(&spread, "objects"), "use crate::fragments::{A, D};\n");
        assert_eq!(texts(&spread), "A::FRAGMENTS, D::FRAGMENTS");
        assert_eq!((imports(&[], "objects"), texts(&[])), (String::new(), String::new()));
    }
}

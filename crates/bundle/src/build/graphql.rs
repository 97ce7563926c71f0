//! Reads the file that describes the GraphQL types.

use qontract_diagnostics::{Diagnostic, code};
use qontract_yaml::{Node, Value as Yaml};

use super::convert::{Additions, Converter};
use super::parse;
use crate::repo::RepoFile;
use crate::value::Value;

/// Reads the file and reports all malformed types.
pub fn read(file: &RepoFile, findings: &mut Vec<Diagnostic>) -> Option<Value> {
    let Some((document, _)) = parse::parse(file, findings) else {
        if !findings.iter().any(Diagnostic::is_error) {
            findings
                .push(Diagnostic::new(code::GRAPHQL_FORM, "the file defines no types").in_file(&file.name));
        }
        return None;
    };
    let mut found = Vec::new();
    check(document.root(), &mut found);
    let additions = Additions::default();
    let mut converter = Converter { additions: &additions, findings: &mut found };
    let value = converter.value(document.root());
    findings.extend(found.into_iter().map(|finding| finding.in_file(&file.name)));
    Some(value)
}

fn check(root: Node<'_>, findings: &mut Vec<Diagnostic>) {
    let mut report = |node: Node<'_>, message: &str| {
        findings.push(Diagnostic::new(code::GRAPHQL_FORM, message).at(node.span()));
    };
    let confs = match root.value() {
        Yaml::Map(map) => map.get("confs"),
        _ => Some(root),
    };
    let Some(Yaml::List(types)) = confs.map(Node::value) else {
        return report(confs.unwrap_or(root), "the types are not a list under `confs`");
    };
    for type_ in types.iter() {
        let Yaml::Map(map) = type_.value() else {
            report(type_, "a type is not a map");
            continue;
        };
        if !is_text(map.get("name")) {
            report(type_, "a type has no `name`");
        }
        let Some(Yaml::List(fields)) = map.get("fields").map(Node::value) else {
            report(map.get("fields").unwrap_or(type_), "a type has no list of `fields`");
            continue;
        };
        for field in fields.iter() {
            match field.value() {
                Yaml::Map(map) if is_text(map.get("name")) && is_text(map.get("type")) => {}
                _ => report(field, "a field has no `name` or no `type`"),
            }
        }
    }
}

fn is_text(node: Option<Node<'_>>) -> bool {
    node.is_some_and(|node| matches!(node.value(), Yaml::Str(_)))
}

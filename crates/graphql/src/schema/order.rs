//! The order in which a schema lists its types.
//!
//! Introspection exposes this order to clients, so it is the order of graphql-js. The object types of the
//! data repo come first, in file order. Each is followed by the other types that it is the first to mention:
//! its interfaces, then for each field the type of the field and the types of its arguments. The types that
//! only directives mention come next, and the introspection types come last.

use std::collections::HashSet;

use super::draft::{DraftKind, Drafts};

/// The names of all reachable types, in schema order.
pub fn of(drafts: &Drafts, described: &[&str]) -> Vec<Box<str>> {
    let objects = described
        .iter()
        .filter(|name| drafts.types.get(**name).is_some_and(|draft| matches!(draft.kind, DraftKind::Object)));
    let mut walk = TypeOrderWalk {
        drafts,
        seen: objects.clone().map(|name| Box::from(*name)).collect(),
        order: Vec::new(),
    };
    for name in objects {
        walk.enter(name);
    }
    for directive in &drafts.directives {
        for argument in &directive.arguments {
            walk.visit(&argument.shape.named);
        }
    }
    walk.visit("__Schema");
    walk.order
}

struct TypeOrderWalk<'d> {
    drafts: &'d Drafts,
    seen: HashSet<Box<str>>,
    order: Vec<Box<str>>,
}

impl TypeOrderWalk<'_> {
    fn visit(&mut self, name: &str) {
        if self.seen.insert(name.into()) {
            self.enter(name);
        }
    }

    fn enter(&mut self, name: &str) {
        self.order.push(name.into());
        let Some(draft) = self.drafts.types.get(name) else { return };
        for interface in &draft.interfaces {
            self.visit(interface);
        }
        for field in &draft.fields {
            self.visit(&field.shape.named);
            for argument in &field.arguments {
                self.visit(&argument.shape.named);
            }
        }
    }
}

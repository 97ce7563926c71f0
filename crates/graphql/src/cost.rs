//! How large an answer will be, estimated from the data before it is made.
//!
//! An estimate, no bound: what it lets through is still stopped by the limit on bytes and by cancellation.

use crate::input::Input;
use crate::plan::{FieldPlan, Form, Plan, SelectionId, What};
use crate::schema::{Resolver, Schema};
use crate::source::View;
use crate::variables::Variables;

/// How many elements a list in a datafile is taken to have.
const LISTED: u64 = 4;
/// How many fields or arguments a part of the schema is taken to have.
const META: u64 = 10;

/// The number of objects that the plan is likely to write.
pub fn estimate(schema: &Schema, view: View<'_>, plan: &Plan, variables: &Variables) -> u64 {
    let mut known = vec![None; plan.selections.len()];
    Estimate { schema, view, plan, variables }.selection(plan.root, &mut known)
}

struct Estimate<'a> {
    schema: &'a Schema,
    view: View<'a>,
    plan: &'a Plan,
    variables: &'a Variables,
}

impl Estimate<'_> {
    /// Objects written for one object of a selection, itself included.
    fn selection(&self, id: SelectionId, known: &mut Vec<Option<u64>>) -> u64 {
        if let Some(known) = known[id] {
            return known;
        }
        let selection = &self.plan.selections[id];
        let mut total = 1_u64;
        for field in &selection.fields {
            let each = match &field.form {
                Form::Scalar(_) | Form::Enum => continue,
                Form::Object(inner) => self.selection(*inner, known),
                Form::Abstract(all) => {
                    all.iter().map(|(_, inner)| self.selection(*inner, known)).max().unwrap_or(1)
                }
            };
            let count = self.count(selection.type_, field);
            total = total.saturating_add(count.saturating_mul(each));
        }
        known[id] = Some(total);
        total
    }

    /// Elements that a field is likely to have.
    fn count(&self, type_: usize, field: &FieldPlan) -> u64 {
        let What::Field(number) = field.what else { return 1 };
        let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        match &self.schema.type_(type_).fields[number].resolver {
            // Whoever searches finds few.
            Resolver::Datafiles(_) | Resolver::Resources if self.has_text(field) => 1,
            Resolver::Datafiles(schema) => size(self.view.index.files_of(schema).len()),
            Resolver::Resources => size(self.view.bundle.resources().len()),
            Resolver::BackReferences(reference) => size(self.view.index.mean_pointing(*reference)),
            Resolver::Meta if &*self.schema.type_(type_).name == "__Schema" && field.shape.list => {
                size(self.schema.types().len())
            }
            Resolver::Meta if field.shape.list => META,
            _ if field.shape.list => LISTED,
            _ => 1,
        }
    }

    /// Whether some argument other than `filter` has a text. What is null, or empty, lets everything through.
    fn has_text(&self, field: &FieldPlan) -> bool {
        let given = field.arguments.as_ref().map(|(_, given)| given.as_slice());
        let given = given.unwrap_or_default().iter();
        given.filter(|argument| &*argument.name != "filter" && &*argument.name != "schema").any(|argument| {
            matches!(Input::of_literal(&argument.value, self.variables), Input::Text(text) if !text.is_empty())
        })
    }
}

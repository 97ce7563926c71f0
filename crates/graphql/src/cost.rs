//! Estimates the size of a response before execution, from the plan and the data.
//!
//! The estimate is not a bound: requests that pass it are still subject to the byte limit and to
//! cancellation.

use crate::data_view::DataView;
use crate::input::Input;
use crate::plan::{FieldPlan, FieldTarget, Plan, SelectionId, ValueForm};
use crate::schema::{Resolver, Schema};
use crate::variables::Variables;

/// Assumed number of elements of a list in a datafile.
const ASSUMED_LIST_LEN: u64 = 4;
/// Assumed number of fields or arguments of a part of the schema.
const ASSUMED_INTROSPECTION_LEN: u64 = 10;

/// Estimates the number of objects that a plan writes.
pub fn estimate(schema: &Schema, view: DataView<'_>, plan: &Plan, variables: &Variables) -> u64 {
    let mut memo = vec![None; plan.selections.len()];
    Estimate { schema, view, plan, variables }.selection(plan.root, &mut memo)
}

struct Estimate<'a> {
    schema: &'a Schema,
    view: DataView<'a>,
    plan: &'a Plan,
    variables: &'a Variables,
}

impl Estimate<'_> {
    /// Number of objects written for one object of a selection, including the object itself.
    fn selection(&self, id: SelectionId, memo: &mut Vec<Option<u64>>) -> u64 {
        if let Some(total) = memo[id] {
            return total;
        }
        let selection = &self.plan.selections[id];
        let mut total = 1_u64;
        for field in &selection.fields {
            let each = match &field.form {
                ValueForm::Scalar(_) | ValueForm::Enum => continue,
                ValueForm::Object(inner) => self.selection(*inner, memo),
                ValueForm::Abstract(all) => {
                    all.iter().map(|(_, inner)| self.selection(*inner, memo)).max().unwrap_or(1)
                }
            };
            let count = self.count(selection.type_, field);
            total = total.saturating_add(count.saturating_mul(each));
        }
        memo[id] = Some(total);
        total
    }

    /// Estimated number of elements of a field.
    fn count(&self, type_: usize, field: &FieldPlan) -> u64 {
        let FieldTarget::Field(number) = field.target else { return 1 };
        let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        match &self.schema.type_(type_).fields[number].resolver {
            // A search by a string argument usually matches at most one element.
            Resolver::Datafiles(_) | Resolver::Resources if self.has_text(field) => 1,
            Resolver::Datafiles(schema) => size(self.view.index.files_of(schema).len()),
            Resolver::Resources => size(self.view.bundle.resources().len()),
            Resolver::BackReferences(reference) => size(self.view.index.mean_pointing(*reference)),
            Resolver::Meta if &*self.schema.type_(type_).name == "__Schema" && field.shape.list => {
                size(self.schema.types().len())
            }
            Resolver::Meta if field.shape.list => ASSUMED_INTROSPECTION_LEN,
            _ if field.shape.list => ASSUMED_LIST_LEN,
            _ => 1,
        }
    }

    /// Whether an argument other than `filter` and `schema` is a non-empty string. Null and empty arguments
    /// do not restrict the list.
    fn has_text(&self, field: &FieldPlan) -> bool {
        let given = field.arguments.as_ref().map(|(_, given)| given.as_slice());
        let given = given.unwrap_or_default().iter();
        given.filter(|argument| &*argument.name != "filter" && &*argument.name != "schema").any(|argument| {
            matches!(self.variables.resolve(&argument.value), Input::Text(text) if !text.is_empty())
        })
    }
}

//! Checks the variables of an operation: declared variables are compared with those that the operation and
//! its fragments use.

use std::collections::{HashMap, HashSet};

use super::types::{ExpectedType, InputType};
use super::{DeferredChecks, ErrorReport, ReportEnded, Usage};
use crate::document::syntax::tree::{Definition, Literal, Variable};

impl<'t> DeferredChecks<'_, 't> {
    pub(super) fn variables(
        &mut self,
        index: usize,
        report: &mut ErrorReport<'_>,
    ) -> Result<(), ReportEnded> {
        let Definition::Operation(operation) = &self.document.definitions[index] else { return Ok(()) };
        let list = self.recursion.of_operations(&[operation]).ok_or_else(|| report.aborted())?;
        let fragments = self.recursion.list(list);
        let of_fragments: Vec<usize> =
            fragments.iter().map(|fragment| self.definition_at(fragment.at)).collect();
        let counts = of_fragments.iter().map(|index| self.usages[*index].len());
        self.recursion.spend_on_usages(list, counts).ok_or_else(|| report.aborted())?;
        let usages: Vec<&Usage<'t>> =
            std::iter::once(index).chain(of_fragments).flat_map(|index| &self.usages[index]).collect();
        let declared: HashMap<&str, &Variable<'_>> =
            operation.variables.iter().map(|variable| (variable.name.text, variable)).collect();
        let name = operation.name.map(|name| name.text);
        for Usage { name: used, at, .. } in &usages {
            if !declared.contains_key(used) {
                let by = name.map(|name| format!(" by operation \"{name}\"")).unwrap_or_default();
                let message = format!("Variable \"${used}\" is not defined{by}.");
                report.add(message, &[*at, operation.at])?;
            }
        }
        let used: HashSet<&str> = usages.iter().map(|usage| usage.name).collect();
        for Variable { name: variable, at, .. } in &operation.variables {
            if !used.contains(variable.text) {
                let within = name.map(|name| format!(" in operation \"{name}\"")).unwrap_or_default();
                let message = format!("Variable \"${}\" is never used{within}.", variable.text);
                report.add(message, &[*at])?;
            }
        }
        for usage in &usages {
            if let Some(variable) = declared.get(usage.name) {
                self.position(variable, usage, report)?;
            }
        }
        Ok(())
    }

    fn definition_at(&self, at: usize) -> usize {
        let begins = |definition: &Definition<'_>| match definition {
            Definition::Operation(operation) => operation.at,
            Definition::Fragment(fragment) => fragment.at,
            Definition::Schema(part) => part.at,
        };
        self.document.definitions.partition_point(|definition| begins(definition) < at)
    }

    /// Reports a variable whose type does not match the position at which it is used.
    fn position(
        &self,
        variable: &Variable<'_>,
        usage: &Usage<'_>,
        report: &mut ErrorReport<'_>,
    ) -> Result<(), ReportEnded> {
        let Some(ExpectedType { type_: wanted, has_default }) = &usage.expected else { return Ok(()) };
        let Some(type_) = InputType::of(self.schema, &variable.type_) else { return Ok(()) };
        let never_null =
            variable.default.as_ref().is_some_and(|value| !matches!(value.literal, Literal::Null));
        let allowed = if wanted.is_non_null() && !type_.is_non_null() {
            (never_null || *has_default) && type_.fits(&wanted.nullable())
        } else {
            type_.fits(wanted)
        };
        if allowed {
            return Ok(());
        }
        let (name, type_, wanted) = (usage.name, type_.show(self.schema), wanted.show(self.schema));
        let message =
            format!("Variable \"${name}\" of type \"{type_}\" used in position expecting type \"{wanted}\".");
        report.add(message, &[variable.at, usage.at])
    }
}

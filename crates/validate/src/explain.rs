//! Converts schema failures to findings: one finding for each mistake, with the allowed values and a
//! suggestion.

mod branches;

use std::collections::BTreeSet;

use qontract_bundle::{Bundle, Layout, Value};
use qontract_diagnostics::suggest::{self, ComparisonBudget};
use qontract_diagnostics::{Code, Diagnostic, code};

use crate::display::{all_of, any_of, kind_name, shortened, show, show_plain, type_name};
use crate::failure::{AllowedValues, FailureKind, SchemaFailure, SchemaPlace};
use crate::keywords;
use crate::schema::equality;
use branches::BranchMatch;

/// Maximum number of name comparisons that are made to find suggestions for one file.
const MAX_COMPARISONS: usize = 100_000;

/// Explains the schema failures of one document.
pub struct FailureExplainer<'a> {
    bundle: &'a Bundle,
    layout: &'a Layout,
    /// The name of the document's file.
    file: &'a str,
    root: &'a Value,
    budget: ComparisonBudget,
}

/// A failure that is reported as a separate finding, and the note to attach to it.
struct ReportedFailure {
    failure: SchemaFailure,
    note: Option<String>,
}

impl<'a> FailureExplainer<'a> {
    /// The document `root`, whose file is called `file`.
    pub fn new(bundle: &'a Bundle, layout: &'a Layout, file: &'a str, root: &'a Value) -> Self {
        Self { bundle, layout, file, root, budget: ComparisonBudget::new(MAX_COMPARISONS) }
    }
}

impl FailureExplainer<'_> {
    /// One finding for each mistake behind `failures`.
    pub fn explain(&self, failures: Vec<SchemaFailure>) -> Vec<Diagnostic> {
        let mut reported = Vec::new();
        for failure in failures {
            self.expand_branches(failure, None, &mut reported);
        }
        let reported = without_redundant(reported);
        let missing: BTreeSet<(String, String)> = reported
            .iter()
            .filter_map(|ReportedFailure { failure, .. }| match &failure.kind {
                FailureKind::MissingField(field) => Some((failure.pointer.clone(), field.clone())),
                _ => None,
            })
            .collect();
        let mut misspelt = BTreeSet::new();
        let mut findings = Vec::new();
        for ReportedFailure { failure, note } in &reported {
            let FailureKind::UnknownFields(fields) = &failure.kind else { continue };
            let known = self.known_fields(failure);
            // Fields that bundling adds are not the author's mistake.
            for field in fields.iter().filter(|field| !is_added(field)) {
                let meant = self.suggest_field(failure, field, &known, &missing);
                misspelt.extend(meant.iter().map(|meant| (failure.pointer.clone(), meant.clone())));
                findings.push(with_note(self.unknown_field(failure, field, &known, meant), note.as_deref()));
            }
        }
        for ReportedFailure { failure, note } in &reported {
            let finding = match &failure.kind {
                FailureKind::UnknownFields(_) => continue,
                // The field is present under a misspelt name, which is reported instead.
                FailureKind::MissingField(field)
                    if misspelt.contains(&(failure.pointer.clone(), field.clone())) =>
                {
                    continue;
                }
                _ => self.describe(failure),
            };
            findings.push(with_note(finding, note.as_deref()));
        }
        if findings.is_empty() {
            findings.extend(
                reported
                    .iter()
                    .filter_map(|ReportedFailure { failure, .. }| self.added_field_refused(failure)),
            );
        }
        findings
    }

    /// Replaces "matches no alternative" by the failures of the closest alternative.
    fn expand_branches(
        &self,
        failure: SchemaFailure,
        note: Option<String>,
        reported: &mut Vec<ReportedFailure>,
    ) {
        let FailureKind::NoBranch(branches) = &failure.kind else {
            reported.push(ReportedFailure { failure, note });
            return;
        };
        match branches::closest_branch(&failure.pointer, branches) {
            BranchMatch::Closest(index, failures) => {
                let note = note.or_else(|| self.branch_note(&failure, index, branches.len()));
                for inner in failures {
                    self.expand_branches(inner, note.clone(), reported);
                }
            }
            BranchMatch::Common(inner) => self.expand_branches(inner, note, reported),
            BranchMatch::MissingOneOf(_) | BranchMatch::Undecided => {
                reported.push(ReportedFailure { failure, note });
            }
        }
    }

    fn branch_note(&self, failure: &SchemaFailure, index: usize, count: usize) -> Option<String> {
        let SchemaPlace { file: path, pointer } = failure.keyword.as_ref()?;
        let branch =
            self.bundle.schema(path)?.value.pointer(&keywords::child_pointer(pointer, &index.to_string()))?;
        let name = branch.get("$ref").or_else(|| branch.get("title")).and_then(Value::as_str);
        (count > 1).then(|| match name {
            Some(name) => format!("closest of {count} alternatives: `{name}`"),
            None => format!("closest of {count} alternatives: number {}", index + 1),
        })
    }

    fn finding(&self, code: Code, pointer: &str, message: String) -> Diagnostic {
        Diagnostic::new(code, message).in_file(self.file).at_pointer(pointer)
    }

    fn value(&self, pointer: &str) -> &Value {
        self.root.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The schema that contains the failed keyword, and the name of its file.
    fn schema_of_keyword(&self, failure: &SchemaFailure) -> Option<(&Value, String)> {
        let SchemaPlace { file: path, pointer } = failure.keyword.as_ref()?;
        let (parent, _) = pointer.rsplit_once('/')?;
        Some((self.bundle.schema(path)?.value.pointer(parent)?, self.layout.schema(path)))
    }

    fn known_fields(&self, failure: &SchemaFailure) -> Vec<&str> {
        let Some((schema, _)) = self.schema_of_keyword(failure) else { return Vec::new() };
        let fields = schema.get("properties").and_then(Value::as_map).into_iter();
        fields
            .flat_map(|fields| fields.iter().map(|(name, _)| name.as_str()))
            .filter(|name| !is_added(name))
            .collect()
    }

    fn suggest_field(
        &self,
        failure: &SchemaFailure,
        field: &str,
        known: &[&str],
        missing: &BTreeSet<(String, String)>,
    ) -> Option<String> {
        let is_missing = |name: &&&str| missing.contains(&(failure.pointer.clone(), (**name).to_owned()));
        let meant = self.budget.spend(known.len(), || {
            suggest::nearest(field, known.iter().filter(is_missing).copied())
                .or_else(|| suggest::nearest(field, known.iter().copied()))
        });
        meant.map(str::to_owned)
    }

    fn unknown_field(
        &self,
        failure: &SchemaFailure,
        field: &str,
        known: &[&str],
        meant: Option<String>,
    ) -> Diagnostic {
        let pointer = keywords::child_pointer(&failure.pointer, field);
        let finding = self.finding(code::UNKNOWN_FIELD, &pointer, format!("unknown field `{field}`"));
        let finding = match self.schema_of_keyword(failure) {
            Some((_, file)) => finding.label(format!("not in `{file}`")),
            None => finding,
        };
        match meant {
            Some(meant) if self.value(&failure.pointer).get(&meant).is_some() => {
                finding.hint(format!("did you mean `{meant}`, which is already present?"))
            }
            Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
            None if known.is_empty() => finding.hint("remove it"),
            None => finding.hint(format!("the fields are {}", all_of(known.iter()))),
        }
    }

    /// The finding for a schema that does not allow a field that bundling adds, if this is the only failure.
    fn added_field_refused(&self, failure: &SchemaFailure) -> Option<Diagnostic> {
        let FailureKind::UnknownFields(fields) = &failure.kind else { return None };
        let field = fields.iter().find(|field| is_added(field))?;
        let message = format!("the schema does not allow `{field}`, which bundling adds");
        let finding = self.finding(code::UNKNOWN_FIELD, &failure.pointer, message);
        let finding = match self.schema_of_keyword(failure) {
            Some((_, file)) => finding.label(format!("not in `{file}`")),
            None => finding,
        };
        Some(
            finding.hint(
                "set the schema's `$schema` to `/metaschema-1.json`, or add the field to its `properties`",
            ),
        )
    }

    fn describe(&self, failure: &SchemaFailure) -> Diagnostic {
        let pointer = failure.pointer.as_str();
        let value = self.value(pointer);
        let shown = show(value);
        let because =
            self.schema_of_keyword(failure).map(|(_, file)| format!("by `{file}`")).unwrap_or_default();
        match &failure.kind {
            FailureKind::UnknownFields(_) => {
                self.finding(code::UNKNOWN_FIELD, pointer, "unknown fields".to_owned())
            }
            FailureKind::MissingField(field) => self.missing(failure, field),
            FailureKind::Type(types) => self.wrong_type(pointer, value, types).label(because),
            FailureKind::Enum(values) => self.not_allowed(pointer, value, values).label(because),
            FailureKind::Pattern => {
                let message = format!("`{shown}` does not match the pattern");
                let finding = self.finding(code::PATTERN, pointer, message).label(because);
                finding.note(self.pattern(failure))
            }
            FailureKind::CostlyPattern => {
                let message = "matching the pattern against this string takes too long".to_owned();
                let finding = self.finding(code::COSTLY_PATTERN, pointer, message).label(because);
                finding.hint("write the pattern in the schema without nested repetitions")
            }
            FailureKind::Format(format) => self
                .finding(code::FORMAT, pointer, format!("`{shown}` does not match the format `{format}`"))
                .label(because),
            FailureKind::Range(how) => {
                self.finding(code::RANGE, pointer, format!("{shown} is {how}")).label(because)
            }
            FailureKind::Length(how) => {
                self.finding(code::LENGTH, pointer, format!("the string is {how}")).label(because)
            }
            FailureKind::Count(how) => {
                let what = kind_name(value);
                self.finding(code::COUNT, pointer, format!("{what} with {how}")).label(because)
            }
            FailureKind::NotContained(AllowedValues(values)) => {
                let needed = any_of(values.iter().map(show_plain));
                self.finding(code::COUNT, pointer, format!("the list must contain {needed}")).label(because)
            }
            FailureKind::DuplicateItem => {
                let message = "the list contains a duplicate item".to_owned();
                self.finding(code::REPEATED_ITEM, &repeated_item(value, pointer), message).label(because)
            }
            FailureKind::NoBranch(branches) => self.no_branch(pointer, branches).label(because),
            FailureKind::ManyBranches(_) => {
                let message =
                    "the value matches more than one alternative, but must match exactly one".to_owned();
                self.finding(code::MANY_ALTERNATIVES, pointer, message).label(because)
            }
            FailureKind::FieldName(name, inner) => {
                let message = match &**inner {
                    FailureKind::Pattern => {
                        format!("the name `{}` does not match the pattern", shortened(name))
                    }
                    _ => format!("the name `{}` is not allowed", shortened(name)),
                };
                let finding = self.finding(code::FIELD_NAME, pointer, message).label(because);
                match &**inner {
                    FailureKind::Pattern => finding.note(self.pattern(failure)),
                    _ => finding,
                }
            }
            FailureKind::TooMany => {
                let message = "the file has too many errors to report".to_owned();
                let finding = self.finding(code::TOO_COMPLEX, pointer, message).label(because);
                finding.hint("check the schema first: it may be wrong")
            }
            FailureKind::TooComplex => {
                let message = "checking the file against its schema takes too long".to_owned();
                let finding = self.finding(code::TOO_COMPLEX, pointer, message).label(because);
                finding.hint("add a field that distinguishes the schema's alternatives, or reduce nesting")
            }
            FailureKind::Forbidden => self
                .finding(code::FORBIDDEN, pointer, format!("`{shown}` is not allowed here"))
                .label(because),
        }
    }

    /// A note with the pattern that did not match.
    fn pattern(&self, failure: &SchemaFailure) -> String {
        let keyword = failure.keyword.as_ref();
        let pattern = keyword.and_then(|at| self.bundle.schema(&at.file)?.value.pointer(&at.pointer));
        format!("the pattern is `{}`", pattern.and_then(Value::as_str).unwrap_or("of the schema"))
    }

    fn missing(&self, failure: &SchemaFailure, field: &str) -> Diagnostic {
        let asks = self.requiring_field(failure, field);
        let message = match asks {
            Some(other) => format!("missing field `{field}`, which is required when `{other}` is present"),
            None => format!("missing field `{field}`"),
        };
        let finding = self.finding(code::MISSING_FIELD, &failure.pointer, message);
        match self.schema_of_keyword(failure) {
            Some((_, file)) => finding.label(format!("required by `{file}`")),
            None => finding,
        }
    }

    /// The field whose presence makes `field` required according to `dependencies`.
    fn requiring_field(&self, failure: &SchemaFailure, field: &str) -> Option<&str> {
        let SchemaPlace { file: path, pointer } = failure.keyword.as_ref()?;
        let (parent, _) = pointer.rsplit_once("/dependencies")?;
        let rules = self.bundle.schema(path)?.value.pointer(&format!("{parent}/dependencies"))?.as_map()?;
        let value = self.value(&failure.pointer);
        let asks = |needed: &Value| {
            let mut names = needed.as_list().unwrap_or_default().iter();
            names.any(|name| name.as_str() == Some(field))
        };
        let given = rules.iter().find(|(name, needed)| value.get(name.as_str()).is_some() && asks(needed));
        given.map(|(name, _)| name.as_str())
    }

    fn wrong_type(&self, pointer: &str, value: &Value, types: &[String]) -> Diagnostic {
        let names: Vec<&str> = types.iter().map(|name| type_name(name)).collect();
        let message = format!("expected {}, found {}", names.join(" or "), kind_name(value));
        let finding = self.finding(code::WRONG_TYPE, pointer, message);
        let wants = |name: &str| types.iter().any(|type_| type_ == name);
        let shown = show(value);
        match value {
            Value::Null => finding.hint("give it a value, or remove the field"),
            Value::Bool(_) if wants("string") => finding.hint(
                "put it into quotes: unquoted `yes`, `no`, `on`, `off`, `true` and `false` are not strings",
            ),
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) if wants("string") => {
                finding.hint("put it into quotes")
            }
            Value::Str(text) if (wants("integer") || wants("number")) && text.parse::<f64>().is_ok() => {
                finding.hint(format!("remove the quotes: `{shown}`"))
            }
            Value::Str(text) if wants("boolean") => match text.to_lowercase().as_str() {
                "true" | "yes" | "on" | "y" => finding.hint("write `true`, without quotes"),
                "false" | "no" | "off" | "n" => finding.hint("write `false`, without quotes"),
                _ => finding.hint("write `true` or `false`, without quotes"),
            },
            Value::Map(_) | Value::List(_) => finding,
            _ if wants("array") => finding.hint(format!("write a list, even for one item: `[{shown}]`")),
            _ => finding,
        }
    }

    fn not_allowed(&self, pointer: &str, value: &Value, AllowedValues(values): &AllowedValues) -> Diagnostic {
        let message = match &**values {
            [one] => format!("`{}` is not `{}`", show(value), show_plain(one)),
            _ => format!("`{}` is not one of the allowed values", show(value)),
        };
        let finding = self.finding(code::NOT_ALLOWED, pointer, message);
        let meant = value.as_str().and_then(|written| {
            self.budget.spend(values.len(), || {
                let allowed: Vec<String> = values.iter().map(show_plain).collect();
                suggest::nearest(written, allowed.iter().map(String::as_str)).map(str::to_owned)
            })
        });
        match meant {
            Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
            None if values.is_empty() => finding.hint("the schema allows no value at all"),
            None => finding.hint(format!("write {}", any_of(values.iter().map(show_plain)))),
        }
    }

    fn no_branch(&self, pointer: &str, branches: &[Vec<SchemaFailure>]) -> Diagnostic {
        if let BranchMatch::MissingOneOf(fields) = branches::closest_branch(pointer, branches) {
            let message = format!("one of the fields {} is required", any_of(fields.iter()));
            return self.finding(code::MISSING_FIELD, pointer, message);
        }
        let message = format!("the value matches none of the {} alternatives", branches.len());
        let mut finding = self.finding(code::NO_ALTERNATIVE, pointer, message);
        for (index, failures) in branches.iter().enumerate().take(4) {
            if let Some(first) = failures.first() {
                let words = self.describe(first).message;
                finding = finding.note(format!("not alternative {}: {words}", index + 1));
            }
        }
        finding
    }
}

/// Whether bundling adds the field to datafiles.
fn is_added(name: &str) -> bool {
    matches!(name, "$file_sha256sum" | "__identifier")
}

fn with_note(finding: Diagnostic, note: Option<&str>) -> Diagnostic {
    match note {
        Some(note) => finding.note(note),
        None => finding,
    }
}

/// The pointer of the first item that repeats an earlier item of a list.
fn repeated_item(value: &Value, pointer: &str) -> String {
    let second = equality::first_repeated(value.as_list().unwrap_or_default());
    second.map_or_else(|| pointer.to_owned(), |index| keywords::child_pointer(pointer, &index.to_string()))
}

/// Removes duplicates. If a value has the wrong type, also removes its other failures, because they follow
/// from the wrong type.
fn without_redundant(reported: Vec<ReportedFailure>) -> Vec<ReportedFailure> {
    let typed: BTreeSet<String> = reported
        .iter()
        .filter(|reported| matches!(reported.failure.kind, FailureKind::Type(_)))
        .map(|reported| reported.failure.pointer.clone())
        .collect();
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    let mut kept: Vec<ReportedFailure> = Vec::new();
    for one in reported {
        let SchemaFailure { pointer, kind: wrong, .. } = &one.failure;
        let echo =
            typed.contains(pointer) && !matches!(wrong, FailureKind::Type(_) | FailureKind::FieldName(..));
        if !echo && known.insert((pointer.clone(), format!("{wrong:?}"))) {
            kept.push(one);
        }
    }
    kept
}

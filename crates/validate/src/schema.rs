//! The schemas of a bundle, compiled, and values checked against them.
//!
//! Everything generic of the JSON Schema library is instantiated here and nowhere else: it compiles slowly.
//! **Invariant:** nothing is fetched; a schema is in the bundle or it is not there.

pub mod compile;
pub mod form;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, Keyword, Registry, Retrieve, Uri, ValidationError, Validator};
use qontract_bundle::{Bundle, Value};
use serde_json::{Value as Plain, json};

use crate::failure::{Failure, Wrong};
use crate::keywords;
use crate::pattern::{self, Pattern, TooCostly};
use crate::tree::BundleTree;
use compile::Converter;

/// What is asked of values besides the draft's own rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// `format` says what is meant, and is not enforced.
    #[default]
    Ignored,
    /// `format` is enforced.
    Enforced,
}

/// The schemas of a bundle, each compiled when it is first needed.
pub struct Checker<'b> {
    bundle: &'b Bundle,
    formats: Formats,
    bad_patterns: BTreeSet<String>,
    registry: Option<Registry<'static>>,
    compiled: BTreeMap<&'b str, OnceLock<Option<Compiled>>>,
    inline: Mutex<HashMap<usize, Arc<Option<Compiled>>>>,
}

type Compiled = Validator<BundleTree>;

/// Refuses everything: what is not in the bundle is not there.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Plain, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`{uri}` is not in the bundle").into())
    }
}

impl<'b> Checker<'b> {
    /// A checker for the schemas of `bundle`.
    pub fn new(bundle: &'b Bundle, formats: Formats) -> Self {
        let bad_patterns = bad_patterns(bundle);
        let registry = registry(bundle, &bad_patterns);
        let compiled = bundle.schemas().iter().map(|schema| (&*schema.path, OnceLock::new())).collect();
        Self { bundle, formats, bad_patterns, registry, compiled, inline: Mutex::default() }
    }

    /// Patterns that are no regular expressions.
    pub fn bad_patterns(&self) -> &BTreeSet<String> {
        &self.bad_patterns
    }

    /// What is wrong with `value` by the schema at `path`, or `None` if there is no such schema to go by.
    pub fn check(&self, path: &str, value: &Value) -> Option<Vec<Failure>> {
        let compiled = self.compiled.get(path)?.get_or_init(|| {
            let document = self.bundle.schema(path)?;
            self.compile(path, &document.value)
        });
        Some(failures(compiled.as_ref()?, value))
    }

    /// What is wrong with `value` by a schema that is part of another one, at `path`.
    pub fn check_inline(&self, path: &str, schema: &'b Value, value: &Value) -> Option<Vec<Failure>> {
        let address = std::ptr::from_ref(schema).addr();
        let known = lock(&self.inline).get(&address).cloned();
        let compiled = known.unwrap_or_else(|| {
            let made = Arc::new(self.compile(path, schema));
            lock(&self.inline).insert(address, Arc::clone(&made));
            made
        });
        Some(failures(compiled.as_ref().as_ref()?, value))
    }

    fn compile(&self, path: &str, schema: &Value) -> Option<Compiled> {
        let converter = Converter { bundle: self.bundle, path, bad_patterns: &self.bad_patterns };
        let options = jsonschema::options_for::<BundleTree>()
            .with_draft(Draft::Draft6)
            .with_base_uri(compile::uri(path, ""))
            .with_registry(self.registry.as_ref()?)
            .with_keyword(compile::PATTERN, |_, written, _| Ok(Box::new(Searched::new(written))))
            .should_validate_formats(self.formats == Formats::Enforced)
            .should_ignore_unknown_formats(true)
            .with_retriever(Nothing);
        options.build(&converter.convert(schema)).ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `pattern`, as Python searches for it.
struct Searched(Option<Pattern>);

/// What is told of a pattern that could not be decided about.
const TOO_COSTLY: &str = "too costly";

impl Searched {
    fn new(written: &Plain) -> Self {
        Self(written.as_str().and_then(Pattern::new))
    }
}

impl<'i> Keyword<'i, BundleTree> for Searched {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        let (Some(pattern), Some(text)) = (&self.0, value.as_str()) else { return Ok(()) };
        match pattern.finds(text) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ValidationError::custom("not found")),
            Err(TooCostly) => Err(ValidationError::custom(TOO_COSTLY)),
        }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.validate(value).is_ok()
    }
}

fn registry(bundle: &Bundle, bad_patterns: &BTreeSet<String>) -> Option<Registry<'static>> {
    let resources = bundle.schemas().iter().map(|schema| {
        let converter = Converter { bundle, path: &schema.path, bad_patterns };
        let resource = Draft::Draft6.create_resource(converter.convert(&schema.document.value));
        (compile::uri(&schema.path, ""), resource)
    });
    Registry::new().draft(Draft::Draft6).retriever(Nothing).extend(resources).ok()?.prepare().ok()
}

/// All patterns of all schemas that do not compile.
fn bad_patterns(bundle: &Bundle) -> BTreeSet<String> {
    let (mut of_texts, mut of_names): (BTreeSet<&str>, BTreeSet<&str>) = Default::default();
    for schema in bundle.schemas() {
        keywords::each_schema(&schema.document.value, &mut String::new(), &mut |map, _| {
            of_texts.extend(map.get("pattern").and_then(Value::as_str));
            let names = map.get("patternProperties").and_then(Value::as_map).into_iter();
            of_names.extend(names.flat_map(|names| names.iter().map(|(name, _)| name.as_str())));
        });
    }
    of_texts.retain(|written| Pattern::new(written).is_none());
    // Names of fields are matched by the library itself, whose expressions are a little poorer.
    of_names.retain(|written| {
        let schema = json!({ "patternProperties": { pattern::from_python(written): {} } });
        jsonschema::options().with_draft(Draft::Draft6).build(&schema).is_err()
    });
    of_texts.into_iter().chain(of_names).map(str::to_owned).collect()
}

fn failures(compiled: &Compiled, value: &Value) -> Vec<Failure> {
    if compiled.is_valid(value) {
        return Vec::new();
    }
    compiled.iter_errors(value).map(|error| failure(&error)).collect()
}

fn failure(error: &ValidationError<'_>) -> Failure {
    let keyword = error.absolute_keyword_location().and_then(|uri| compile::place(uri.as_str()));
    Failure { pointer: error.instance_path().as_str().to_owned(), keyword, wrong: wrong(error.kind()) }
}

fn branches(context: &[Vec<ValidationError<'static>>]) -> Vec<Vec<Failure>> {
    context.iter().map(|errors| errors.iter().map(failure).collect()).collect()
}

fn wrong(kind: &Kind) -> Wrong {
    use jsonschema::error::TypeKind;
    let text = |value: &Plain| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match kind {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            Wrong::Unknown(unexpected.clone())
        }
        Kind::Required { property } => Wrong::Missing(text(property)),
        Kind::Type { kind: TypeKind::Single(one) } => Wrong::Type(vec![one.to_string()]),
        Kind::Type { kind: TypeKind::Multiple(many) } => {
            Wrong::Type(many.iter().map(|one| one.to_string()).collect())
        }
        Kind::Enum { options } => Wrong::Enum(options.as_array().cloned().unwrap_or_default()),
        Kind::Constant { expected_value } => Wrong::Enum(vec![expected_value.as_ref().clone()]),
        Kind::Custom { message, .. } if message == TOO_COSTLY => Wrong::CostlyPattern,
        Kind::Custom { .. } | Kind::Pattern { .. } => Wrong::Pattern,
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => Wrong::CostlyPattern,
        Kind::Format { format } => Wrong::Format(format.clone()),
        Kind::Minimum { limit } => Wrong::Range(format!("less than {limit}, the least allowed")),
        Kind::Maximum { limit } => Wrong::Range(format!("more than {limit}, the most allowed")),
        Kind::ExclusiveMinimum { limit } => Wrong::Range(format!("not more than {limit}, as it must be")),
        Kind::ExclusiveMaximum { limit } => Wrong::Range(format!("not less than {limit}, as it must be")),
        Kind::MultipleOf { multiple_of } => Wrong::Range(format!("not a multiple of {multiple_of}")),
        Kind::MinLength { limit } => Wrong::Length(format!("shorter than the {limit} characters it needs")),
        Kind::MaxLength { limit } => Wrong::Length(format!("longer than the {limit} characters allowed")),
        Kind::MinItems { limit } => Wrong::Count(format!("fewer items than the {limit} it needs")),
        Kind::MaxItems { limit } => Wrong::Count(format!("more items than the {limit} allowed")),
        Kind::AdditionalItems { limit } => Wrong::Count(format!("more items than the {limit} allowed")),
        Kind::MinProperties { limit } => Wrong::Count(format!("fewer fields than the {limit} it needs")),
        Kind::MaxProperties { limit } => Wrong::Count(format!("more fields than the {limit} allowed")),
        Kind::Contains => Wrong::Count("no item of the kind it needs".to_owned()),
        Kind::UniqueItems => Wrong::Repeated,
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => Wrong::NoBranch(branches(context)),
        Kind::OneOfMultipleValid { context } => {
            let fits = (0..)
                .zip(context)
                .filter(|(_, errors)| errors.is_empty())
                .map(|(index, _): (usize, _)| index);
            Wrong::ManyBranches(fits.collect())
        }
        Kind::PropertyNames { error } => Wrong::Name(Box::new(failure(error))),
        Kind::Not { .. }
        | Kind::FalseSchema
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::FromUtf8 { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::Referencing(_) => Wrong::Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::compile::BASE;

    #[test]
    fn the_base_is_an_address() {
        assert!(jsonschema::uri::from_str(BASE).is_ok());
    }
}

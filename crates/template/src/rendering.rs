//! The public interface of rendering: request and outcome.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use crate::data::Data;
use crate::fault::{Kind, TemplateFault};
use crate::interpreter::{Interpreter, Strictness};
use crate::limits::RenderLimits;
use crate::lookup::{LookupSource, TemplateLookup};
use crate::source::Source;
use crate::value::conversion;
use crate::{filters, functions, jinja_tests};

/// The message of every fault after a secret was looked up. All kinds of faults have this message, because
/// the kind may depend on the secret.
const SECRET_FAULT_MESSAGE: &str =
    "cannot be rendered; a secret was looked up before, so neither the reason nor the line is shown";

/// A request to render a template.
#[derive(Debug, Clone, Copy)]
pub struct RenderRequest<'a> {
    /// The template.
    pub source: Source<'a>,
    /// The variables, in order.
    pub variables: &'a [(String, Data)],
    /// The treatment of undefined names.
    pub strictness: Strictness,
    /// The resource limits.
    pub limits: RenderLimits,
}

impl<'a> RenderRequest<'a> {
    /// A request for a template of a data repo: strict, with the default limits.
    pub fn new(source: Source<'a>, variables: &'a [(String, Data)]) -> Self {
        Self { source, variables, strictness: Strictness::Strict, limits: RenderLimits::default() }
    }
}

/// The outcome of rendering a template without faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderOutcome {
    /// The template was rendered.
    Rendered(RenderedTemplate),
    /// The template cannot be rendered before these lookups are made; further lookups may be needed after that.
    Needs(BTreeSet<TemplateLookup>),
}

/// A rendered template.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedTemplate {
    text: String,
    /// Whether a secret was looked up. If so, the whole text is secret.
    pub is_sensitive: bool,
    /// All lookups that were made.
    pub lookups: BTreeSet<TemplateLookup>,
}

impl RenderedTemplate {
    /// The text. The caller must not print a text that is sensitive.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// **Invariant:** text that was rendered from a secret is not printed.
impl fmt::Debug for RenderedTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.is_sensitive { "…" } else { self.text.as_str() };
        f.debug_struct("Rendered").field("text", &text).field("looked_up", &self.lookups).finish()
    }
}

/// Renders a template exactly as Jinja2 does, or returns a fault.
///
/// ```
/// use std::collections::BTreeMap;
/// use qontract_template::{Data, RenderOutcome, RenderRequest, Source, render};
///
/// let variables = [("name".to_owned(), Data::text("world"))];
/// let source = Source::new("resources/hello.j2", "hello {{ name | upper }}");
/// let request = RenderRequest::new(source, &variables);
/// let Ok(RenderOutcome::Rendered(rendered)) = render(&request, &BTreeMap::new()) else { panic!() };
/// assert_eq!(rendered.expose(), "hello WORLD");
/// ```
pub fn render(
    request: &RenderRequest<'_>,
    lookups: &dyn LookupSource,
) -> Result<RenderOutcome, TemplateFault> {
    let source = request.source;
    let mut run = Interpreter::new(lookups, request.limits, request.strictness);
    let rendered = conversion::dict(request.variables, &mut run).and_then(|variables| {
        run.render_template(source.text, source.dialect, source.whitespace, Rc::new(variables))
    });
    if !run.pending_lookups.is_empty() {
        return Ok(RenderOutcome::Needs(run.pending_lookups));
    }
    match rendered {
        Ok(text) => Ok(RenderOutcome::Rendered(RenderedTemplate {
            text,
            is_sensitive: run.is_sensitive,
            lookups: run.completed_lookups,
        })),
        Err(_) if run.is_sensitive => {
            let path = source.path.to_owned();
            Err(TemplateFault {
                path,
                line: None,
                kind: Kind::Failed,
                message: SECRET_FAULT_MESSAGE.to_owned(),
            })
        }
        Err(error) => Err(error.into_fault(source.path, run.line)),
    }
}

/// The kinds and names of all functions, filters and tests, including those that are refused. A test ensures
/// that the corpus uses each name.
pub fn builtin_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let functions = functions::DATA_REPO_FUNCTIONS
        .iter()
        .chain(&functions::JINJA2_FUNCTIONS)
        .map(|name| ("function", *name));
    let filters = filters::SUPPORTED.iter().chain(filters::REFUSED.iter().map(|(name, _)| name));
    let tests = jinja_tests::SUPPORTED.iter().map(|name| ("test", *name));
    functions.chain(filters.map(|name| ("filter", *name))).chain(tests)
}

//! The public interface of rendering: request and outcome.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use crate::address::{Address, Lookups};
use crate::data::Data;
use crate::fault::{Fault, Kind};
use crate::limits::Limits;
use crate::run::{Run, Strictness};
use crate::source::Source;
use crate::value::convert;
use crate::{checks, filters, functions};

/// The message of every fault after a secret was looked up. It is the same for all kinds, since the kind may
/// depend on the secret.
const AFTER_SECRET: &str =
    "it cannot be rendered; a secret was looked up before, so neither reason nor line is shown";

/// A request to render a template.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The template.
    pub source: Source<'a>,
    /// Its variables, in order.
    pub variables: &'a [(String, Data)],
    /// How undefined names are treated.
    pub strictness: Strictness,
    /// The resource limits.
    pub limits: Limits,
}

impl<'a> Request<'a> {
    /// A template of a data repo: strict, with the usual limits.
    pub fn new(source: Source<'a>, variables: &'a [(String, Data)]) -> Self {
        Self { source, variables, strictness: Strictness::Strict, limits: Limits::default() }
    }
}

/// The outcome of rendering a template without faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was rendered.
    Rendered(Rendered),
    /// The template cannot be rendered before these look-ups are made; more may be needed after that.
    Needs(BTreeSet<Address>),
}

/// A rendered template.
#[derive(Clone, PartialEq, Eq)]
pub struct Rendered {
    text: String,
    /// Whether a secret was looked up: then all of the text is secret.
    pub is_sensitive: bool,
    /// All look-ups that were made.
    pub looked_up: BTreeSet<Address>,
}

impl Rendered {
    /// The text. The caller must not print it if it is sensitive.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// **Invariant:** text that was rendered from a secret is not printed.
impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.is_sensitive { "…" } else { self.text.as_str() };
        f.debug_struct("Rendered").field("text", &text).field("looked_up", &self.looked_up).finish()
    }
}

/// Renders a template as Jinja2 does, or returns a fault.
///
/// ```
/// use std::collections::BTreeMap;
/// use qontract_template::{Data, Outcome, Request, Source, render};
///
/// let variables = [("name".to_owned(), Data::text("world"))];
/// let source = Source::new("resources/hello.j2", "hello {{ name | upper }}");
/// let Ok(Outcome::Rendered(rendered)) = render(&Request::new(source, &variables), &BTreeMap::new()) else { panic!() };
/// assert_eq!(rendered.expose(), "hello WORLD");
/// ```
pub fn render(request: &Request<'_>, lookups: &dyn Lookups) -> Result<Outcome, Fault> {
    let source = request.source;
    let mut run = Run::new(lookups, request.limits, request.strictness);
    let rendered = convert::dict(request.variables, &mut run).and_then(|variables| {
        run.template(source.text, source.dialect, source.whitespace, Rc::new(variables))
    });
    if !run.needs.is_empty() {
        return Ok(Outcome::Needs(run.needs));
    }
    match rendered {
        Ok(text) => {
            Ok(Outcome::Rendered(Rendered { text, is_sensitive: run.is_sensitive, looked_up: run.looked_up }))
        }
        Err(_) if run.is_sensitive => {
            let path = source.path.to_owned();
            Err(Fault { path, line: None, kind: Kind::Failed, message: AFTER_SECRET.to_owned() })
        }
        Err(error) => Err(error.placed(source.path, run.line)),
    }
}

/// The kinds and names of all functions, filters and tests, including refused ones. Tests ensure that the
/// corpus uses each.
pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    let functions = functions::OUTSIDE.iter().chain(&functions::INSIDE).map(|name| ("function", *name));
    let filters = filters::SUPPORTED.iter().chain(filters::REFUSED.iter().map(|(name, _)| name));
    let tests = checks::SUPPORTED.iter().map(|name| ("test", *name));
    functions.chain(filters.map(|name| ("filter", *name))).chain(tests)
}

//! The interpreter: the state of one rendering, with its remaining steps, lookups and names.

mod access;
mod arithmetic;
mod call;
mod comparison;
mod containers;
mod evaluation;
mod execution;
mod text;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

pub(crate) use access::slice_indices;
pub(crate) use arithmetic::{float, float_of};
pub(crate) use call::Args;

use crate::constant;
use crate::data::Data;
use crate::fault::{EvalError, EvalResult, Kind};
use crate::lexer;
use crate::limits::RenderLimits;
use crate::lookup::{LookupSource, LookupState, TemplateLookup};
use crate::parser;
use crate::scope::Scope;
use crate::source::{Dialect, Whitespace};
use crate::syntax::Name;
use crate::value::{Dict, Value, conversion};

/// The placeholder for a lookup that was not made yet. The placeholder may be printed, because the output is
/// discarded if a lookup is pending.
pub(crate) const PENDING_LOOKUP: &str = "\0pending";

/// The undefined value of an `if` expression without `else`. Its use is lenient, even in a strict template.
pub(crate) const NO_ELSE: &str = "the `if` of an expression is false, and it has no `else`";

/// The treatment of undefined names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Any use of an undefined name is a fault.
    Strict,
    /// An undefined name prints as an empty string and is false, as in `eval` and in resources of `query`.
    Lenient,
}

pub(crate) struct Interpreter<'a> {
    lookups: &'a dyn LookupSource,
    limits: RenderLimits,
    steps_left: u64,
    depth: usize,
    strictness: Strictness,
    variables: Rc<Dict>,
    /// Names that the template assigns somewhere.
    assigned: HashSet<Name>,
    pub line: usize,
    pub is_sensitive: bool,
    pub completed_lookups: BTreeSet<TemplateLookup>,
    pub pending_lookups: BTreeSet<TemplateLookup>,
}

impl<'a> Interpreter<'a> {
    pub fn new(lookups: &'a dyn LookupSource, limits: RenderLimits, strictness: Strictness) -> Self {
        Self {
            lookups,
            limits,
            steps_left: limits.steps,
            depth: 0,
            strictness,
            variables: Rc::default(),
            assigned: HashSet::new(),
            line: 1,
            is_sensitive: false,
            completed_lookups: BTreeSet::new(),
            pending_lookups: BTreeSet::new(),
        }
    }

    /// Renders a template with its own variables and names.
    pub fn render_template(
        &mut self,
        text: &str,
        dialect: Dialect,
        whitespace: Whitespace,
        variables: Rc<Dict>,
    ) -> EvalResult<String> {
        if text.len() > self.limits.source {
            return Err(EvalError::at(
                Kind::Limit,
                1,
                format!("the template has more than {} bytes", self.limits.source),
            ));
        }
        self.charge(text.len())?;
        let parsed =
            parser::parse(lexer::tokenize(text, dialect, whitespace)?, self.limits.depth, self.is_strict())?;
        let assigned = parsed.assigned.iter().cloned().collect();
        let outer_assigned = std::mem::replace(&mut self.assigned, assigned);
        let outer_variables = std::mem::replace(&mut self.variables, variables);
        let mut out = String::new();
        let done = constant::check(self, &parsed.body)
            .and_then(|()| self.deeper(|run| run.statements(&parsed.body, &Scope::root(), &mut out)));
        self.assigned = outer_assigned;
        self.variables = outer_variables;
        done.map(|()| out)
    }

    /// Renders text within this template with the same variables, such as the arguments of `vault`.
    pub fn render_nested(&mut self, text: &str) -> EvalResult<String> {
        let line = self.line;
        let rendered =
            self.render_template(text, Dialect::Jinja2, Whitespace::default(), Rc::clone(&self.variables));
        self.line = line;
        rendered.map_err(|error| nested_error(error, line, "an argument that is itself a template"))
    }

    /// Renders text leniently with its own variables and without lookups, as `eval` does.
    pub fn render_lenient(&mut self, text: &str, variables: Dict) -> EvalResult<String> {
        let line = self.line;
        let outer = std::mem::replace(&mut self.strictness, Strictness::Lenient);
        let rendered = self.render_template(text, Dialect::Jinja2, Whitespace::default(), Rc::new(variables));
        self.strictness = outer;
        self.line = line;
        rendered.map_err(|error| nested_error(error, line, "the template given to `eval`"))
    }

    /// Whether any use of this undefined value is a fault.
    pub fn is_fatal(&self, what: &str) -> bool {
        what == PENDING_LOOKUP || (self.is_strict() && what != NO_ELSE)
    }

    pub fn is_strict(&self) -> bool {
        self.strictness == Strictness::Strict
    }

    /// Charges `count` steps.
    pub fn step(&mut self, count: u64) -> EvalResult<()> {
        let Some(left) = self.steps_left.checked_sub(count) else {
            let message = format!("rendering takes more than {} steps", self.limits.steps);
            return Err(EvalError::new(Kind::Limit, message));
        };
        self.steps_left = left;
        Ok(())
    }

    /// Charges the steps for creating `bytes` of text, and enforces the size limit.
    pub fn charge(&mut self, bytes: usize) -> EvalResult<()> {
        if bytes > self.limits.output {
            return Err(EvalError::new(
                Kind::Limit,
                format!("it creates a string of more than {} bytes", self.limits.output),
            ));
        }
        self.step(1 + bytes as u64 / 16)
    }

    /// Runs `work` one nesting level deeper, up to the limit.
    pub fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> EvalResult<T>) -> EvalResult<T> {
        if self.depth >= self.limits.depth {
            return Err(EvalError::new(Kind::Limit, format!("nested more than {} deep", self.limits.depth)));
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    /// Makes a lookup, or records that it is needed.
    pub fn look_up(&mut self, address: TemplateLookup) -> EvalResult<Value> {
        self.step(1)?;
        let answer = self.lookups.answer(&address);
        self.is_sensitive |=
            address.is_secret() && matches!(answer, LookupState::Ready(_)) && self.lookups.reveals_secrets();
        match answer {
            LookupState::Ready(Data::Text(text)) => {
                self.completed_lookups.insert(address);
                self.charge(text.len())?;
                Ok(Value::text(text))
            }
            LookupState::Ready(data) => {
                self.completed_lookups.insert(address);
                conversion::value(&data, self)
            }
            LookupState::Pending => {
                self.pending_lookups.insert(address);
                Ok(Value::Undefined(PENDING_LOOKUP.into()))
            }
            LookupState::Failed(why) => {
                Err(EvalError::new(Kind::Lookup, format!("`{address}` could not be looked up: {why}")))
            }
        }
    }

    /// The error for using an undefined value.
    #[expect(clippy::unused_self, reason = "a method, like everything else that may fail")]
    pub fn undefined<T>(&self, what: &str) -> EvalResult<T> {
        if what == PENDING_LOOKUP {
            return Err(EvalError::new(Kind::Lookup, "a lookup was not made yet"));
        }
        Err(EvalError::new(Kind::Undefined, what))
    }

    /// Fails if the value is a pending lookup: evaluation must not depend on it.
    pub fn ensure_resolved(&self, value: &Value) -> EvalResult<()> {
        match value {
            Value::Undefined(what) if &**what == PENDING_LOOKUP => self.undefined(what),
            _ => Ok(()),
        }
    }
}

/// The error of a nested template, with the line of the outer template.
#[expect(clippy::unnecessary_box_returns, reason = "every result boxes it")]
fn nested_error(mut error: Box<EvalError>, line: usize, what: &str) -> Box<EvalError> {
    if error.kind == Kind::Syntax || error.line.is_some() {
        error.message = format!("in {what}, line {}: {}", error.line.unwrap_or(1), error.message);
        if error.kind == Kind::Syntax {
            error.kind = Kind::Failed;
        }
    }
    error.line = Some(line);
    error
}

//! The interpreter: the state of one rendering, with its remaining steps, its look-ups and its names.

mod access;
mod adopt;
mod call;
mod compare;
mod evaluate;
mod execute;
mod operate;
mod text;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

pub(crate) use access::places;
pub(crate) use call::Args;
pub(crate) use operate::{float, float_of};

use crate::address::{Address, Answer, Lookups};
use crate::constant;
use crate::data::Data;
use crate::fault::{Kind, Outcome, Trouble};
use crate::lexer;
use crate::limits::Limits;
use crate::parser;
use crate::scope::Scope;
use crate::source::{Dialect, Whitespace};
use crate::syntax::Name;
use crate::value::{Dict, Value, convert};

/// The placeholder for a look-up that was not made yet. It may be printed, since the output is then
/// discarded.
pub(crate) const PENDING: &str = "\0pending";

/// The undefined value of an `if` expression without `else`. It is lenient, even in a strict template.
pub(crate) const NO_ELSE: &str = "the `if` of an expression is false, and it has no `else`";

/// How undefined names are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Any use is a fault.
    Strict,
    /// It prints as nothing and is false, as in `eval` and in the resources of `query`.
    Lenient,
}

pub(crate) struct Run<'a> {
    lookups: &'a dyn Lookups,
    limits: Limits,
    steps: u64,
    depth: usize,
    strictness: Strictness,
    variables: Rc<Dict>,
    /// Names that the template assigns somewhere.
    assigned: HashSet<Name>,
    pub line: usize,
    pub is_sensitive: bool,
    pub looked_up: BTreeSet<Address>,
    pub needs: BTreeSet<Address>,
}

impl<'a> Run<'a> {
    pub fn new(lookups: &'a dyn Lookups, limits: Limits, strictness: Strictness) -> Self {
        Self {
            lookups,
            limits,
            steps: limits.steps,
            depth: 0,
            strictness,
            variables: Rc::default(),
            assigned: HashSet::new(),
            line: 1,
            is_sensitive: false,
            looked_up: BTreeSet::new(),
            needs: BTreeSet::new(),
        }
    }

    /// Renders a template with its own variables and names.
    pub fn template(
        &mut self,
        text: &str,
        dialect: Dialect,
        whitespace: Whitespace,
        variables: Rc<Dict>,
    ) -> Outcome<String> {
        if text.len() > self.limits.source {
            return Err(Trouble::at(
                Kind::Limit,
                1,
                format!("the template has more than {} bytes", self.limits.source),
            ));
        }
        self.charge(text.len())?;
        let parsed =
            parser::parse(lexer::tokens(text, dialect, whitespace)?, self.limits.depth, self.is_strict())?;
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
    pub fn nested(&mut self, text: &str) -> Outcome<String> {
        let line = self.line;
        let rendered =
            self.template(text, Dialect::Jinja2, Whitespace::default(), Rc::clone(&self.variables));
        self.line = line;
        rendered.map_err(|error| within(error, line, "an argument that is itself a template"))
    }

    /// Renders text leniently with its own variables and without look-ups, as `eval` does.
    pub fn lenient(&mut self, text: &str, variables: Dict) -> Outcome<String> {
        let line = self.line;
        let outer = std::mem::replace(&mut self.strictness, Strictness::Lenient);
        let rendered = self.template(text, Dialect::Jinja2, Whitespace::default(), Rc::new(variables));
        self.strictness = outer;
        self.line = line;
        rendered.map_err(|error| within(error, line, "the template given to `eval`"))
    }

    /// Whether any use of this undefined value is a fault.
    pub fn is_fatal(&self, what: &str) -> bool {
        what == PENDING || (self.is_strict() && what != NO_ELSE)
    }

    pub fn is_strict(&self) -> bool {
        self.strictness == Strictness::Strict
    }

    /// Spends `count` steps.
    pub fn step(&mut self, count: u64) -> Outcome<()> {
        match self.steps.checked_sub(count) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Trouble::new(Kind::Limit, format!("it takes more than {} steps", self.limits.steps))),
        }
    }

    /// Spends the steps for creating `bytes` of text, and enforces the size limit.
    pub fn charge(&mut self, bytes: usize) -> Outcome<()> {
        if bytes > self.limits.output {
            return Err(Trouble::new(
                Kind::Limit,
                format!("it makes a text of more than {} bytes", self.limits.output),
            ));
        }
        self.step(1 + bytes as u64 / 16)
    }

    /// Runs `work` one level deeper.
    pub fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= self.limits.depth {
            return Err(Trouble::new(Kind::Limit, format!("nested more than {} deep", self.limits.depth)));
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    /// Makes a look-up, or records it as needed.
    pub fn look_up(&mut self, address: Address) -> Outcome<Value> {
        self.step(1)?;
        let answer = self.lookups.answer(&address);
        self.is_sensitive |=
            address.is_secret() && matches!(answer, Answer::Known(_)) && self.lookups.reveals_secrets();
        match answer {
            Answer::Known(Data::Text(text)) => {
                self.looked_up.insert(address);
                self.charge(text.len())?;
                Ok(Value::text(text))
            }
            Answer::Known(data) => {
                self.looked_up.insert(address);
                convert::value(&data, self)
            }
            Answer::Unknown => {
                self.needs.insert(address);
                Ok(Value::Undefined(PENDING.into()))
            }
            Answer::Failed(why) => {
                Err(Trouble::new(Kind::LookUp, format!("`{address}` could not be looked up: {why}")))
            }
        }
    }

    /// The error for using an undefined value.
    #[expect(clippy::unused_self, reason = "a method, like everything else that may fail")]
    pub fn undefined<T>(&self, what: &str) -> Outcome<T> {
        if what == PENDING {
            return Err(Trouble::new(Kind::LookUp, "a look-up was not made yet"));
        }
        Err(Trouble::new(Kind::Undefined, what))
    }

    /// Fails if the value is a pending look-up: evaluation must not depend on it.
    pub fn settled(&self, value: &Value) -> Outcome<()> {
        match value {
            Value::Undefined(what) if &**what == PENDING => self.undefined(what),
            _ => Ok(()),
        }
    }
}

/// The error of a nested template, with the line of the outer template.
#[expect(clippy::unnecessary_box_returns, reason = "every result boxes it")]
fn within(mut error: Box<Trouble>, line: usize, what: &str) -> Box<Trouble> {
    if error.kind == Kind::Syntax || error.line.is_some() {
        error.message = format!("in {what}, line {}: {}", error.line.unwrap_or(1), error.message);
        if error.kind == Kind::Syntax {
            error.kind = Kind::Failed;
        }
    }
    error.line = Some(line);
    error
}

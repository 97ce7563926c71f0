//! Evaluates expressions.

use std::rc::Rc;

use super::{Args, Interpreter, NO_ELSE};
use crate::fault::{EvalResult, failed, refused};
use crate::scope::Scope;
use crate::syntax::{Arguments, Call, Comparison, Expression, ExpressionKind};
use crate::value::{Dict, Value};
use crate::{filters, functions, jinja_tests};

impl Interpreter<'_> {
    pub fn evaluate(&mut self, expression: &Expression, scope: &Rc<Scope>) -> EvalResult<Value> {
        self.step(1)?;
        match &expression.kind {
            ExpressionKind::None => Ok(Value::None),
            ExpressionKind::Bool(value) => Ok(Value::Bool(*value)),
            ExpressionKind::Int(number) => Ok(Value::Int(*number)),
            ExpressionKind::Float(number) => crate::run_float(*number),
            ExpressionKind::Text(text) => Ok(Value::Text(Rc::clone(text))),
            ExpressionKind::Name(name) => {
                self.line = expression.line;
                self.name(name, scope)
            }
            kind => self.deeper(|run| run.compound(kind, expression.line, scope)),
        }
        .map_err(|mut error| {
            error.line.get_or_insert(expression.line);
            error
        })
    }

    fn compound(&mut self, kind: &ExpressionKind, line: usize, scope: &Rc<Scope>) -> EvalResult<Value> {
        match kind {
            ExpressionKind::List(items) => {
                let items = self.all(items, scope)?;
                self.list(items)
            }
            ExpressionKind::Tuple(items) => {
                let items = self.all(items, scope)?;
                self.tuple(items)
            }
            ExpressionKind::Dict(entries) => self.dict_literal(entries, scope),
            ExpressionKind::Attribute(of, name) => {
                let of = self.evaluate(of, scope)?;
                self.line = line;
                self.attribute(&of, name)
            }
            ExpressionKind::Item(of, index) => {
                let of = self.evaluate(of, scope)?;
                let index = self.evaluate(index, scope)?;
                self.line = line;
                self.item(&of, &index)
            }
            ExpressionKind::Slice(of, parts) => self.slice_of(of, parts, scope),
            ExpressionKind::Call(callee, arguments) => {
                let callee = self.evaluate(callee, scope)?;
                let args = self.arguments(arguments, scope)?;
                self.line = line;
                self.call(&callee, args)
            }
            ExpressionKind::Filter(of, call) => {
                let of = self.evaluate(of, scope)?;
                self.filter(of, call, scope)
            }
            ExpressionKind::Test(of, call) => {
                let of = self.evaluate(of, scope)?;
                let args = self.arguments(&call.arguments, scope)?;
                self.line = call.line;
                self.ensure_resolved(&of)?;
                jinja_tests::apply(self, &call.name, &of, args)
            }
            ExpressionKind::Binary(operator, left, right) => {
                let left = self.evaluate(left, scope)?;
                let right = self.evaluate(right, scope)?;
                self.line = line;
                self.binary(*operator, &left, &right)
            }
            ExpressionKind::Compare(left, rest) => self.comparisons(left, rest, scope),
            ExpressionKind::Concat(parts) => {
                let parts = self.all(parts, scope)?;
                self.concat(&parts)
            }
            kind => self.logic(kind, scope),
        }
    }

    fn logic(&mut self, kind: &ExpressionKind, scope: &Rc<Scope>) -> EvalResult<Value> {
        match kind {
            ExpressionKind::Not(inner) => {
                let inner = self.evaluate(inner, scope)?;
                Ok(Value::Bool(!self.is_truthy(&inner)?))
            }
            ExpressionKind::Negative(inner) => {
                let inner = self.evaluate(inner, scope)?;
                self.negative(&inner)
            }
            ExpressionKind::Positive(inner) => {
                let inner = self.evaluate(inner, scope)?;
                self.positive(&inner)
            }
            ExpressionKind::And(left, right) => {
                let left = self.evaluate(left, scope)?;
                if self.is_truthy(&left)? { self.evaluate(right, scope) } else { Ok(left) }
            }
            ExpressionKind::Or(left, right) => {
                let left = self.evaluate(left, scope)?;
                if self.is_truthy(&left)? { Ok(left) } else { self.evaluate(right, scope) }
            }
            ExpressionKind::Conditional { condition, then, otherwise } => {
                let condition = self.evaluate(condition, scope)?;
                if self.is_truthy(&condition)? {
                    return self.evaluate(then, scope);
                }
                match otherwise {
                    Some(otherwise) => self.evaluate(otherwise, scope),
                    None => Ok(Value::Undefined(NO_ELSE.into())),
                }
            }
            _ => refused("this expression"),
        }
    }

    pub fn all(&mut self, expressions: &[Expression], scope: &Rc<Scope>) -> EvalResult<Vec<Value>> {
        expressions.iter().map(|expression| self.evaluate(expression, scope)).collect()
    }

    fn dict_literal(&mut self, entries: &[(Expression, Expression)], scope: &Rc<Scope>) -> EvalResult<Value> {
        let mut dict = Dict::default();
        for (key, value) in entries {
            let name = self.evaluate(key, scope)?;
            let value = self.evaluate(value, scope)?;
            let key = self.key(&name)?;
            dict.insert(key, name, value);
        }
        self.dict(dict)
    }

    fn slice_of(
        &mut self,
        of: &Expression,
        parts: &[Option<Box<Expression>>; 3],
        scope: &Rc<Scope>,
    ) -> EvalResult<Value> {
        let of = self.evaluate(of, scope)?;
        let mut bounds = [None, None, None];
        for (bound, part) in bounds.iter_mut().zip(parts) {
            let Some(part) = part else { continue };
            let value = self.evaluate(part, scope)?;
            *bound = match &value {
                Value::None => None,
                Value::Undefined(what) => return self.undefined(what),
                value => match value.as_int() {
                    Some(number) => Some(number),
                    None => return failed(format!("a slice with a {}", value.kind())),
                },
            };
        }
        self.slice(&of, bounds)
    }

    fn comparisons(
        &mut self,
        left: &Expression,
        rest: &[(Comparison, Expression)],
        scope: &Rc<Scope>,
    ) -> EvalResult<Value> {
        let mut left = self.evaluate(left, scope)?;
        for (comparison, right) in rest {
            let right = self.evaluate(right, scope)?;
            if !self.compare(*comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    /// Resolves a name: a name of the template, a variable, or a function.
    fn name(&mut self, name: &Rc<str>, scope: &Rc<Scope>) -> EvalResult<Value> {
        if let Some(value) = scope.get(name) {
            return Ok(value);
        }
        // Functions of data repos take precedence over variables, and variables take precedence over
        // functions of Jinja2.
        let outer = functions::data_repo_function(name)
            .filter(|_| self.is_strict())
            .map(Value::Function)
            .or_else(|| self.variables.get_text(name).cloned())
            .or_else(|| functions::jinja2_function(name).map(Value::Function));
        match outer {
            Some(_) if self.assigned.contains(name) && scope.is_in_closure() => {
                refused(format!("`{name}` is a variable that a macro reads before the template assigns it"))
            }
            Some(value) => Ok(value),
            None => Ok(Value::Undefined(format!("`{name}` is undefined").into())),
        }
    }

    pub fn arguments(&mut self, arguments: &Arguments, scope: &Rc<Scope>) -> EvalResult<Args> {
        let mut positional = self.all(&arguments.positional, scope)?;
        let mut named = Vec::new();
        for (name, value) in &arguments.named {
            named.push((Rc::clone(name), self.evaluate(value, scope)?));
        }
        if let Some(star) = &arguments.star {
            let star = self.evaluate(star, scope)?;
            positional.extend(self.collect(&star)?);
        }
        if let Some(double_star) = &arguments.double_star {
            let double_star = self.evaluate(double_star, scope)?;
            let Value::Dict(dict) = &double_star else {
                return match &double_star {
                    Value::Undefined(what) => self.undefined(what),
                    other => failed(format!("`**` takes a dict, not a {}", other.kind())),
                };
            };
            for (key, value) in dict.items.borrow().entries() {
                let Value::Text(key) = key else { return failed("argument names must be strings") };
                if named.iter().any(|(name, _)| name == key) {
                    return failed(format!("the argument `{key}` is given twice"));
                }
                named.push((Rc::clone(key), value.clone()));
            }
        }
        Ok(Args { positional, named })
    }

    pub fn filter(&mut self, of: Value, call: &Call, scope: &Rc<Scope>) -> EvalResult<Value> {
        let args = self.arguments(&call.arguments, scope)?;
        self.line = call.line;
        self.ensure_resolved(&of)?;
        filters::apply(self, &call.name, of, args)
    }
}

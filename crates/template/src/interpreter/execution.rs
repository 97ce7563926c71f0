//! Executes statements, which render text.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base64::Engine as _;

use super::Interpreter;
use crate::dedent::dedent;
use crate::fault::{EvalError, EvalResult, Kind, failed, refused};
use crate::iterators::{IterState, TemplateLoop};
use crate::scope::Scope;
use crate::syntax::{AssignTarget, Call, ExpressionKind as Syntax, ForLoop, Name, Statement};
use crate::value::{Key, Macro, Value};

/// The items of a loop, and its depth of recursion.
pub(crate) struct LoopItems {
    pub items: Value,
    pub depth: usize,
}

impl Interpreter<'_> {
    pub fn statements(&mut self, body: &[Statement], scope: &Rc<Scope>, out: &mut String) -> EvalResult<()> {
        body.iter().try_for_each(|statement| self.statement(statement, scope, out))
    }

    fn statement(&mut self, statement: &Statement, scope: &Rc<Scope>, out: &mut String) -> EvalResult<()> {
        self.step(1)?;
        match statement {
            Statement::Data(text) => self.emit(text, out),
            Statement::Print(expression) => {
                let value = self.evaluate(expression, scope)?;
                self.print(&value, expression.line, out)
            }
            Statement::If { branches, otherwise } => {
                for (condition, body) in branches {
                    let condition = self.evaluate(condition, scope)?;
                    if self.is_truthy(&condition)? {
                        return self.deeper(|run| run.statements(body, scope, out));
                    }
                }
                self.deeper(|run| run.statements(otherwise, scope, out))
            }
            Statement::For(loop_) => {
                let iterable = self.evaluate(&loop_.iterable, scope)?;
                self.line = loop_.line;
                self.deeper(|run| run.run_loop(loop_, LoopItems { items: iterable, depth: 0 }, scope, out))
                    .map_err(|mut error| {
                        error.line.get_or_insert(loop_.line);
                        error
                    })
            }
            Statement::Set { target, value } => {
                let value = self.evaluate(value, scope)?;
                self.assign(target, value, scope)
            }
            Statement::Macro(syntax) => {
                let makro = Macro { syntax: Rc::clone(syntax), scope: Rc::downgrade(scope) };
                scope.set(&syntax.name, Value::Macro(Rc::new(makro)));
                Ok(())
            }
            statement => self.deeper(|run| run.block(statement, scope, out)),
        }
    }

    /// Executes statements that render their own body.
    fn block(&mut self, statement: &Statement, scope: &Rc<Scope>, out: &mut String) -> EvalResult<()> {
        match statement {
            Statement::SetBlock { target, filters, body } => {
                let text = self.capture(body, &scope.inner())?;
                let value = self.filters(Value::text(text), filters, scope)?;
                self.assign(target, value, scope)
            }
            Statement::With { values, body } => {
                let inner = scope.inner();
                for (target, value) in values {
                    let value = self.evaluate(value, scope)?;
                    self.assign(target, value, &inner)?;
                }
                self.statements(body, &inner, out)
            }
            Statement::Filter { filters, body } => {
                let inner = scope.inner();
                let text = self.capture(body, &inner)?;
                let value = self.filters(Value::text(text), filters, &inner)?;
                let line = filters.first().map_or(self.line, |call| call.line);
                self.print(&value, line, out)
            }
            Statement::CallBlock { call, caller } => {
                let Syntax::Call(callee, arguments) = &call.kind else { return refused("this `call`") };
                let caller = Macro { syntax: Rc::clone(caller), scope: Rc::downgrade(scope) };
                let callee = self.evaluate(callee, scope)?;
                let mut args = self.arguments(arguments, scope)?;
                args.named.push((Name::from("caller"), Value::Macro(Rc::new(caller))));
                self.line = call.line;
                let value = self.call(&callee, args)?;
                self.print(&value, call.line, out)
            }
            Statement::Base64 { body } => {
                let text = self.capture(body, &scope.closure())?;
                self.charge(text.len().saturating_mul(2))?;
                self.emit(&base64::engine::general_purpose::STANDARD.encode(dedent(&text)), out)
            }
            Statement::Raise { message, line } => {
                let value = self.evaluate(message, scope)?;
                let text = self.text(&value)?;
                Err(EvalError::at(Kind::Raised, *line, format!("`raise_error`: `{text}`")))
            }
            _ => refused("this statement"),
        }
    }

    fn emit(&mut self, text: &str, out: &mut String) -> EvalResult<()> {
        self.charge(text.len())?;
        out.push_str(text);
        if out.len() > self.limits.output { self.charge(out.len()) } else { Ok(()) }
    }

    fn print(&mut self, value: &Value, line: usize, out: &mut String) -> EvalResult<()> {
        if self.ensure_resolved(value).is_err() {
            return Ok(());
        }
        self.write_text(value, out).map_err(|mut error| {
            error.line.get_or_insert(line);
            error
        })
    }

    fn capture(&mut self, body: &[Statement], scope: &Rc<Scope>) -> EvalResult<String> {
        let mut text = String::new();
        self.statements(body, scope, &mut text)?;
        Ok(text)
    }

    fn filters(&mut self, value: Value, filters: &[Call], scope: &Rc<Scope>) -> EvalResult<Value> {
        filters.iter().try_fold(value, |value, call| self.filter(value, call, scope))
    }

    /// Assigns a value to a target.
    pub fn assign(&mut self, target: &AssignTarget, value: Value, scope: &Rc<Scope>) -> EvalResult<()> {
        match target {
            AssignTarget::Name(name) => scope.set(name, value),
            AssignTarget::Attribute(space, name) => {
                let found = scope.get(space);
                let Some(Value::Namespace(space)) = found else {
                    return failed(format!("`{space}` is not a namespace, so its `{name}` cannot be set"));
                };
                self.insert_entry(&space, Key::Text(Rc::clone(name)), &Value::Text(Rc::clone(name)), &value)?;
            }
            AssignTarget::Tuple(targets) => {
                let iter = self.iterator(&value)?;
                let mut values = Vec::new();
                while values.len() <= targets.len() {
                    match self.next(&iter)? {
                        Some(value) => values.push(value),
                        None => break,
                    }
                }
                if values.len() != targets.len() {
                    return failed(format!("{} values were expected, not {}", targets.len(), values.len()));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value, scope)?;
                }
            }
        }
        Ok(())
    }

    /// Renders the body of a loop for each item.
    pub fn run_loop(
        &mut self,
        loop_: &Rc<ForLoop>,
        LoopItems { items: mut iterable, depth }: LoopItems,
        scope: &Rc<Scope>,
        out: &mut String,
    ) -> EvalResult<()> {
        let mut iter = self.iterator(&iterable)?;
        if loop_.condition.is_some() {
            let condition =
                IterState::Condition { inner: iter, loop_: Rc::clone(loop_), scope: Rc::clone(scope) };
            iter = self.iter_of(condition)?;
            iterable = Value::Iter(Rc::clone(&iter));
        }
        let state = Rc::new(TemplateLoop {
            iterable,
            iter: RefCell::new(iter),
            index: Cell::new(0),
            depth,
            after: RefCell::default(),
            before: RefCell::default(),
            current: RefCell::default(),
            length: Cell::default(),
            changed: RefCell::default(),
            recursion: loop_.recursive.then(|| (Rc::clone(loop_), Rc::clone(scope))),
        });
        let loop_name = Name::from("loop");
        let mut count = 0;
        while let Some(item) = self.advance(&state)? {
            count += 1;
            let inner = scope.inner();
            inner.set(&loop_name, Value::Loop(Rc::clone(&state)));
            self.assign(&loop_.target, item, &inner)?;
            self.statements(&loop_.body, &inner, out)?;
        }
        if count == 0 {
            self.statements(&loop_.otherwise, &scope.inner(), out)?;
        }
        Ok(())
    }
}

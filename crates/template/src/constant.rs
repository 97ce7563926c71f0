//! Checks constant expressions. Jinja2 evaluates them when it parses a template, even where they are never
//! reached, and treats undefined values differently from evaluation at run time. Constants with undefined
//! values are therefore refused everywhere.

use std::rc::Rc;

use crate::fault::{Kind as FaultKind, Outcome, Trouble};
use crate::run::Run;
use crate::scope::Scope;
use crate::syntax::{Arguments, Call, Expression, Kind, Statement};

/// Checks all expressions of `body`.
pub(crate) fn check(run: &mut Run<'_>, body: &[Statement]) -> Outcome<()> {
    let scope = Scope::root();
    body.iter().try_for_each(|statement| look_at(run, statement, &scope))
}

fn look_at(run: &mut Run<'_>, statement: &Statement, scope: &Rc<Scope>) -> Outcome<()> {
    let mut expressions: Vec<&Expression> = Vec::new();
    let mut bodies: Vec<&[Statement]> = Vec::new();
    match statement {
        Statement::Data(_) => {}
        Statement::Print(value) | Statement::Set { value, .. } | Statement::Raise { message: value, .. } => {
            expressions.push(value);
        }
        Statement::If { branches, otherwise } => {
            for (condition, body) in branches {
                expressions.push(condition);
                bodies.push(body);
            }
            bodies.push(otherwise);
        }
        Statement::For(inner) => {
            expressions.push(&inner.iterable);
            expressions.extend(&inner.condition);
            bodies.extend([&*inner.body, &*inner.otherwise]);
        }
        Statement::SetBlock { filters, body, .. } | Statement::Filter { filters, body } => {
            for call in filters {
                expressions.extend(of_arguments(&call.arguments));
            }
            bodies.push(body);
        }
        Statement::With { values, body } => {
            expressions.extend(values.iter().map(|(_, value)| value));
            bodies.push(body);
        }
        Statement::Macro(inner) => {
            expressions.extend(inner.parameters.iter().filter_map(|(_, default)| default.as_ref()));
            bodies.push(&inner.body);
        }
        Statement::CallBlock { call, caller } => {
            expressions.push(call);
            expressions.extend(caller.parameters.iter().filter_map(|(_, default)| default.as_ref()));
            bodies.push(&caller.body);
        }
        Statement::Base64 { body } => bodies.push(body),
    }
    for expression in expressions {
        look(run, expression, scope)?;
    }
    bodies.into_iter().flatten().try_for_each(|inner| look_at(run, inner, scope))
}

/// Checks an expression; returns whether it is constant.
fn look(run: &mut Run<'_>, expression: &Expression, scope: &Rc<Scope>) -> Outcome<bool> {
    run.step(1)?;
    let mut constant = !matches!(expression.kind, Kind::Name(_) | Kind::Call(..));
    for part in parts(&expression.kind) {
        constant &= look(run, part, scope)?;
    }
    if !constant {
        return Ok(false);
    }
    match &expression.kind {
        // whether it fails at once, or only where it is reached, depends on the context
        Kind::Dict(_) if run.evaluate(expression, scope).is_err() => return missing(expression),
        Kind::Attribute(..) | Kind::Item(..) | Kind::Slice(..) => match run.evaluate(expression, scope) {
            Ok(value) if !value.is_undefined() => {}
            Err(error) if matches!(error.kind, FaultKind::Refused | FaultKind::Limit) => {
                return Err(error);
            }
            _ => return missing(expression),
        },
        Kind::Filter(..) => match run.evaluate(expression, scope) {
            Ok(value) if value.is_undefined() => return missing(expression),
            Err(error) if error.kind == FaultKind::Limit => return Err(error),
            // a failure is raised only where the expression is reached
            _ => {}
        },
        _ => {}
    }
    Ok(true)
}

fn missing<T>(expression: &Expression) -> Outcome<T> {
    Err(Trouble::at(
        FaultKind::Refused,
        expression.line,
        "not supported: a constant expression that is undefined or fails",
    ))
}

fn of_arguments(arguments: &Arguments) -> impl Iterator<Item = &Expression> {
    let named = arguments.named.iter().map(|(_, value)| value);
    let stars = arguments.star.iter().chain(&arguments.double_star).map(|boxed| &**boxed);
    arguments.positional.iter().chain(named).chain(stars)
}

fn parts(kind: &Kind) -> Vec<&Expression> {
    match kind {
        Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::Name(_) => {
            Vec::new()
        }
        Kind::List(items) | Kind::Tuple(items) | Kind::Concat(items) => items.iter().collect(),
        Kind::Dict(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
        Kind::Attribute(of, _) | Kind::Not(of) | Kind::Negative(of) | Kind::Positive(of) => vec![of],
        Kind::Item(left, right)
        | Kind::Binary(_, left, right)
        | Kind::And(left, right)
        | Kind::Or(left, right) => {
            vec![left, right]
        }
        Kind::Slice(of, bounds) => {
            std::iter::once(&**of).chain(bounds.iter().flatten().map(|bound| &**bound)).collect()
        }
        Kind::Call(of, arguments)
        | Kind::Filter(of, Call { arguments, .. })
        | Kind::Test(of, Call { arguments, .. }) => {
            std::iter::once(&**of).chain(of_arguments(arguments)).collect()
        }
        Kind::Compare(left, rest) => {
            std::iter::once(&**left).chain(rest.iter().map(|(_, right)| right)).collect()
        }
        Kind::Conditional { condition, then, otherwise } => {
            [&**condition, &**then].into_iter().chain(otherwise.iter().map(|boxed| &**boxed)).collect()
        }
    }
}

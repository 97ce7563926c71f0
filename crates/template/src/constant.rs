//! Checks constant expressions. Jinja2 evaluates them when it parses a template, even if they are in a branch
//! that is never executed, and treats undefined values differently than at run time. Therefore, constants
//! with undefined values are refused everywhere.

use std::rc::Rc;

use crate::fault::{EvalError, EvalResult, Kind as FaultKind};
use crate::interpreter::Interpreter;
use crate::scope::Scope;
use crate::syntax::{Arguments, Call, Expression, ExpressionKind, Statement};

/// Checks all expressions of `body`.
pub(crate) fn check(run: &mut Interpreter<'_>, body: &[Statement]) -> EvalResult<()> {
    let scope = Scope::root();
    body.iter().try_for_each(|statement| check_statement(run, statement, &scope))
}

fn check_statement(run: &mut Interpreter<'_>, statement: &Statement, scope: &Rc<Scope>) -> EvalResult<()> {
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
                expressions.extend(argument_expressions(&call.arguments));
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
        check_expression(run, expression, scope)?;
    }
    bodies.into_iter().flatten().try_for_each(|inner| check_statement(run, inner, scope))
}

/// Checks an expression; returns whether it is constant.
fn check_expression(
    run: &mut Interpreter<'_>,
    expression: &Expression,
    scope: &Rc<Scope>,
) -> EvalResult<bool> {
    run.step(1)?;
    let mut constant = !matches!(expression.kind, ExpressionKind::Name(_) | ExpressionKind::Call(..));
    for part in subexpressions(&expression.kind) {
        constant &= check_expression(run, part, scope)?;
    }
    if !constant {
        return Ok(false);
    }
    match &expression.kind {
        // This is refused, because the context decides whether the failure occurs immediately or only when
        // the expression is evaluated.
        ExpressionKind::Dict(_) if run.evaluate(expression, scope).is_err() => return missing(expression),
        ExpressionKind::Attribute(..) | ExpressionKind::Item(..) | ExpressionKind::Slice(..) => {
            match run.evaluate(expression, scope) {
                Ok(value) if !value.is_undefined() => {}
                Err(error) if matches!(error.kind, FaultKind::Refused | FaultKind::Limit) => {
                    return Err(error);
                }
                _ => return missing(expression),
            }
        }
        ExpressionKind::Filter(..) => match run.evaluate(expression, scope) {
            Ok(value) if value.is_undefined() => return missing(expression),
            Err(error) if error.kind == FaultKind::Limit => return Err(error),
            // A failure is raised only when the expression is evaluated, so it is ignored here.
            _ => {}
        },
        _ => {}
    }
    Ok(true)
}

fn missing<T>(expression: &Expression) -> EvalResult<T> {
    Err(EvalError::at(
        FaultKind::Refused,
        expression.line,
        "not supported: a constant expression that is undefined or fails",
    ))
}

fn argument_expressions(arguments: &Arguments) -> impl Iterator<Item = &Expression> {
    let named = arguments.named.iter().map(|(_, value)| value);
    let stars = arguments.star.iter().chain(&arguments.double_star).map(|boxed| &**boxed);
    arguments.positional.iter().chain(named).chain(stars)
}

fn subexpressions(kind: &ExpressionKind) -> Vec<&Expression> {
    match kind {
        ExpressionKind::None
        | ExpressionKind::Bool(_)
        | ExpressionKind::Int(_)
        | ExpressionKind::Float(_)
        | ExpressionKind::Text(_)
        | ExpressionKind::Name(_) => Vec::new(),
        ExpressionKind::List(items) | ExpressionKind::Tuple(items) | ExpressionKind::Concat(items) => {
            items.iter().collect()
        }
        ExpressionKind::Dict(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
        ExpressionKind::Attribute(of, _)
        | ExpressionKind::Not(of)
        | ExpressionKind::Negative(of)
        | ExpressionKind::Positive(of) => vec![of],
        ExpressionKind::Item(left, right)
        | ExpressionKind::Binary(_, left, right)
        | ExpressionKind::And(left, right)
        | ExpressionKind::Or(left, right) => {
            vec![left, right]
        }
        ExpressionKind::Slice(of, bounds) => {
            std::iter::once(&**of).chain(bounds.iter().flatten().map(|bound| &**bound)).collect()
        }
        ExpressionKind::Call(of, arguments)
        | ExpressionKind::Filter(of, Call { arguments, .. })
        | ExpressionKind::Test(of, Call { arguments, .. }) => {
            std::iter::once(&**of).chain(argument_expressions(arguments)).collect()
        }
        ExpressionKind::Compare(left, rest) => {
            std::iter::once(&**left).chain(rest.iter().map(|(_, right)| right)).collect()
        }
        ExpressionKind::Conditional { condition, then, otherwise } => {
            [&**condition, &**then].into_iter().chain(otherwise.iter().map(|boxed| &**boxed)).collect()
        }
    }
}

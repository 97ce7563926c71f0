//! Python's `==`, `<` and `in`.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Interpreter;
use crate::fault::{EvalResult, failed, refused};
use crate::syntax::Comparison;
use crate::value::{Key, Value, View};

/// Compares two numbers exactly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the range is checked before"
)]
pub(crate) fn compare_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right)?,
        (Value::Float(left), right) => compare_numbers(right, &Value::Float(*left))?.reverse(),
        (left, Value::Float(right)) => {
            let left = left.as_int()?;
            if right.abs() >= 1e38 {
                return 0.0.partial_cmp(right);
            }
            let whole = right.trunc() as i128;
            left.cmp(&whole).then(0.0.partial_cmp(&(right - whole as f64))?)
        }
        _ => left.as_int()?.cmp(&right.as_int()?),
    })
}

impl Interpreter<'_> {
    pub fn compare(&mut self, comparison: Comparison, left: &Value, right: &Value) -> EvalResult<bool> {
        self.step(1)?;
        Ok(match comparison {
            Comparison::Equal => self.equal(left, right)?,
            Comparison::NotEqual => !self.equal(left, right)?,
            Comparison::Less => self.order(left, right)?.is_some_and(Ordering::is_lt),
            Comparison::LessOrEqual => self.order(left, right)?.is_some_and(Ordering::is_le),
            Comparison::Greater => self.order(left, right)?.is_some_and(Ordering::is_gt),
            Comparison::GreaterOrEqual => self.order(left, right)?.is_some_and(Ordering::is_ge),
            Comparison::In => self.contains(right, left)?,
            Comparison::NotIn => !self.contains(right, left)?,
        })
    }

    /// `left == right`.
    pub fn equal(&mut self, left: &Value, right: &Value) -> EvalResult<bool> {
        self.step(1)?;
        if left.is_undefined() || right.is_undefined() {
            for side in [left, right] {
                if let Value::Undefined(what) = side
                    && self.is_fatal(what)
                {
                    return self.undefined(what);
                }
            }
            return Ok(left.is_undefined() && right.is_undefined());
        }
        if let Some(order) = compare_numbers(left, right) {
            return Ok(order.is_eq());
        }
        Ok(match (left, right) {
            (Value::None, Value::None) => true,
            (Value::Text(left) | Value::Markup(left), Value::Text(right) | Value::Markup(right)) => {
                left == right
            }
            (Value::List(left), Value::List(right)) => {
                Rc::ptr_eq(left, right) || {
                    let (left, right) = (left.items.borrow().clone(), right.items.borrow().clone());
                    self.all_equal(&left, &right)?
                }
            }
            (Value::Tuple(left), Value::Tuple(right)) => self.all_equal(&left.items, &right.items)?,
            (Value::Dict(left), Value::Dict(right)) => {
                let (left, right) = (left.items.borrow().clone(), right.items.borrow().clone());
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (key, value) in left.entries() {
                    match Key::of(key).and_then(|key| right.get(&key).cloned()) {
                        Some(other) if self.equal(value, &other)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            (Value::View(..) | Value::Range(_), Value::View(..) | Value::Range(_)) => {
                return refused("comparing views or ranges");
            }
            (
                Value::Iter(_)
                | Value::Namespace(_)
                | Value::Function(_)
                | Value::Method(_)
                | Value::Macro(_)
                | Value::Loop(_)
                | Value::Cycler(_)
                | Value::Joiner(_),
                _,
            ) if left.kind() == right.kind() => return refused(format!("comparing a {}", left.kind())),
            _ => false,
        })
    }

    fn all_equal(&mut self, left: &[Value], right: &[Value]) -> EvalResult<bool> {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (left, right) in left.iter().zip(right) {
            if !self.equal(left, right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The order of `left` and `right`, if Python defines one.
    pub fn order(&mut self, left: &Value, right: &Value) -> EvalResult<Option<Ordering>> {
        self.step(1)?;
        if let (Value::Undefined(what), _) | (_, Value::Undefined(what)) = (left, right) {
            return self.undefined(what);
        }
        if let Some(order) = compare_numbers(left, right) {
            return Ok(Some(order));
        }
        let items = match (left, right) {
            (Value::Text(left) | Value::Markup(left), Value::Text(right) | Value::Markup(right)) => {
                return Ok(Some(left.cmp(right)));
            }
            (Value::List(left), Value::List(right)) => {
                (left.items.borrow().clone(), right.items.borrow().clone())
            }
            (Value::Tuple(left), Value::Tuple(right)) => (left.items.clone(), right.items.clone()),
            (Value::View(..), Value::View(..)) => return refused("comparing views"),
            _ => return failed(format!("a {} and a {} have no order", left.kind(), right.kind())),
        };
        for (left, right) in items.0.iter().zip(&items.1) {
            if !self.equal(left, right)? {
                return self.order(left, right);
            }
        }
        Ok(Some(items.0.len().cmp(&items.1.len())))
    }

    /// `item in container`.
    pub fn contains(&mut self, container: &Value, item: &Value) -> EvalResult<bool> {
        self.ensure_resolved(item)?;
        match container {
            Value::Text(text) | Value::Markup(text) => match item {
                Value::Text(part) | Value::Markup(part) => {
                    self.charge(text.len())?;
                    Ok(text.contains(&**part))
                }
                Value::Undefined(what) if self.is_fatal(what) => self.undefined(what),
                _ => failed(format!("a {} cannot be in a string", item.kind())),
            },
            Value::Dict(dict) | Value::View(dict, View::Keys) => {
                let key = self.key(item)?;
                Ok(dict.items.borrow().get(&key).is_some())
            }
            Value::Undefined(what) if self.is_fatal(what) => self.undefined(what),
            Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Function(_)
            | Value::Method(_)
            | Value::Macro(_)
            | Value::Joiner(_)
            | Value::Cycler(_)
            | Value::Namespace(_) => failed(format!("nothing can be in a {}", container.kind())),
            Value::Loop(_) => refused("membership in a loop"),
            _ => {
                let iter = self.iterator(container)?;
                while let Some(found) = self.next(&iter)? {
                    if self.equal(&found, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The dict key of `value`, if it is hashable.
    pub fn key(&self, value: &Value) -> EvalResult<Key> {
        if let Value::Undefined(what) = value {
            if self.is_fatal(what) {
                return self.undefined(what);
            }
            return refused("an undefined value as a key");
        }
        match Key::of(value) {
            Some(key) => Ok(key),
            None if matches!(value, Value::List(_) | Value::Dict(_)) => {
                failed(format!("a {} cannot be a key", value.kind()))
            }
            None => refused(format!("a {} as a key", value.kind())),
        }
    }
}

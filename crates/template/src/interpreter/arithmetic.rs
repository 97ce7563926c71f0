//! Python's arithmetic.

use std::rc::Rc;

use super::Interpreter;
use crate::fault::{EvalResult, failed, refused};
use crate::percent_format;
use crate::syntax::Operator;
use crate::value::Value;

/// Both operands, converted to one numeric type.
enum NumberPair {
    Ints(i128, i128),
    Floats(f64, f64),
}

#[expect(clippy::cast_precision_loss, reason = "rounded to the nearest, as in Python")]
pub(crate) fn float_of(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        value => value.as_int().map(|number| number as f64),
    }
}

/// A float; NaN is refused, because it does not equal itself.
pub(crate) fn float(number: f64) -> EvalResult<Value> {
    if number.is_nan() {
        refused("a calculation whose result is not a number")
    } else {
        Ok(Value::Float(number))
    }
}

fn int(number: Option<i128>) -> EvalResult<Value> {
    match number {
        Some(number) => Ok(Value::Int(number)),
        None => refused("a number of more than 128 bits"),
    }
}

fn number_pair(left: &Value, right: &Value) -> Option<NumberPair> {
    if let (Some(left), Some(right)) = (left.as_int(), right.as_int()) {
        return Some(NumberPair::Ints(left, right));
    }
    Some(NumberPair::Floats(float_of(left)?, float_of(right)?))
}

impl Interpreter<'_> {
    pub fn binary(&mut self, operator: Operator, left: &Value, right: &Value) -> EvalResult<Value> {
        if operator == Operator::Modulo
            && let Value::Text(pattern) = left
        {
            self.ensure_resolved(right)?;
            return percent_format::format(self, pattern, right);
        }
        for side in [left, right] {
            match side {
                Value::Undefined(what) => return self.undefined(what),
                Value::Markup(_) => return refused("an operator on text that is marked as safe"),
                _ => {}
            }
        }
        if let Some(numbers) = number_pair(left, right) {
            return match numbers {
                NumberPair::Ints(left, right) => ints(operator, left, right),
                NumberPair::Floats(left, right) => floats(operator, left, right),
            };
        }
        let combined = match operator {
            Operator::Add => self.add(left, right)?,
            Operator::Multiply => match (left.as_int(), right.as_int()) {
                (None, Some(count)) => self.repeat(left, count)?,
                (Some(count), None) => self.repeat(right, count)?,
                _ => None,
            },
            _ if matches!(left, Value::View(..)) || matches!(right, Value::View(..)) => {
                return refused("an operator on a view of a dict");
            }
            _ => None,
        };
        match combined {
            Some(value) => Ok(value),
            None => failed(format!("an operator does not take a {} and a {}", left.kind(), right.kind())),
        }
    }

    fn add(&mut self, left: &Value, right: &Value) -> EvalResult<Option<Value>> {
        Ok(Some(match (left, right) {
            (Value::Text(left), Value::Text(right)) => {
                self.charge(left.len() + right.len())?;
                Value::text([&**left, &**right].concat())
            }
            (Value::List(left), Value::List(right)) => {
                let items = left.items.borrow().iter().chain(right.items.borrow().iter()).cloned().collect();
                self.list(items)?
            }
            (Value::Tuple(left), Value::Tuple(right)) => {
                self.tuple(left.items.iter().chain(&right.items).cloned().collect())?
            }
            _ => return Ok(None),
        }))
    }

    fn repeat(&mut self, value: &Value, count: i128) -> EvalResult<Option<Value>> {
        let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
        let items = match value {
            Value::Text(text) => {
                self.charge(text.len().saturating_mul(count))?;
                return Ok(Some(Value::text(text.repeat(count))));
            }
            Value::List(list) => list.items.borrow().clone(),
            Value::Tuple(tuple) => tuple.items.clone(),
            _ => return Ok(None),
        };
        self.charge(items.len().saturating_mul(count).saturating_mul(8))?;
        let repeated = std::iter::repeat_n(items, count).flatten().collect();
        Ok(Some(match value {
            Value::List(_) => self.list(repeated)?,
            _ => self.tuple(repeated)?,
        }))
    }

    pub fn negative(&mut self, value: &Value) -> EvalResult<Value> {
        match value {
            Value::Undefined(what) => self.undefined(what),
            Value::Float(number) => Ok(Value::Float(-number)),
            value => match value.as_int() {
                Some(number) => int(number.checked_neg()),
                None => failed(format!("a {} cannot be negated", value.kind())),
            },
        }
    }

    pub fn positive(&mut self, value: &Value) -> EvalResult<Value> {
        match value {
            Value::Undefined(what) => self.undefined(what),
            Value::Float(number) => Ok(Value::Float(*number)),
            value => match value.as_int() {
                Some(number) => Ok(Value::Int(number)),
                None => failed(format!("`+` does not take a {}", value.kind())),
            },
        }
    }

    /// `left ~ right ~ …`
    pub fn concat(&mut self, parts: &[Value]) -> EvalResult<Value> {
        let mut out = String::new();
        for part in parts {
            if self.ensure_resolved(part).is_err() {
                return Ok(part.clone());
            }
            self.write_text(part, &mut out)?;
        }
        Ok(Value::Text(Rc::from(out)))
    }
}

fn ints(operator: Operator, left: i128, right: i128) -> EvalResult<Value> {
    match operator {
        Operator::Add => int(left.checked_add(right)),
        Operator::Subtract => int(left.checked_sub(right)),
        Operator::Multiply => int(left.checked_mul(right)),
        Operator::Divide | Operator::FloorDivide | Operator::Modulo if right == 0 => {
            failed("division by zero")
        }
        Operator::Divide => {
            const EXACT: u128 = 1 << 53;
            if left.unsigned_abs() > EXACT || right.unsigned_abs() > EXACT {
                return refused("dividing numbers of more than 53 bits");
            }
            #[expect(clippy::cast_precision_loss, reason = "at most 53 bits")]
            float(left as f64 / right as f64)
        }
        Operator::FloorDivide => int(floor(left, right)),
        Operator::Modulo => int(floor(left, right).map(|quotient| left - quotient * right)),
        Operator::Power => power(left, right),
    }
}

fn floor(left: i128, right: i128) -> Option<i128> {
    let quotient = left.checked_div(right)?;
    let inexact = left % right != 0;
    Some(if inexact && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
}

fn power(base: i128, exponent: i128) -> EvalResult<Value> {
    if exponent < 0 {
        #[expect(clippy::cast_precision_loss, reason = "rounded to the nearest, as in Python")]
        return floats(Operator::Power, base as f64, exponent as f64);
    }
    match (base, u32::try_from(exponent)) {
        (0 | 1, _) => Ok(Value::Int(if exponent == 0 { 1 } else { base })),
        (-1, _) => Ok(Value::Int(if exponent % 2 == 0 { 1 } else { -1 })),
        (_, Ok(exponent)) => int(base.checked_pow(exponent)),
        (_, Err(_)) => int(None),
    }
}

fn floats(operator: Operator, left: f64, right: f64) -> EvalResult<Value> {
    match operator {
        Operator::Add => float(left + right),
        Operator::Subtract => float(left - right),
        Operator::Multiply => float(left * right),
        Operator::Divide | Operator::FloorDivide | Operator::Modulo if right == 0.0 => {
            failed("division by zero")
        }
        Operator::Divide => float(left / right),
        Operator::FloorDivide => float(floor_and_rest(left, right).0),
        Operator::Modulo => float(floor_and_rest(left, right).1),
        Operator::Power => {
            if left == 0.0 && right < 0.0 {
                return failed("zero to a negative power");
            }
            if left < 0.0 && right.fract() != 0.0 {
                return refused("a root of a negative number");
            }
            let result = left.powf(right);
            if result.is_infinite() && left.is_finite() && right.is_finite() {
                return failed("the result of `**` is too large");
            }
            float(result)
        }
    }
}

/// Python's `divmod` of floats.
fn floor_and_rest(left: f64, right: f64) -> (f64, f64) {
    let mut rest = left % right;
    let mut quotient = (left - rest) / right;
    if rest == 0.0 {
        rest = 0.0_f64.copysign(right);
    } else if (right < 0.0) != (rest < 0.0) {
        rest += right;
        quotient -= 1.0;
    }
    let whole = if quotient == 0.0 {
        0.0_f64.copysign(left / right)
    } else {
        let below = quotient.floor();
        if quotient - below > 0.5 { below + 1.0 } else { below }
    };
    (whole, rest)
}

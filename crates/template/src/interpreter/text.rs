//! Python's `str`, `repr`, `bool` and `len`.

use super::Interpreter;
use crate::fault::{EvalResult, failed, refused};
use crate::value::{Value, View, repr};

impl Interpreter<'_> {
    /// `str(value)`.
    pub fn text(&mut self, value: &Value) -> EvalResult<String> {
        let mut out = String::new();
        self.write_text(value, &mut out)?;
        Ok(out)
    }

    /// Appends `str(value)`.
    pub fn write_text(&mut self, value: &Value, out: &mut String) -> EvalResult<()> {
        match value {
            Value::Text(text) | Value::Markup(text) => {
                self.charge(text.len())?;
                out.push_str(text);
            }
            Value::Undefined(what) => {
                if self.is_fatal(what) {
                    return self.undefined(what);
                }
            }
            value => self.repr(value, out)?,
        }
        self.limit(out)
    }

    fn limit(&mut self, out: &str) -> EvalResult<()> {
        if out.len() > self.limits.output { self.charge(out.len()) } else { Ok(()) }
    }

    /// Appends `repr(value)`.
    pub fn repr(&mut self, value: &Value, out: &mut String) -> EvalResult<()> {
        self.step(1)?;
        match value {
            Value::Undefined(_) => {
                self.ensure_resolved(value)?;
                out.push_str("Undefined");
            }
            Value::None => out.push_str("None"),
            Value::Bool(true) => out.push_str("True"),
            Value::Bool(false) => out.push_str("False"),
            Value::Int(number) => out.push_str(&number.to_string()),
            Value::Float(number) => out.push_str(&repr::float(*number)),
            Value::Text(text) => {
                self.charge(text.len())?;
                repr::quoted(text, out)?;
            }
            Value::List(list) => {
                let items = list.items.borrow().clone();
                self.sequence(&items, "[", "]", out)?;
            }
            Value::Tuple(tuple) => {
                self.sequence(&tuple.items, "(", if tuple.items.len() == 1 { ",)" } else { ")" }, out)?;
            }
            Value::Dict(dict) => {
                let entries = dict.items.borrow().entries().to_vec();
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    self.repr(key, out)?;
                    out.push_str(": ");
                    self.repr(value, out)?;
                }
                out.push('}');
            }
            Value::View(dict, view) => {
                let name = match view {
                    View::Keys => "dict_keys([",
                    View::Values => "dict_values([",
                    View::Items => "dict_items([",
                };
                let items = self.view(dict, *view)?;
                self.sequence(&items, name, "])", out)?;
            }
            Value::Range(range) => {
                out.push_str(&format!("range({}, {}", range.start, range.stop));
                if range.step != 1 {
                    out.push_str(&format!(", {}", range.step));
                }
                out.push(')');
            }
            Value::Macro(makro) if makro.syntax.is_anonymous => out.push_str("<Macro anonymous>"),
            Value::Macro(makro) => {
                out.push_str("<Macro ");
                repr::quoted(&makro.syntax.name, out)?;
                out.push('>');
            }
            Value::Markup(_)
            | Value::Iter(_)
            | Value::Namespace(_)
            | Value::Function(_)
            | Value::Method(_)
            | Value::Loop(_)
            | Value::Cycler(_)
            | Value::Joiner(_) => return refused(format!("printing a {}", value.kind())),
        }
        self.limit(out)
    }

    fn sequence(&mut self, items: &[Value], open: &str, close: &str, out: &mut String) -> EvalResult<()> {
        out.push_str(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            self.repr(item, out)?;
        }
        out.push_str(close);
        Ok(())
    }

    /// Python's `bool(value)`.
    pub fn is_truthy(&self, value: &Value) -> EvalResult<bool> {
        Ok(match value {
            Value::Undefined(what) => {
                if self.is_fatal(what) {
                    return self.undefined(what);
                }
                false
            }
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) | Value::Markup(text) => !text.is_empty(),
            Value::List(list) => !list.items.borrow().is_empty(),
            Value::Tuple(tuple) => !tuple.items.is_empty(),
            Value::Dict(dict) | Value::View(dict, _) => dict.items.borrow().len() > 0,
            Value::Range(range) => range.len() > 0,
            Value::Loop(_) => return refused("a loop as a condition"),
            Value::Iter(_)
            | Value::Namespace(_)
            | Value::Function(_)
            | Value::Method(_)
            | Value::Macro(_)
            | Value::Cycler(_)
            | Value::Joiner(_) => true,
        })
    }

    /// `len(value)`.
    pub fn length(&self, value: &Value) -> EvalResult<usize> {
        Ok(match value {
            Value::Undefined(what) => {
                if self.is_fatal(what) {
                    return self.undefined(what);
                }
                0
            }
            Value::Text(text) | Value::Markup(text) => text.chars().count(),
            Value::List(list) => list.items.borrow().len(),
            Value::Tuple(tuple) => tuple.items.len(),
            Value::Dict(dict) | Value::View(dict, _) => dict.items.borrow().len(),
            Value::Range(range) => usize::try_from(range.len()).unwrap_or(usize::MAX),
            Value::Loop(_) => return refused("the length of a loop, other than `loop.length`"),
            _ => return failed(format!("a {} has no length", value.kind())),
        })
    }
}

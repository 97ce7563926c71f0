//! Attributes, items and slices, as in Jinja2's sandbox.

use std::cell::Cell;
use std::rc::Rc;

use super::Interpreter;
use crate::fault::{EvalResult, failed, refused};
use crate::methods;
use crate::value::{Key, Method, Value};

impl Interpreter<'_> {
    /// `of.name`: an attribute first, then an item.
    pub fn attribute(&mut self, of: &Value, name: &Rc<str>) -> EvalResult<Value> {
        if let Some(found) = self.own_attribute(of, name)? {
            return Ok(found);
        }
        if let Some(found) = self.subscript(of, &Value::Text(Rc::clone(name)))? {
            return Ok(found);
        }
        Ok(Value::Undefined(format!("a {} has no attribute `{name}`", of.kind()).into()))
    }

    /// `of[index]`: an item first, then an attribute.
    pub fn item(&mut self, of: &Value, index: &Value) -> EvalResult<Value> {
        self.step(1)?;
        self.ensure_resolved(index)?;
        if let Some(found) = self.subscript(of, index)? {
            return Ok(found);
        }
        if let Value::Text(name) = index
            && let Some(found) = self.own_attribute(of, name)?
        {
            return Ok(found);
        }
        let what = match index {
            Value::Text(name) => format!("a {} has no attribute `{name}`", of.kind()),
            Value::Int(number) => format!("a {} has no element {number}", of.kind()),
            other => format!("a {} has no element that is a {}", of.kind(), other.kind()),
        };
        Ok(Value::Undefined(what.into()))
    }

    /// `of|attr(name)`: an attribute, never an item.
    pub fn attribute_only(&mut self, of: &Value, name: &Rc<str>) -> EvalResult<Value> {
        let found = self.own_attribute(of, name)?;
        Ok(found
            .unwrap_or_else(|| Value::Undefined(format!("a {} has no attribute `{name}`", of.kind()).into())))
    }

    /// Python's `getattr`; `None` if there is no such attribute.
    fn own_attribute(&mut self, of: &Value, name: &Rc<str>) -> EvalResult<Option<Value>> {
        if name.starts_with("__") && name.ends_with("__") && !matches!(of, Value::Dict(_)) {
            return refused(format!("the attribute `{name}`"));
        }
        Ok(match of {
            Value::Undefined(what) => return self.undefined(what),
            Value::Loop(of) => return self.loop_attribute(of, name),
            Value::Namespace(space) => match space.items.borrow().get_text(name) {
                Some(value) => Some(value.clone()),
                None => return Ok(None),
            },
            Value::Tuple(tuple) if tuple.is_group && matches!(&**name, "grouper" | "list") => {
                tuple.items.get(usize::from(&**name == "list")).cloned()
            }
            Value::Cycler(cycler) if &**name == "current" => Some(cycler.items[cycler.at.get()].clone()),
            Value::Macro(makro) if &**name == "name" => Some(if makro.syntax.is_anonymous {
                Value::None
            } else {
                Value::Text(Rc::clone(&makro.syntax.name))
            }),
            Value::Macro(_) | Value::Function(_) | Value::Method(_) | Value::Iter(_) | Value::Joiner(_) => {
                return refused(format!("the attribute `{name}` of a {}", of.kind()));
            }
            of => match methods::find_attribute(of, name) {
                methods::AttributeLookup::Method => {
                    let method = Method { level: Cell::new(0), of: of.clone(), name: Rc::clone(name) };
                    Some(Value::Method(Rc::new(method)))
                }
                methods::AttributeLookup::Refused => {
                    return refused(format!("the attribute `{name}` of a {}", of.kind()));
                }
                methods::AttributeLookup::Missing => None,
            },
        })
    }

    fn loop_attribute(
        &mut self,
        of: &Rc<crate::iterators::TemplateLoop>,
        name: &Rc<str>,
    ) -> EvalResult<Option<Value>> {
        let index = of.index.get();
        Ok(Some(match &**name {
            "index" => Value::int(index),
            "index0" => Value::int(index - 1),
            "first" => Value::Bool(index == 1),
            "last" => Value::Bool(self.peek(of)?.is_none()),
            "length" => Value::int(self.loop_length(of)?),
            "revindex" => Value::Int(signed(self.loop_length(of)?) - signed(index) + 1),
            "revindex0" => Value::Int(signed(self.loop_length(of)?) - signed(index)),
            "depth" => Value::int(of.depth + 1),
            "depth0" => Value::int(of.depth),
            "previtem" => match of.before.borrow().clone() {
                Some(item) => item,
                None => Value::Undefined("the first item has no previous item".into()),
            },
            "nextitem" => match self.peek(of)? {
                Some(item) => item,
                None => Value::Undefined("the last item has no next item".into()),
            },
            "cycle" | "changed" => {
                let method =
                    Method { level: Cell::new(0), of: Value::Loop(Rc::clone(of)), name: Rc::clone(name) };
                Value::Method(Rc::new(method))
            }
            _ => return Ok(None),
        }))
    }

    /// Python's `of[index]`; `None` where it raises.
    fn subscript(&mut self, of: &Value, index: &Value) -> EvalResult<Option<Value>> {
        match of {
            Value::Undefined(what) => self.undefined(what),
            Value::Dict(dict) => {
                if let Value::Undefined(what) = index {
                    return self.undefined(what);
                }
                let Some(key) = Key::of(index) else { return Ok(None) };
                Ok(dict.items.borrow().get(&key).cloned())
            }
            Value::List(list) => {
                Ok(resolve_index(index, list.items.borrow().len()).map(|at| list.items.borrow()[at].clone()))
            }
            Value::Tuple(tuple) => {
                Ok(resolve_index(index, tuple.items.len()).map(|at| tuple.items[at].clone()))
            }
            Value::Text(text) => {
                if index.as_int().is_none() {
                    return Ok(None);
                }
                self.charge(text.len())?;
                let length = text.chars().count();
                Ok(resolve_index(index, length)
                    .and_then(|at| text.chars().nth(at))
                    .map(|found| Value::text(found.to_string())))
            }
            Value::Range(range) => {
                let length = usize::try_from(range.len()).unwrap_or(usize::MAX);
                Ok(resolve_index(index, length).map(|at| Value::Int(range.start + range.step * signed(at))))
            }
            Value::Markup(_) => refused("an item of text that is marked as safe"),
            _ => Ok(None),
        }
    }

    /// `of[start:stop:step]`.
    pub fn slice(&mut self, of: &Value, bounds: [Option<i128>; 3]) -> EvalResult<Value> {
        if let Value::Undefined(what) = of {
            return self.undefined(what);
        }
        if bounds[2] == Some(0) {
            return failed("a slice with a step of zero");
        }
        match of {
            Value::Text(text) => {
                self.charge(text.len())?;
                let characters: Vec<char> = text.chars().collect();
                let sliced: String =
                    slice_indices(bounds, characters.len()).into_iter().map(|at| characters[at]).collect();
                Ok(Value::text(sliced))
            }
            Value::List(list) => {
                let items = list.items.borrow().clone();
                self.list(
                    slice_indices(bounds, items.len()).into_iter().map(|at| items[at].clone()).collect(),
                )
            }
            Value::Tuple(tuple) => {
                let places = slice_indices(bounds, tuple.items.len());
                self.tuple(places.into_iter().map(|at| tuple.items[at].clone()).collect())
            }
            Value::Range(_) => refused("a slice of a range"),
            Value::Markup(_) => refused("a slice of text that is marked as safe"),
            _ => failed(format!("a {} has no slices", of.kind())),
        }
    }
}

fn signed(number: usize) -> i128 {
    i128::try_from(number).unwrap_or(i128::MAX)
}

/// Resolves an index in a sequence of this length; a negative index counts from the end.
fn resolve_index(index: &Value, length: usize) -> Option<usize> {
    let index = index.as_int()?;
    let index = if index < 0 { index.checked_add(signed(length))? } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}

/// The indices that a slice selects, in its order.
pub(crate) fn slice_indices([start, stop, step]: [Option<i128>; 3], length: usize) -> Vec<usize> {
    let (length, step) = (signed(length), step.unwrap_or(1));
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |bound: Option<i128>, default: i128| match bound {
        None => default,
        Some(bound) if bound < 0 => bound.saturating_add(length).clamp(lowest, highest),
        Some(bound) => bound.clamp(lowest, highest),
    };
    let (mut at, stop) = if step > 0 {
        (bound(start, 0), bound(stop, length))
    } else {
        (bound(start, length - 1), bound(stop, -1))
    };
    let mut places = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        places.extend(usize::try_from(at));
        at = at.saturating_add(step);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::slice_indices;

    #[test]
    fn slices_select_the_same_indices_as_in_python() {
        let check = |bounds: [Option<i128>; 3], expect: &[usize]| {
            assert_eq!(slice_indices(bounds, 5), expect, "{bounds:?}");
        };
        check([None, None, None], &[0, 1, 2, 3, 4]);
        check([Some(-2), None, None], &[3, 4]);
        check([None, None, Some(-1)], &[4, 3, 2, 1, 0]);
        check([Some(3), Some(0), Some(-1)], &[3, 2, 1]);
        check([Some(9), None, Some(-2)], &[4, 2, 0]);
        check([Some(1), Some(-9), None], &[]);
    }
}

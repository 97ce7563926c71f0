//! Creates lists, tuples and dicts, and enforces that no container contains itself or is nested too deeply.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Interpreter;
use crate::fault::{EvalError, EvalResult, Kind, refused};
use crate::iterators::{Iter, IterState};
use crate::value::{Dict, Key, List, Mapping, Tuple, Value};

/// Maximum nesting depth of containers.
const MAX_NESTING: usize = 60;

impl Interpreter<'_> {
    pub fn list(&mut self, items: Vec<Value>) -> EvalResult<Value> {
        self.record_all(&items)?;
        Ok(Value::List(Rc::new(List { level: Cell::new(0), items: RefCell::new(items) })))
    }

    pub fn tuple(&mut self, items: Vec<Value>) -> EvalResult<Value> {
        self.record_all(&items)?;
        Ok(Value::Tuple(Rc::new(Tuple { level: Cell::new(0), items, is_group: false })))
    }

    pub fn group(&mut self, key: Value, items: Vec<Value>) -> EvalResult<Value> {
        let items = vec![key, self.list(items)?];
        self.record_all(&items)?;
        Ok(Value::Tuple(Rc::new(Tuple { level: Cell::new(0), items, is_group: true })))
    }

    pub fn dict(&mut self, dict: Dict) -> EvalResult<Value> {
        Ok(Value::Dict(self.mapping(dict)?))
    }

    pub fn mapping(&mut self, dict: Dict) -> EvalResult<Rc<Mapping>> {
        self.step(1 + dict.len() as u64)?;
        for (key, value) in dict.entries() {
            self.record_nesting(key, 1)?;
            self.record_nesting(value, 1)?;
        }
        Ok(Rc::new(Mapping { level: Cell::new(0), items: RefCell::new(dict) }))
    }

    /// Inserts a value into a dict. If the dict then contains itself, it is cleared, because otherwise its
    /// memory would never be freed.
    pub fn insert_entry(&mut self, into: &Mapping, key: Key, name: &Value, value: &Value) -> EvalResult<()> {
        self.step(1)?;
        into.items.borrow_mut().insert(key, name.clone(), value.clone());
        let level = into.level.get() + 1;
        let adopted = self.record_nesting(name, level).and_then(|()| self.record_nesting(value, level));
        if adopted.is_err() {
            into.items.borrow_mut().clear();
        }
        adopted
    }

    pub fn iter_of(&mut self, state: IterState) -> EvalResult<Rc<Iter>> {
        self.step(1)?;
        let iter = Rc::new(Iter { level: Cell::new(0), state: RefCell::new(state) });
        for child in iter.state.borrow().children() {
            self.record_nesting(&child, 1)?;
        }
        Ok(iter)
    }

    pub fn record_all(&mut self, items: &[Value]) -> EvalResult<()> {
        self.step(1 + items.len() as u64)?;
        items.iter().try_for_each(|item| self.record_nesting(item, 1))
    }

    /// Records that `value` was put into a container at nesting depth `level`, and updates all values within
    /// it. A container that contains itself nests ever deeper, and therefore exceeds the limit.
    pub fn record_nesting(&mut self, value: &Value, level: usize) -> EvalResult<()> {
        let cell = match value {
            Value::List(list) => &list.level,
            Value::Tuple(tuple) => &tuple.level,
            Value::Dict(dict) | Value::View(dict, _) | Value::Namespace(dict) => &dict.level,
            Value::Iter(iter) => &iter.level,
            Value::Method(method) => &method.level,
            Value::Cycler(cycler) => &cycler.level,
            Value::Loop(_) => return refused("a loop as an item of a container"),
            Value::Undefined(_)
            | Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Markup(_)
            | Value::Range(_)
            | Value::Function(_)
            | Value::Macro(_)
            | Value::Joiner(_) => return Ok(()),
        };
        if cell.get() >= level {
            return Ok(());
        }
        if level > MAX_NESTING {
            return Err(EvalError::new(
                Kind::Limit,
                format!("containers are nested more than {MAX_NESTING} deep"),
            ));
        }
        cell.set(level);
        let children = children(value);
        self.step(1 + children.len() as u64)?;
        children.iter().try_for_each(|child| self.record_nesting(child, level + 1))
    }
}

fn children(value: &Value) -> Vec<Value> {
    match value {
        Value::List(list) => list.items.borrow().clone(),
        Value::Tuple(tuple) => tuple.items.clone(),
        Value::Dict(dict) | Value::View(dict, _) | Value::Namespace(dict) => dict
            .items
            .borrow()
            .entries()
            .iter()
            .flat_map(|(key, value)| [key.clone(), value.clone()])
            .collect(),
        Value::Iter(iter) => iter.state.borrow().children(),
        Value::Method(method) => vec![method.of.clone()],
        Value::Cycler(cycler) => cycler.items.clone(),
        _ => Vec::new(),
    }
}

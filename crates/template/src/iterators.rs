//! Lazy iterators as in Python, whose items are computed when they are requested; and the state of loops.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use crate::fault::{EvalResult, failed, refused};
use crate::filters;
use crate::interpreter::{Args, Interpreter};
use crate::scope::Scope;
use crate::syntax::{AssignTarget, Expression, ForLoop, Name};
use crate::value::{Key, Mapping, Value, View};

pub(crate) struct Iter {
    pub level: Cell<usize>,
    pub state: RefCell<IterState>,
}

/// The path of an attribute: `a.0.b`.
pub(crate) type Path = Vec<Value>;

pub(crate) enum IterState {
    /// Items of a list or a tuple, read when requested, and the next index.
    Items(Value, usize),
    /// Items that were already computed.
    Buffered(std::vec::IntoIter<Value>),
    /// A range: the next item, the number of items left, and the step.
    Range(i128, i128, i128),
    /// `map(attribute=…)`.
    Attribute { inner: Rc<Iter>, path: Path, default: Option<Value> },
    /// `map('filter', …)`.
    Filtered { inner: Rc<Iter>, name: Name, args: Args },
    /// `select`, `reject`, `selectattr`, `rejectattr`.
    Selected { inner: Rc<Iter>, path: Option<Path>, test: Option<(Name, Args)>, keep: bool },
    /// `unique`.
    Unique { inner: Rc<Iter>, path: Path, case_sensitive: bool, seen: HashSet<Key> },
    /// `batch`.
    Batch { inner: Rc<Iter>, size: i128, fill: Value, done: bool },
    /// `slice`, before the first item is requested.
    Slices { of: Value, count: i128, fill: Value },
    /// `items`, before the first item is requested.
    Pairs(Value),
    /// A value to iterate over, before the first item is requested. For some filters, the iterator is empty
    /// unless the value is true.
    Deferred { of: Value, if_true: bool },
    /// The iterator of a deferred value, after the first item was requested.
    Inner(Rc<Iter>),
    /// `map`, `select` and similar filters, before the first item is requested.
    Prepared { name: Name, of: Value, args: Args },
    /// `for … if …`.
    Condition { inner: Rc<Iter>, loop_: Rc<ForLoop>, scope: Rc<Scope> },
}

impl IterState {
    /// The values that the state of the iterator contains.
    pub fn children(&self) -> Vec<Value> {
        match self {
            IterState::Items(of, _) | IterState::Pairs(of) | IterState::Deferred { of, .. } => {
                vec![of.clone()]
            }
            IterState::Prepared { of, args, .. } => {
                std::iter::once(of.clone()).chain(args.values()).collect()
            }
            IterState::Buffered(items) => items.as_slice().to_vec(),
            IterState::Range(..) => Vec::new(),
            IterState::Attribute { inner, default, .. } => {
                std::iter::once(Value::Iter(Rc::clone(inner))).chain(default.clone()).collect()
            }
            IterState::Filtered { inner, args, .. } => {
                std::iter::once(Value::Iter(Rc::clone(inner))).chain(args.values()).collect()
            }
            IterState::Selected { inner, test, .. } => std::iter::once(Value::Iter(Rc::clone(inner)))
                .chain(test.iter().flat_map(|(_, args)| args.values()))
                .collect(),
            IterState::Unique { inner, .. }
            | IterState::Condition { inner, .. }
            | IterState::Inner(inner) => {
                vec![Value::Iter(Rc::clone(inner))]
            }
            IterState::Batch { inner, fill, .. } => vec![Value::Iter(Rc::clone(inner)), fill.clone()],
            IterState::Slices { of, fill, .. } => vec![of.clone(), fill.clone()],
        }
    }
}

/// The state of a loop: the variable `loop`.
pub(crate) struct TemplateLoop {
    pub iterable: Value,
    pub iter: RefCell<Rc<Iter>>,
    pub index: Cell<usize>,
    pub depth: usize,
    pub after: RefCell<Option<Value>>,
    pub before: RefCell<Option<Value>>,
    pub current: RefCell<Option<Value>>,
    pub length: Cell<Option<usize>>,
    pub changed: RefCell<Option<Vec<Value>>>,
    /// For a recursive loop: its syntax, and the scope in which it is rendered.
    pub recursion: Option<(Rc<ForLoop>, Rc<Scope>)>,
}

impl Interpreter<'_> {
    /// An iterator over the items of a value.
    pub fn iterator(&mut self, value: &Value) -> EvalResult<Rc<Iter>> {
        let state = match value {
            Value::Undefined(what) => {
                if self.is_fatal(what) {
                    return self.undefined(what);
                }
                IterState::Buffered(Vec::new().into_iter())
            }
            Value::Iter(iter) => return Ok(Rc::clone(iter)),
            Value::List(_) | Value::Tuple(_) => IterState::Items(value.clone(), 0),
            Value::Text(text) | Value::Markup(text) => {
                self.charge(text.len().saturating_mul(4))?;
                let characters: Vec<Value> =
                    text.chars().map(|character| Value::text(character.to_string())).collect();
                IterState::Buffered(characters.into_iter())
            }
            Value::Dict(dict) => IterState::Buffered(self.view(dict, View::Keys)?.into_iter()),
            Value::View(dict, view) => IterState::Buffered(self.view(dict, *view)?.into_iter()),
            Value::Range(range) => IterState::Range(range.start, range.len(), range.step),
            Value::Loop(_) => return refused("looping over a loop"),
            Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Namespace(_)
            | Value::Function(_)
            | Value::Method(_)
            | Value::Macro(_)
            | Value::Cycler(_)
            | Value::Joiner(_) => return failed(format!("a {} cannot be looped over", value.kind())),
        };
        self.iter_of(state)
    }

    /// The current items of a view of a dict.
    pub fn view(&mut self, dict: &Rc<Mapping>, view: View) -> EvalResult<Vec<Value>> {
        let entries = dict.items.borrow().entries().to_vec();
        self.step(entries.len() as u64)?;
        Ok(match view {
            View::Keys => entries.into_iter().map(|(key, _)| key).collect(),
            View::Values => entries.into_iter().map(|(_, value)| value).collect(),
            View::Items => entries
                .into_iter()
                .map(|(key, value)| self.tuple(vec![key, value]))
                .collect::<EvalResult<_>>()?,
        })
    }

    /// The next item.
    pub fn next(&mut self, iter: &Rc<Iter>) -> EvalResult<Option<Value>> {
        self.step(1)?;
        let Ok(mut state) = iter.state.try_borrow_mut() else {
            return failed("a generator is already running");
        };
        match &mut *state {
            IterState::Items(source, at) => {
                let item = match source {
                    Value::List(list) => list.items.borrow().get(*at).cloned(),
                    Value::Tuple(tuple) => tuple.items.get(*at).cloned(),
                    _ => None,
                };
                *at += 1;
                Ok(item)
            }
            IterState::Buffered(items) => Ok(items.next()),
            IterState::Range(next, left, step) => {
                if *left <= 0 {
                    return Ok(None);
                }
                let item = *next;
                *left -= 1;
                *next = next.saturating_add(*step);
                Ok(Some(Value::Int(item)))
            }
            IterState::Slices { of, count, fill } => {
                let slices = filters::slices(self, of, *count, fill)?;
                let mut slices = slices.into_iter();
                let first = slices.next();
                *state = IterState::Buffered(slices);
                Ok(first)
            }
            IterState::Pairs(of) => {
                let pairs = match of {
                    Value::Dict(dict) => self.view(dict, View::Items)?,
                    Value::Undefined(_) => Vec::new(),
                    _ => return failed("`items` takes a dict"),
                };
                let mut pairs = pairs.into_iter();
                let first = pairs.next();
                *state = IterState::Buffered(pairs);
                Ok(first)
            }
            IterState::Inner(inner) => self.deeper(|run| run.next(inner)),
            IterState::Deferred { of, if_true } => {
                let inner = if *if_true && !self.is_truthy(of)? {
                    self.iter_of(IterState::Buffered(Vec::new().into_iter()))?
                } else {
                    self.iterator(of)?
                };
                let first = self.deeper(|run| run.next(&inner));
                *state = IterState::Inner(inner);
                first
            }
            IterState::Prepared { name, of, args } => {
                if !self.is_truthy(of)? {
                    *state = IterState::Buffered(Vec::new().into_iter());
                    return Ok(None);
                }
                let prepared = filters::prepare(self, name, of, args.clone())?;
                *state = prepared;
                drop(state);
                self.next(iter)
            }
            other => self.next_filtered(other),
        }
    }

    /// The next item of an iterator that wraps another one.
    fn next_filtered(&mut self, state: &mut IterState) -> EvalResult<Option<Value>> {
        match state {
            IterState::Attribute { inner, path, default } => {
                let Some(item) = self.deeper(|run| run.next(inner))? else { return Ok(None) };
                self.follow(item, path, default.as_ref()).map(Some)
            }
            IterState::Filtered { inner, name, args } => {
                let Some(item) = self.deeper(|run| run.next(inner))? else { return Ok(None) };
                let args = args.clone();
                self.deeper(|run| filters::apply(run, name, item, args)).map(Some)
            }
            IterState::Selected { inner, path, test, keep } => loop {
                let Some(item) = self.deeper(|run| run.next(inner))? else { return Ok(None) };
                let looked_at = match path {
                    Some(path) => self.follow(item.clone(), path, None)?,
                    None => item.clone(),
                };
                let chosen = match test {
                    Some((name, args)) => {
                        let args = args.clone();
                        let result =
                            self.deeper(|run| crate::jinja_tests::apply(run, name, &looked_at, args))?;
                        self.is_truthy(&result)?
                    }
                    None => self.is_truthy(&looked_at)?,
                };
                if chosen == *keep {
                    return Ok(Some(item));
                }
            },
            IterState::Unique { inner, path, case_sensitive, seen } => loop {
                let Some(item) = self.deeper(|run| run.next(inner))? else { return Ok(None) };
                let found = self.follow(item.clone(), path, None)?;
                let found = if *case_sensitive { found } else { filters::ignore_case(found) };
                if seen.insert(self.key(&found)?) {
                    return Ok(Some(item));
                }
            },
            IterState::Batch { inner, size, fill, done } => {
                let mut batch = Vec::new();
                while !*done && i128::try_from(batch.len()).unwrap_or(i128::MAX) != *size {
                    match self.deeper(|run| run.next(inner))? {
                        Some(item) => batch.push(item),
                        None => *done = true,
                    }
                }
                if batch.is_empty() {
                    return if *done { Ok(None) } else { refused("`batch` of less than one") };
                }
                let missing = size.saturating_sub(i128::try_from(batch.len()).unwrap_or(i128::MAX)).max(0);
                if !matches!(fill, Value::None) && missing > 0 {
                    let missing = usize::try_from(missing).unwrap_or(usize::MAX);
                    self.charge(missing.saturating_mul(8))?;
                    batch.extend(std::iter::repeat_n(fill.clone(), missing));
                }
                self.list(batch).map(Some)
            }
            IterState::Condition { inner, loop_, scope } => loop {
                let Some(item) = self.deeper(|run| run.next(inner))? else { return Ok(None) };
                if self.meets_condition(loop_, item.clone(), scope)? {
                    return Ok(Some(item));
                }
            },
            _ => refused("this iterator"),
        }
    }

    /// Whether an item meets the condition of a loop.
    fn meets_condition(&mut self, loop_: &ForLoop, item: Value, scope: &Rc<Scope>) -> EvalResult<bool> {
        let Some(condition): Option<&Expression> = loop_.condition.as_ref() else { return Ok(true) };
        let scope = scope.inner();
        let target: &AssignTarget = &loop_.target;
        self.assign(target, item, &scope)?;
        let value = self.evaluate(condition, &scope)?;
        self.is_truthy(&value)
    }

    /// `list(value)`.
    pub fn collect(&mut self, value: &Value) -> EvalResult<Vec<Value>> {
        let iter = self.iterator(value)?;
        let mut items = Vec::new();
        while let Some(item) = self.next(&iter)? {
            items.push(item);
        }
        Ok(items)
    }

    /// Follows the path of an attribute, as in `map(attribute='a.b')`.
    pub fn follow(&mut self, item: Value, path: &[Value], default: Option<&Value>) -> EvalResult<Value> {
        let mut item = item;
        for part in path {
            item = self.item(&item, part)?;
            if let Some(default) = default
                && item.is_undefined()
            {
                item = default.clone();
            }
        }
        Ok(item)
    }

    /// The item after the current one, read ahead.
    pub fn peek(&mut self, of: &TemplateLoop) -> EvalResult<Option<Value>> {
        if of.after.borrow().is_none() {
            let iter = Rc::clone(&of.iter.borrow());
            let next = self.next(&iter)?;
            *of.after.borrow_mut() = next;
        }
        Ok(of.after.borrow().clone())
    }

    /// Advances to the next item.
    pub fn advance(&mut self, of: &TemplateLoop) -> EvalResult<Option<Value>> {
        let read_ahead = of.after.borrow_mut().take();
        let iter = Rc::clone(&of.iter.borrow());
        let item = if read_ahead.is_some() { read_ahead } else { self.next(&iter)? };
        let Some(item) = item else { return Ok(None) };
        of.index.set(of.index.get() + 1);
        let before = of.current.borrow_mut().replace(item.clone());
        *of.before.borrow_mut() = before;
        Ok(Some(item))
    }

    /// The number of items of a loop; a generator is read to its end.
    pub fn loop_length(&mut self, of: &TemplateLoop) -> EvalResult<usize> {
        if let Some(length) = of.length.get() {
            return Ok(length);
        }
        let length = if matches!(of.iterable, Value::Iter(_)) {
            let iter = Rc::clone(&of.iter.borrow());
            let rest = self.collect(&Value::Iter(iter))?;
            let length = rest.len() + of.index.get() + usize::from(of.after.borrow().is_some());
            let rest = self.iter_of(IterState::Buffered(rest.into_iter()))?;
            *of.iter.borrow_mut() = rest;
            length
        } else {
            self.length(&of.iterable)?
        };
        of.length.set(Some(length));
        Ok(length)
    }
}

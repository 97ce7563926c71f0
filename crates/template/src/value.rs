//! Run-time values of a template: the Python values that templates use.

pub(crate) mod conversion;
pub(crate) mod dict;
pub(crate) mod repr;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

pub(crate) use dict::{Dict, Key};

use crate::iterators::{Iter, TemplateLoop};
use crate::scope::Scope;
use crate::syntax::{Macro as Syntax, Name};

#[derive(Clone)]
pub(crate) enum Value {
    /// Undefined; the string is the error message for its use.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    Int(i128),
    /// Never NaN.
    Float(f64),
    Text(Rc<str>),
    /// A string that is marked as safe HTML: printed like a string, but other operations on it differ.
    Markup(Rc<str>),
    List(Rc<List>),
    Tuple(Rc<Tuple>),
    Dict(Rc<Mapping>),
    /// `keys()`, `values()`, `items()`.
    View(Rc<Mapping>, View),
    Range(Range),
    Iter(Rc<Iter>),
    Namespace(Rc<Mapping>),
    Function(&'static str),
    Method(Rc<Method>),
    Macro(Rc<Macro>),
    Loop(Rc<TemplateLoop>),
    Cycler(Rc<Cycler>),
    Joiner(Rc<Joiner>),
}

/// A list with its nesting depth, which is recorded so that no value is nested too deeply or contains itself.
pub(crate) struct List {
    pub level: Cell<usize>,
    pub items: RefCell<Vec<Value>>,
}

pub(crate) struct Tuple {
    pub level: Cell<usize>,
    pub items: Vec<Value>,
    /// Whether `groupby` created the tuple. If so, its items also have the names `grouper` and `list`.
    pub is_group: bool,
}

pub(crate) struct Mapping {
    pub level: Cell<usize>,
    pub items: RefCell<Dict>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Keys,
    Values,
    Items,
}

#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub start: i128,
    pub stop: i128,
    pub step: i128,
}

impl Range {
    pub fn len(self) -> i128 {
        let span = if self.step > 0 { self.stop - self.start } else { self.start - self.stop };
        if span <= 0 { 0 } else { (span - 1) / self.step.abs() + 1 }
    }
}

/// A method of a value that was not called yet.
pub(crate) struct Method {
    pub level: Cell<usize>,
    pub of: Value,
    pub name: Name,
}

/// A macro, and the scope that defines it. The macro cannot be called after that scope has ended.
pub(crate) struct Macro {
    pub syntax: Rc<Syntax>,
    pub scope: Weak<Scope>,
}

pub(crate) struct Cycler {
    pub level: Cell<usize>,
    pub items: Vec<Value>,
    pub at: Cell<usize>,
}

pub(crate) struct Joiner {
    pub separator: Rc<str>,
    pub used: Cell<bool>,
}

impl Value {
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Value::Text(text.into())
    }

    pub fn int(number: usize) -> Self {
        Value::Int(i128::try_from(number).unwrap_or(i128::MAX))
    }

    /// The name of the value's Python type.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "undefined",
            Value::None => "none",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) | Value::Markup(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::View(..) => "view of a dict",
            Value::Range(_) => "range",
            Value::Iter(_) => "generator",
            Value::Namespace(_) => "namespace",
            Value::Function(_) | Value::Method(_) => "function",
            Value::Macro(_) => "macro",
            Value::Loop(_) => "loop",
            Value::Cycler(_) => "cycler",
            Value::Joiner(_) => "joiner",
        }
    }

    /// The value as an integer, if it is an integer or a boolean; `true` is 1.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }
}

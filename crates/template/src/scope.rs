//! Scopes of names. Scopes are nested. A name that no scope defines is looked up among the variables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::syntax::Name;
use crate::value::Value;

pub(crate) struct Scope {
    names: RefCell<HashMap<Name, Value>>,
    parent: Option<Rc<Scope>>,
    /// Whether this scope is the body of a macro or of a `call`.
    pub is_closure: bool,
}

impl Scope {
    pub fn root() -> Rc<Self> {
        Rc::new(Self { names: RefCell::default(), parent: None, is_closure: false })
    }

    pub fn inner(self: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { names: RefCell::default(), parent: Some(Rc::clone(self)), is_closure: false })
    }

    pub fn closure(self: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { names: RefCell::default(), parent: Some(Rc::clone(self)), is_closure: true })
    }

    pub fn set(&self, name: &Name, value: Value) {
        self.names.borrow_mut().insert(Rc::clone(name), value);
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(value) = here.names.borrow().get(name) {
                return Some(value.clone());
            }
            scope = here.parent.as_deref();
        }
        None
    }

    /// Whether this scope is within the body of a macro or of a `call`.
    pub fn is_in_closure(&self) -> bool {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if here.is_closure {
                return true;
            }
            scope = here.parent.as_deref();
        }
        false
    }
}

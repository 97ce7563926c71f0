//! Calls of functions, methods, macros and loops.

use std::rc::Rc;

use super::Interpreter;
use super::execution::LoopItems;
use crate::fault::{EvalResult, failed, refused};
use crate::iterators::TemplateLoop;
use crate::syntax::Name;
use crate::value::{Dict, Macro, Value};
use crate::{functions, methods};

/// The arguments of a call.
#[derive(Clone, Default)]
pub(crate) struct Args {
    pub positional: Vec<Value>,
    pub named: Vec<(Name, Value)>,
}

impl Args {
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value)).cloned()
    }

    /// Binds the arguments to parameters; the first `required` parameters must be given.
    pub fn bind<const N: usize>(
        self,
        of: &str,
        names: [&str; N],
        required: usize,
    ) -> EvalResult<[Option<Value>; N]> {
        let mut bound = [const { None }; N];
        if self.positional.len() > N {
            return failed(format!("`{of}` takes at most {N} arguments, not {}", self.positional.len()));
        }
        for (place, value) in bound.iter_mut().zip(self.positional) {
            *place = Some(value);
        }
        for (name, value) in self.named {
            let Some(index) = names.iter().position(|known| *known == &*name) else {
                return failed(format!("`{of}` takes no argument `{name}`"));
            };
            if bound[index].replace(value).is_some() {
                return failed(format!("`{of}` gets the argument `{name}` twice"));
            }
        }
        match bound.iter().take(required).position(Option::is_none) {
            Some(missing) => failed(format!("`{of}` needs the argument `{}`", names[missing])),
            None => Ok(bound),
        }
    }
}

impl Interpreter<'_> {
    pub fn call(&mut self, callee: &Value, args: Args) -> EvalResult<Value> {
        self.step(1)?;
        match callee {
            Value::Undefined(what) => self.undefined(what),
            Value::Function(name) => {
                for value in args.values() {
                    self.ensure_resolved(&value)?;
                }
                functions::call(self, name, args)
            }
            Value::Method(method) => match &method.of {
                Value::Loop(of) => self.loop_method(of, &method.name, args),
                of => methods::call(self, of, &method.name, args),
            },
            Value::Macro(makro) => self.deeper(|run| run.call_macro(makro, args)),
            Value::Loop(of) => self.deeper(|run| run.call_loop(of, args)),
            Value::Joiner(joiner) => {
                let [] = args.bind("joiner", [], 0)?;
                Ok(Value::text(if joiner.used.replace(true) { &*joiner.separator } else { "" }))
            }
            other => failed(format!("a {} cannot be called", other.kind())),
        }
    }

    fn loop_method(&mut self, of: &TemplateLoop, name: &str, args: Args) -> EvalResult<Value> {
        if !args.named.is_empty() {
            return failed(format!("`loop.{name}` takes no named arguments"));
        }
        if name == "changed" {
            let last = of.changed.borrow().clone();
            let same = match last {
                Some(last) => {
                    let last = self.tuple(last)?;
                    let now = self.tuple(args.positional.clone())?;
                    self.equal(&last, &now)?
                }
                None => false,
            };
            if !same {
                *of.changed.borrow_mut() = Some(args.positional);
            }
            return Ok(Value::Bool(!same));
        }
        match args.positional.len() {
            0 => failed("`loop.cycle` needs an argument"),
            count => Ok(args.positional[(of.index.get() - 1) % count].clone()),
        }
    }

    /// `loop(…)`: renders the body of a recursive loop for other items.
    fn call_loop(&mut self, of: &TemplateLoop, args: Args) -> EvalResult<Value> {
        let [items] = args.bind("loop", ["iterable"], 1)?;
        let Some((loop_, scope)) = &of.recursion else {
            return failed("only a loop that is marked `recursive` can be called");
        };
        let mut out = String::new();
        let items = items.unwrap_or(Value::None);
        self.run_loop(loop_, LoopItems { items, depth: of.depth + 1 }, scope, &mut out)?;
        Ok(Value::text(out))
    }

    fn call_macro(&mut self, makro: &Macro, args: Args) -> EvalResult<Value> {
        let syntax = Rc::clone(&makro.syntax);
        let name = &syntax.name;
        let Some(outer) = makro.scope.upgrade() else {
            return refused(format!("the macro `{name}` outside of the scope that defines it"));
        };
        let scope = outer.closure();
        let Args { mut positional, mut named } = args;
        let rest = positional.split_off(positional.len().min(syntax.parameters.len()));
        let given = positional.len();
        for ((parameter, _), value) in syntax.parameters.iter().zip(positional) {
            scope.set(parameter, value);
        }
        let mut missing = Vec::new();
        for (parameter, default) in &syntax.parameters[given..] {
            match named.iter().position(|(name, _)| name == parameter) {
                Some(index) => scope.set(parameter, named.remove(index).1),
                None => missing.push((parameter, default)),
            }
        }
        if syntax.uses.caller {
            let caller =
                named.iter().position(|(name, _)| &**name == "caller").map(|index| named.remove(index).1);
            let caller = match caller {
                None | Some(Value::None) => Value::Undefined("the macro has no caller".into()),
                Some(caller) => caller,
            };
            scope.set(&Name::from("caller"), caller);
        }
        self.bind_extra_arguments(&syntax, Args { positional: rest, named }, &scope)?;
        for (parameter, default) in missing {
            let value = match default {
                Some(default) => self.evaluate(default, &scope)?,
                None => Value::Undefined(format!("the parameter `{parameter}` was not given").into()),
            };
            scope.set(parameter, value);
        }
        let mut out = String::new();
        self.statements(&syntax.body, &scope, &mut out)?;
        Ok(Value::text(out))
    }

    /// Binds arguments without a parameter to `varargs` and `kwargs`.
    fn bind_extra_arguments(
        &mut self,
        syntax: &crate::syntax::Macro,
        Args { positional, named }: Args,
        scope: &Rc<crate::scope::Scope>,
    ) -> EvalResult<()> {
        let name = &syntax.name;
        if syntax.uses.kwargs {
            let mut kwargs = Dict::default();
            for (name, value) in named {
                kwargs.insert_text(&name, value);
            }
            let kwargs = self.dict(kwargs)?;
            scope.set(&Name::from("kwargs"), kwargs);
        } else if let Some((extra, _)) = named.first() {
            return failed(format!("the macro `{name}` takes no argument `{extra}`"));
        }
        if syntax.uses.varargs {
            let varargs = self.tuple(positional)?;
            scope.set(&Name::from("varargs"), varargs);
        } else if !positional.is_empty() {
            return failed(format!("the macro `{name}` takes at most {} arguments", syntax.parameters.len()));
        }
        Ok(())
    }
}

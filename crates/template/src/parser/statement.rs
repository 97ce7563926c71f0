//! Parses statements: the Jinja2 tags that refer to no other template, and the two tags of data repos.

use std::rc::Rc;

use super::TemplateParser;
use crate::fault::{EvalError, EvalResult, Kind};
use crate::lexer::Token;
use crate::syntax::{
    AssignTarget, Call, Expression, ExpressionKind as Syntax, ForLoop, Macro, MacroUses, Name, Statement,
};

/// Jinja2 tags that are refused, with the reason.
const REFUSED: [(&str, &str); 6] = [
    ("autoescape", "templates do not render HTML here"),
    ("block", "there are no other templates to extend"),
    ("extends", "there are no other templates to extend"),
    ("from", "there are no other templates to import"),
    ("import", "there are no other templates to import"),
    ("include", "there are no other templates to include"),
];

impl TemplateParser {
    /// Parses statements up to a tag whose name is one of `ends`; that name is then the current token.
    pub(super) fn statements(&mut self, ends: &[&str]) -> EvalResult<Vec<Statement>> {
        let mut body = Vec::new();
        loop {
            match self.token().clone() {
                Token::End if ends.is_empty() => return Ok(body),
                Token::End => {
                    return self.syntax_error(format!(
                        "the template ends before `{{% {} %}}`",
                        ends.join(" %}` or `{% ")
                    ));
                }
                Token::Data(text) => {
                    self.advance();
                    body.push(Statement::Data(text.into()));
                }
                Token::VariableBegin => {
                    self.advance();
                    let value = self.tuple(true, false)?;
                    if *self.token() != Token::VariableEnd {
                        return self.unexpected("the end of the tag");
                    }
                    self.advance();
                    body.push(Statement::Print(value));
                }
                Token::BlockBegin => {
                    self.advance();
                    if matches!(self.token(), Token::Name(name) if ends.contains(&name.as_str())) {
                        return Ok(body);
                    }
                    let statements = self.deeper(Self::statement)?;
                    body.extend(statements);
                    self.expect_block_end()?;
                }
                _ => return self.unexpected("a tag"),
            }
        }
    }

    /// Parses the body of an open tag, up to the name of the closing tag.
    fn body(&mut self, ends: &[&str]) -> EvalResult<Vec<Statement>> {
        self.skip_operator(":");
        self.expect_block_end()?;
        self.statements(ends)
    }

    /// Parses the body of a tag up to and including `end`.
    fn body_to(&mut self, end: &str) -> EvalResult<Vec<Statement>> {
        let body = self.body(&[end])?;
        self.advance();
        Ok(body)
    }

    fn statement(&mut self) -> EvalResult<Vec<Statement>> {
        let Token::Name(name) = self.token().clone() else { return self.unexpected("the name of a tag") };
        let line = self.line();
        self.advance();
        let statement = match name.as_str() {
            "print" => return self.print(),
            "if" => self.branches()?,
            "for" => self.loop_over(line)?,
            "set" => self.set()?,
            "with" => self.with()?,
            "macro" => self.macro_definition()?,
            "call" => self.call_block(line)?,
            "filter" => {
                let filters = self.filters()?;
                Statement::Filter { filters, body: self.body_to("endfilter")? }
            }
            "b64encode" if self.strict => {
                Statement::Base64 { body: self.closure(|parser| parser.body_to("endb64encode"))?.0 }
            }
            "raise_error" if self.strict => Statement::Raise { message: self.expression()?, line },
            name => {
                if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
                    return Err(EvalError::at(
                        Kind::Refused,
                        line,
                        format!("not supported: the tag `{name}`: {why}"),
                    ));
                }
                return Err(EvalError::at(Kind::Syntax, line, format!("unknown tag `{name}`")));
            }
        };
        Ok(vec![statement])
    }

    fn print(&mut self) -> EvalResult<Vec<Statement>> {
        let mut printed = Vec::new();
        while *self.token() != Token::BlockEnd {
            if !printed.is_empty() {
                self.expect_operator(",")?;
            }
            printed.push(Statement::Print(self.expression()?));
        }
        Ok(printed)
    }

    fn branches(&mut self) -> EvalResult<Statement> {
        let missed = self.unknown_callables.len();
        let mut branches = Vec::new();
        loop {
            let condition = self.tuple(false, false)?;
            let body = self.body(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            if self.skip_name("elif") {
                continue;
            }
            let mut otherwise = Vec::new();
            if self.skip_name("else") {
                otherwise = self.body_to("endif")?;
            } else {
                self.advance();
            }
            self.mark_skippable(missed);
            return Ok(Statement::If { branches, otherwise });
        }
    }

    fn loop_over(&mut self, line: usize) -> EvalResult<Statement> {
        let target = self.target(false)?;
        if !self.skip_name("in") {
            return self.unexpected("`in`");
        }
        let iterable = self.tuple(false, false)?;
        let condition = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        let body = self.body(&["endfor", "else"])?;
        let mut otherwise = Vec::new();
        if !self.skip_name("endfor") {
            self.advance();
            otherwise = self.body_to("endfor")?;
        }
        if names_loop(&target) || body_sets_loop(&body) || body_sets_loop(&otherwise) {
            return Err(EvalError::at(Kind::Syntax, line, "cannot assign to `loop` in a loop"));
        }
        Ok(Statement::For(Rc::new(ForLoop { target, iterable, condition, recursive, body, otherwise, line })))
    }

    fn set(&mut self) -> EvalResult<Statement> {
        let target = self.target(true)?;
        self.record_assigned(&target);
        if self.skip_operator("=") {
            let value = self.tuple(true, false)?;
            return Ok(Statement::Set { target, value });
        }
        let filters = if self.skip_operator("|") { self.filters()? } else { Vec::new() };
        Ok(Statement::SetBlock { target, filters, body: self.body_to("endset")? })
    }

    fn record_assigned(&mut self, target: &AssignTarget) {
        match target {
            AssignTarget::Name(name) => self.assigned.push(Rc::clone(name)),
            AssignTarget::Attribute(..) => {}
            AssignTarget::Tuple(targets) => targets.iter().for_each(|target| self.record_assigned(target)),
        }
    }

    /// Parses filters with `|` between them.
    fn filters(&mut self) -> EvalResult<Vec<Call>> {
        let mut filters = vec![self.filter()?];
        loop {
            if self.skip_operator("|") {
                filters.push(self.filter()?);
                self.check_depth(self.depth + filters.len())?;
            } else if self.is_name("is") || self.is_operator("(") {
                return self.unsupported("a test or a call after the filters of a block");
            } else {
                return Ok(filters);
            }
        }
    }

    fn with(&mut self) -> EvalResult<Statement> {
        let mut values = Vec::new();
        while *self.token() != Token::BlockEnd {
            if !values.is_empty() {
                self.expect_operator(",")?;
            }
            let target = self.target(false)?;
            self.expect_operator("=")?;
            values.push((target, self.expression()?));
        }
        Ok(Statement::With { values, body: self.body_to("endwith")? })
    }

    /// Parses the body of a macro with `read`; also returns the special names that the body uses.
    fn closure<T>(&mut self, read: impl FnOnce(&mut Self) -> EvalResult<T>) -> EvalResult<(T, MacroUses)> {
        self.macro_uses.push(MacroUses::default());
        let read = read(self);
        let speaks_of = self.macro_uses.pop().unwrap_or_default();
        Ok((read?, speaks_of))
    }

    fn macro_definition(&mut self) -> EvalResult<Statement> {
        let name = self.assignable_name()?;
        self.assigned.push(Rc::clone(&name));
        let parameters = self.signature()?;
        let (body, speaks_of) = self.closure(|parser| parser.body_to("endmacro"))?;
        Ok(Statement::Macro(Rc::new(Macro { name, is_anonymous: false, parameters, body, uses: speaks_of })))
    }

    fn signature(&mut self) -> EvalResult<Vec<(Name, Option<Expression>)>> {
        self.expect_operator("(")?;
        let mut parameters: Vec<(Name, Option<Expression>)> = Vec::new();
        while !self.is_operator(")") {
            if !parameters.is_empty() {
                self.expect_operator(",")?;
            }
            let name = self.assignable_name()?;
            if matches!(&*name, "caller" | "varargs" | "kwargs") {
                return self.unsupported(format!("a parameter that is called `{name}`"));
            }
            if parameters.iter().any(|(known, _)| *known == name) {
                return self.syntax_error(format!("the parameter `{name}` is defined twice"));
            }
            let default = if self.skip_operator("=") {
                Some(self.expression()?)
            } else if parameters.last().is_some_and(|(_, default)| default.is_some()) {
                return self.syntax_error("a parameter without default follows one that has one");
            } else {
                None
            };
            parameters.push((name, default));
        }
        self.expect_operator(")")?;
        Ok(parameters)
    }

    fn call_block(&mut self, line: usize) -> EvalResult<Statement> {
        let parameters = if self.is_operator("(") { self.signature()? } else { Vec::new() };
        let call = self.expression()?;
        if !matches!(call.kind, Syntax::Call(..)) {
            return Err(EvalError::at(Kind::Syntax, line, "`call` needs a call"));
        }
        let (body, speaks_of) = self.closure(|parser| parser.body_to("endcall"))?;
        let caller =
            Macro { name: Name::from("caller"), is_anonymous: true, parameters, body, uses: speaks_of };
        Ok(Statement::CallBlock { call, caller: Rc::new(caller) })
    }

    fn assignable_name(&mut self) -> EvalResult<Name> {
        let name = self.expect_name()?;
        if matches!(&*name, "true" | "false" | "none" | "True" | "False" | "None") {
            return self.syntax_error(format!("cannot assign to `{name}`"));
        }
        Ok(name)
    }

    /// Parses the target of an assignment: one or more names, or an attribute of a namespace.
    fn target(&mut self, with_namespace: bool) -> EvalResult<AssignTarget> {
        if with_namespace && matches!(self.peek(), Token::Operator(".")) {
            let space = self.assignable_name()?;
            self.advance();
            return Ok(AssignTarget::Attribute(space, self.expect_name()?));
        }
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            if !targets.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_tuple_end() {
                break;
            }
            targets.push(if self.skip_operator("(") {
                let inner = self.deeper(|parser| parser.target(false))?;
                self.expect_operator(")")?;
                inner
            } else {
                AssignTarget::Name(self.assignable_name()?)
            });
            if with_namespace && self.is_operator(".") {
                return self.unsupported("an attribute among several targets");
            }
            if !self.is_operator(",") {
                break;
            }
            is_tuple = true;
        }
        if !is_tuple && targets.len() == 1 {
            return Ok(targets.remove(0));
        }
        if targets.is_empty() {
            return self.unexpected("a name");
        }
        Ok(AssignTarget::Tuple(targets))
    }
}

fn names_loop(target: &AssignTarget) -> bool {
    match target {
        AssignTarget::Name(name) => &**name == "loop",
        AssignTarget::Attribute(..) => false,
        AssignTarget::Tuple(targets) => targets.iter().any(names_loop),
    }
}

/// Whether a statement anywhere in the body of a loop assigns `loop`.
fn body_sets_loop(body: &[Statement]) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Set { target, .. } => names_loop(target),
        Statement::SetBlock { target, body, .. } => names_loop(target) || body_sets_loop(body),
        Statement::With { values, body } => {
            values.iter().any(|(target, _)| names_loop(target)) || body_sets_loop(body)
        }
        Statement::If { branches, otherwise } => {
            branches.iter().any(|(_, body)| body_sets_loop(body)) || body_sets_loop(otherwise)
        }
        Statement::For(inner) => body_sets_loop(&inner.body) || body_sets_loop(&inner.otherwise),
        Statement::Macro(inner) => {
            inner.parameters.iter().any(|(name, _)| &**name == "loop") || body_sets_loop(&inner.body)
        }
        Statement::CallBlock { caller, .. } => body_sets_loop(&caller.body),
        Statement::Filter { body, .. } | Statement::Base64 { body } => body_sets_loop(body),
        Statement::Data(_) | Statement::Print(_) | Statement::Raise { .. } => false,
    })
}

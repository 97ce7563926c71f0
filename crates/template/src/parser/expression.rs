//! Parses expressions with the precedence of Jinja2: `-2 ** 2` is 4, and a filter binds tighter than any
//! operator.

use super::TemplateParser;
use crate::fault::EvalResult;
use crate::lexer::Token;
use crate::syntax::{Arguments, Call, Comparison, Expression, ExpressionKind, Name, Operator};
use crate::{filters, jinja_tests};

type ExpressionResult = EvalResult<Expression>;

fn at(line: usize, kind: ExpressionKind) -> Expression {
    Expression { kind, line }
}

impl TemplateParser {
    pub(super) fn expression(&mut self) -> ExpressionResult {
        self.deeper(Self::conditional)
    }

    pub(super) fn expression_without_condition(&mut self) -> ExpressionResult {
        self.deeper(Self::or)
    }

    fn conditional(&mut self) -> ExpressionResult {
        let missed = self.unknown_callables.len();
        let mut then = self.or()?;
        let mut height = self.depth;
        while self.is_name("if") {
            height += 1;
            self.check_depth(height)?;
            let line = self.line();
            self.advance();
            let condition = Box::new(self.or()?);
            let otherwise =
                if self.skip_name("else") { Some(Box::new(self.deeper(Self::conditional)?)) } else { None };
            then = at(line, ExpressionKind::Conditional { condition, then: Box::new(then), otherwise });
            self.mark_skippable(missed);
        }
        Ok(then)
    }

    /// Parses operands of `next` with left-associative operators between them.
    fn chain(
        &mut self,
        next: fn(&mut Self) -> ExpressionResult,
        join: impl Fn(&Token) -> Option<fn(Box<Expression>, Box<Expression>) -> ExpressionKind>,
    ) -> ExpressionResult {
        let mut left = next(self)?;
        let mut height = self.depth;
        while let Some(make) = join(self.token()) {
            height += 1;
            self.check_depth(height)?;
            let line = self.line();
            self.advance();
            let right = next(self)?;
            left = at(line, make(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn or(&mut self) -> ExpressionResult {
        self.chain(Self::and, |token| {
            matches!(token, Token::Name(name) if name == "or").then_some(ExpressionKind::Or as _)
        })
    }

    fn and(&mut self) -> ExpressionResult {
        self.chain(Self::not, |token| {
            matches!(token, Token::Name(name) if name == "and").then_some(ExpressionKind::And as _)
        })
    }

    fn not(&mut self) -> ExpressionResult {
        if self.is_name("not") {
            let line = self.line();
            self.advance();
            let inner = self.deeper(Self::not)?;
            return Ok(at(line, ExpressionKind::Not(Box::new(inner))));
        }
        self.compare()
    }

    fn compare(&mut self) -> ExpressionResult {
        let line = self.line();
        let left = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let comparison = match self.token() {
                Token::Operator("==") => Comparison::Equal,
                Token::Operator("!=") => Comparison::NotEqual,
                Token::Operator("<") => Comparison::Less,
                Token::Operator("<=") => Comparison::LessOrEqual,
                Token::Operator(">") => Comparison::Greater,
                Token::Operator(">=") => Comparison::GreaterOrEqual,
                Token::Name(name) if name == "in" => Comparison::In,
                Token::Name(name)
                    if name == "not" && matches!(self.peek(), Token::Name(next) if next == "in") =>
                {
                    self.advance();
                    Comparison::NotIn
                }
                _ => break,
            };
            self.advance();
            rest.push((comparison, self.sum()?));
        }
        if rest.is_empty() { Ok(left) } else { Ok(at(line, ExpressionKind::Compare(Box::new(left), rest))) }
    }

    fn sum(&mut self) -> ExpressionResult {
        self.chain(Self::concat, |token| match token {
            Token::Operator("+") => Some(|a, b| ExpressionKind::Binary(Operator::Add, a, b)),
            Token::Operator("-") => Some(|a, b| ExpressionKind::Binary(Operator::Subtract, a, b)),
            _ => None,
        })
    }

    fn concat(&mut self) -> ExpressionResult {
        let line = self.line();
        let mut parts = vec![self.product()?];
        while self.skip_operator("~") {
            parts.push(self.product()?);
        }
        if parts.len() == 1 { Ok(parts.remove(0)) } else { Ok(at(line, ExpressionKind::Concat(parts))) }
    }

    fn product(&mut self) -> ExpressionResult {
        self.chain(Self::power, |token| match token {
            Token::Operator("*") => Some(|a, b| ExpressionKind::Binary(Operator::Multiply, a, b)),
            Token::Operator("/") => Some(|a, b| ExpressionKind::Binary(Operator::Divide, a, b)),
            Token::Operator("//") => Some(|a, b| ExpressionKind::Binary(Operator::FloorDivide, a, b)),
            Token::Operator("%") => Some(|a, b| ExpressionKind::Binary(Operator::Modulo, a, b)),
            _ => None,
        })
    }

    fn power(&mut self) -> ExpressionResult {
        self.chain(
            |parser| parser.unary(true),
            |token| {
                matches!(token, Token::Operator("**"))
                    .then_some(|a, b| ExpressionKind::Binary(Operator::Power, a, b))
            },
        )
    }

    fn unary(&mut self, with_filter: bool) -> ExpressionResult {
        let line = self.line();
        let node = if self.skip_operator("-") {
            at(line, ExpressionKind::Negative(Box::new(self.deeper(|parser| parser.unary(false))?)))
        } else if self.skip_operator("+") {
            at(line, ExpressionKind::Positive(Box::new(self.deeper(|parser| parser.unary(false))?)))
        } else {
            self.primary()?
        };
        let node = self.postfix(node)?;
        if with_filter { self.filters_and_tests(node) } else { Ok(node) }
    }

    pub(super) fn primary(&mut self) -> ExpressionResult {
        let line = self.line();
        let kind = match self.token().clone() {
            Token::Name(name) => {
                self.advance();
                match name.as_str() {
                    "true" | "True" => ExpressionKind::Bool(true),
                    "false" | "False" => ExpressionKind::Bool(false),
                    "none" | "None" => ExpressionKind::None,
                    _ => {
                        self.record_macro_use(&name);
                        ExpressionKind::Name(Name::from(name))
                    }
                }
            }
            Token::Text(mut text) => {
                self.advance();
                while let Token::Text(next) = self.token() {
                    text.push_str(next);
                    self.advance();
                }
                ExpressionKind::Text(text.into())
            }
            Token::Int(number) => {
                self.advance();
                ExpressionKind::Int(number)
            }
            Token::Float(number) => {
                self.advance();
                ExpressionKind::Float(number)
            }
            Token::Operator("(") => {
                self.advance();
                let inner = self.deeper(|parser| parser.tuple(true, true))?;
                self.expect_operator(")")?;
                return Ok(inner);
            }
            Token::Operator("[") => self.list()?,
            Token::Operator("{") => self.dict()?,
            _ => return self.unexpected("an expression"),
        };
        Ok(at(line, kind))
    }

    /// Records the use of a special name: a macro whose body uses it accepts the matching arguments.
    fn record_macro_use(&mut self, name: &str) {
        for speaks_of in &mut self.macro_uses {
            match name {
                "caller" => speaks_of.caller = true,
                "varargs" => speaks_of.varargs = true,
                "kwargs" => speaks_of.kwargs = true,
                _ => {}
            }
        }
    }

    fn list(&mut self) -> EvalResult<ExpressionKind> {
        self.expect_operator("[")?;
        let mut items = Vec::new();
        while !self.is_operator("]") {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_operator("]") {
                break;
            }
            items.push(self.expression()?);
        }
        self.expect_operator("]")?;
        Ok(ExpressionKind::List(items))
    }

    fn dict(&mut self) -> EvalResult<ExpressionKind> {
        self.expect_operator("{")?;
        let mut items = Vec::new();
        while !self.is_operator("}") {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_operator("}") {
                break;
            }
            let key = self.expression()?;
            self.expect_operator(":")?;
            items.push((key, self.expression()?));
        }
        self.expect_operator("}")?;
        Ok(ExpressionKind::Dict(items))
    }

    /// Parses one expression, or a tuple: several expressions with commas between them.
    pub(super) fn tuple(&mut self, conditions: bool, parentheses: bool) -> ExpressionResult {
        let line = self.line();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_tuple_end() {
                break;
            }
            items.push(if conditions { self.expression()? } else { self.expression_without_condition()? });
            if !self.is_operator(",") {
                break;
            }
            is_tuple = true;
        }
        if !is_tuple {
            if let Some(item) = items.pop() {
                return Ok(item);
            }
            if !parentheses {
                return self.unexpected("an expression");
            }
        }
        Ok(at(line, ExpressionKind::Tuple(items)))
    }

    pub(super) fn is_tuple_end(&self) -> bool {
        matches!(self.token(), Token::VariableEnd | Token::BlockEnd | Token::Operator(")"))
    }

    fn postfix(&mut self, mut node: Expression) -> ExpressionResult {
        let mut height = self.depth;
        loop {
            let line = self.line();
            node = match self.token() {
                Token::Operator(".") => self.dot(node)?,
                Token::Operator("[") => self.subscript(node)?,
                Token::Operator("(") => {
                    let arguments = self.deeper(Self::arguments)?;
                    at(line, ExpressionKind::Call(Box::new(node), arguments))
                }
                _ => return Ok(node),
            };
            height += 1;
            self.check_depth(height)?;
        }
    }

    fn dot(&mut self, node: Expression) -> ExpressionResult {
        let line = self.line();
        self.advance();
        let kind = match self.token().clone() {
            Token::Name(name) => ExpressionKind::Attribute(Box::new(node), Name::from(name)),
            Token::Int(index) => {
                ExpressionKind::Item(Box::new(node), Box::new(at(line, ExpressionKind::Int(index))))
            }
            _ => return self.unexpected("a name or a number"),
        };
        self.advance();
        Ok(at(line, kind))
    }

    fn subscript(&mut self, node: Expression) -> ExpressionResult {
        let line = self.line();
        self.advance();
        let (mut items, mut slices) = (Vec::new(), Vec::new());
        while !self.is_operator("]") {
            if !items.is_empty() || !slices.is_empty() {
                self.expect_operator(",")?;
            }
            match self.index_or_slice()? {
                Ok(item) => items.push(item),
                Err(slice) => slices.push(slice),
            }
        }
        self.expect_operator("]")?;
        if let Some(slice) = slices.pop() {
            if !items.is_empty() || !slices.is_empty() {
                return self.unsupported("several slices between the same brackets");
            }
            return Ok(at(line, ExpressionKind::Slice(Box::new(node), slice)));
        }
        let index = match items.len() {
            1 => items.remove(0),
            _ => at(line, ExpressionKind::Tuple(items)),
        };
        Ok(at(line, ExpressionKind::Item(Box::new(node), Box::new(index))))
    }

    /// Parses an index, or the three parts of a slice.
    fn index_or_slice(&mut self) -> EvalResult<Result<Expression, [Option<Box<Expression>>; 3]>> {
        let mut parts: [Option<Box<Expression>>; 3] = [None, None, None];
        if !self.skip_operator(":") {
            let first = self.expression()?;
            if !self.skip_operator(":") {
                return Ok(Ok(first));
            }
            parts[0] = Some(Box::new(first));
        }
        if !self.is_operator(":") && !self.is_operator("]") && !self.is_operator(",") {
            parts[1] = Some(Box::new(self.expression()?));
        }
        if self.skip_operator(":") && !self.is_operator("]") && !self.is_operator(",") {
            parts[2] = Some(Box::new(self.expression()?));
        }
        Ok(Err(parts))
    }

    fn filters_and_tests(&mut self, mut node: Expression) -> ExpressionResult {
        let mut height = self.depth;
        loop {
            let line = self.line();
            node = match self.token() {
                Token::Operator("|") => {
                    self.advance();
                    let call = self.filter()?;
                    at(line, ExpressionKind::Filter(Box::new(node), call))
                }
                Token::Name(name) if name == "is" => self.test(node)?,
                Token::Operator("(") => {
                    let arguments = self.deeper(Self::arguments)?;
                    at(line, ExpressionKind::Call(Box::new(node), arguments))
                }
                _ => return Ok(node),
            };
            height += 1;
            self.check_depth(height)?;
        }
    }

    fn dotted_name(&mut self) -> EvalResult<Name> {
        let mut name = self.expect_name()?.to_string();
        while self.skip_operator(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        Ok(name.into())
    }

    /// Parses the name and the arguments of a filter, after the `|`.
    pub(super) fn filter(&mut self) -> EvalResult<Call> {
        let line = self.line();
        let name = self.dotted_name()?;
        if !filters::exists(&name, self.strict) {
            self.record_unknown(line, format!("filter `{name}`"));
        }
        let arguments =
            if self.is_operator("(") { self.deeper(Self::arguments)? } else { Arguments::default() };
        Ok(Call { name, arguments, line })
    }

    fn test(&mut self, node: Expression) -> ExpressionResult {
        let line = self.line();
        self.advance();
        let negated = self.skip_name("not");
        let name = self.dotted_name()?;
        if !jinja_tests::exists(&name) {
            self.record_unknown(line, format!("test `{name}`"));
        }
        let mut arguments = Arguments::default();
        let takes_one = match self.token() {
            Token::Operator("(") => {
                arguments = self.deeper(Self::arguments)?;
                false
            }
            Token::Name(word) => !matches!(word.as_str(), "else" | "or" | "and"),
            Token::Text(_) | Token::Int(_) | Token::Float(_) | Token::Operator("[" | "{") => true,
            _ => false,
        };
        if takes_one {
            if self.is_name("is") {
                return self.syntax_error("tests cannot be chained with `is`");
            }
            let argument = self.deeper(Self::primary)?;
            arguments.positional.push(self.postfix(argument)?);
        }
        let test = at(line, ExpressionKind::Test(Box::new(node), Call { name, arguments, line }));
        if negated { Ok(at(line, ExpressionKind::Not(Box::new(test)))) } else { Ok(test) }
    }

    fn arguments(&mut self) -> EvalResult<Arguments> {
        self.expect_operator("(")?;
        let mut arguments = Arguments::default();
        let mut first = true;
        while !self.is_operator(")") {
            if !first {
                self.expect_operator(",")?;
                if self.is_operator(")") {
                    break;
                }
            }
            first = false;
            let misplaced = "an argument is at the wrong position";
            if self.skip_operator("*") {
                if arguments.star.is_some() || arguments.double_star.is_some() {
                    return self.syntax_error(misplaced);
                }
                arguments.star = Some(Box::new(self.expression()?));
            } else if self.skip_operator("**") {
                if arguments.double_star.is_some() {
                    return self.syntax_error(misplaced);
                }
                arguments.double_star = Some(Box::new(self.expression()?));
            } else if matches!(self.token(), Token::Name(_)) && matches!(self.peek(), Token::Operator("=")) {
                if arguments.double_star.is_some() {
                    return self.syntax_error(misplaced);
                }
                let name = self.expect_name()?;
                self.advance();
                let value = self.expression()?;
                if arguments.named.iter().any(|(known, _)| *known == name) {
                    return self.syntax_error(format!("the argument `{name}` is given twice"));
                }
                arguments.named.push((name, value));
            } else {
                if arguments.star.is_some() || arguments.double_star.is_some() || !arguments.named.is_empty()
                {
                    return self.syntax_error(misplaced);
                }
                arguments.positional.push(self.expression()?);
            }
        }
        self.expect_operator(")")?;
        Ok(arguments)
    }
}

//! The grammar of executable documents: operations and fragments.

use super::QuerySyntaxError;
use super::cursor::{ParseResult, Parser};
use super::lexer::Kind;
use super::tree::{
    Argument, Definition, Directive, Document, Field, Fragment, InlineFragment, Literal, Name, Operation,
    OperationKind, Selection, SelectionSet, Spread, Type, TypeForm, Value, Variable,
};

/// Parses a document that is nested at most `max_depth` levels deep; `Err` is the first syntax error.
pub fn parse(text: &str, max_depth: usize) -> ParseResult<Document<'_>> {
    let mut parser = Parser::new(text, max_depth);
    let definitions = parser.many(Kind::Start, Parser::definition, Kind::End)?;
    Ok(Document { definitions, descriptions: parser.descriptions })
}

impl<'t> Parser<'t> {
    fn definition(&mut self) -> ParseResult<Definition<'t>> {
        if self.peek(Kind::BraceL) {
            return self.operation();
        }
        let described = self.has_description();
        let keyword = if described { self.lookahead()? } else { self.token };
        if described && keyword.kind == Kind::BraceL {
            return Err(self.syntax_error(
                "Unexpected description, descriptions are not supported on shorthand queries.",
            ));
        }
        if keyword.kind != Kind::Name {
            return Err(self.unexpected(keyword));
        }
        match self.text_of(keyword) {
            word
            @ ("schema" | "scalar" | "type" | "interface" | "union" | "enum" | "input" | "directive") => {
                self.schema_part(word)
            }
            "query" | "mutation" | "subscription" => self.operation(),
            "fragment" => self.fragment(),
            _ if described => {
                Err(self
                    .syntax_error("Unexpected description, only GraphQL definitions support descriptions."))
            }
            "extend" => self.extension(),
            _ => Err(self.unexpected(keyword)),
        }
    }

    fn has_description(&self) -> bool {
        self.peek(Kind::String) || self.peek(Kind::Block)
    }

    pub fn description(&mut self) -> ParseResult<()> {
        if self.has_description() {
            let token = self.advance()?;
            self.descriptions.push(token.start..token.end);
        }
        Ok(())
    }

    fn operation(&mut self) -> ParseResult<Definition<'t>> {
        let at = self.token.start;
        if self.peek(Kind::BraceL) {
            let (variables, directives, set) = (Vec::new(), Vec::new(), self.set()?);
            let operation =
                Operation { at, kind: OperationKind::Query, name: None, variables, directives, set };
            return Ok(Definition::Operation(operation));
        }
        self.description()?;
        let task = self.operation_kind()?;
        let name = if self.peek(Kind::Name) { Some(self.name()?) } else { None };
        let variables = self.optional_many(Kind::ParenL, Self::variable_definition, Kind::ParenR)?;
        let directives = self.directives(false)?;
        let set = self.set()?;
        Ok(Definition::Operation(Operation { at, kind: task, name, variables, directives, set }))
    }

    pub fn operation_kind(&mut self) -> ParseResult<OperationKind> {
        let token = self.expect(Kind::Name)?;
        match self.text_of(token) {
            "query" => Ok(OperationKind::Query),
            "mutation" => Ok(OperationKind::Mutation),
            "subscription" => Ok(OperationKind::Subscription),
            _ => Err(self.unexpected(token)),
        }
    }

    fn variable_definition(&mut self) -> ParseResult<Variable<'t>> {
        let at = self.token.start;
        self.description()?;
        let name = self.variable()?;
        self.expect(Kind::Colon)?;
        let type_ = self.type_()?;
        let default = if self.accept(Kind::Equals)? { Some(self.value(true)?) } else { None };
        let directives = self.directives(true)?;
        Ok(Variable { at, name, type_, default, directives })
    }

    fn variable(&mut self) -> ParseResult<Name<'t>> {
        self.expect(Kind::Dollar)?;
        self.name()
    }

    fn fragment(&mut self) -> ParseResult<Definition<'t>> {
        let at = self.token.start;
        self.description()?;
        self.expect_word("fragment")?;
        if self.means("on") {
            return Err(self.unexpected(self.token));
        }
        let name = self.name()?;
        self.expect_word("on")?;
        let condition = self.name()?;
        let directives = self.directives(false)?;
        let set = self.set()?;
        Ok(Definition::Fragment(Fragment { at, name, condition, directives, set }))
    }

    // The grammar of selections.

    fn set(&mut self) -> ParseResult<SelectionSet<'t>> {
        let at = self.token.start;
        let selections = self.deeper(|parser| parser.many(Kind::BraceL, Self::selection, Kind::BraceR))?;
        Ok(SelectionSet { at, selections })
    }

    fn selection(&mut self) -> ParseResult<Selection<'t>> {
        if !self.peek(Kind::Spread) {
            return self.field().map(Selection::Field);
        }
        let at = self.advance()?.start;
        let conditional = self.accept_word("on")?;
        if !conditional && self.peek(Kind::Name) {
            let name = self.name()?;
            return Ok(Selection::Spread(Spread { at, name, directives: self.directives(false)? }));
        }
        let condition = if conditional { Some(self.name()?) } else { None };
        let directives = self.directives(false)?;
        let set = self.set()?;
        Ok(Selection::Inline(InlineFragment { at, condition, directives, set }))
    }

    fn field(&mut self) -> ParseResult<Field<'t>> {
        let Name { text: first, at } = self.name()?;
        let (alias, name) =
            if self.accept(Kind::Colon)? { (Some(first), self.name()?.text) } else { (None, first) };
        let arguments = self.arguments(false)?;
        let directives = self.directives(false)?;
        let set = if self.peek(Kind::BraceL) { Some(self.set()?) } else { None };
        Ok(Field { at, alias, name, arguments, directives, set })
    }

    fn arguments(&mut self, constant: bool) -> ParseResult<Vec<Argument<'t>>> {
        let item = if constant { Self::argument::<true> } else { Self::argument::<false> };
        self.optional_many(Kind::ParenL, item, Kind::ParenR)
    }

    fn argument<const CONSTANT: bool>(&mut self) -> ParseResult<Argument<'t>> {
        let name = self.name()?;
        self.expect(Kind::Colon)?;
        Ok(Argument { name, value: self.value(CONSTANT)? })
    }

    pub fn directives(&mut self, constant: bool) -> ParseResult<Vec<Directive<'t>>> {
        let mut directives = Vec::new();
        while self.peek(Kind::At) {
            let at = self.advance()?.start;
            let name = self.name()?.text;
            directives.push(Directive { at, name, arguments: self.arguments(constant)? });
        }
        Ok(directives)
    }

    // The grammar of names, types and values.

    pub fn name(&mut self) -> ParseResult<Name<'t>> {
        let token = self.expect(Kind::Name)?;
        Ok(Name { text: self.text_of(token), at: token.start })
    }

    pub fn type_(&mut self) -> ParseResult<Type<'t>> {
        let at = self.token.start;
        let form = if self.accept(Kind::BracketL)? {
            let inner = self.deeper(Self::type_)?;
            self.expect(Kind::BracketR)?;
            TypeForm::List(Box::new(inner))
        } else {
            TypeForm::Named(self.name()?.text)
        };
        let type_ = Type { at, form };
        let required = self.accept(Kind::Bang)?;
        Ok(if required { Type { at, form: TypeForm::NonNull(Box::new(type_)) } } else { type_ })
    }

    /// Parses a value; a `constant` value must not contain variables.
    pub fn value(&mut self, constant: bool) -> ParseResult<Value<'t>> {
        let token = self.token;
        let written = self.text_of(token);
        let literal = match token.kind {
            Kind::BracketL => {
                let item = |parser: &mut Self| parser.value(constant);
                Literal::List(self.deeper(|parser| parser.any(Kind::BracketR, item))?)
            }
            Kind::BraceL => {
                let item = |parser: &mut Self| {
                    let name = parser.name()?;
                    parser.expect(Kind::Colon)?;
                    Ok((name, parser.value(constant)?))
                };
                Literal::Object(self.deeper(|parser| parser.any(Kind::BraceR, item))?)
            }
            Kind::Dollar if constant => {
                self.advance()?;
                if !self.peek(Kind::Name) {
                    return Err(self.unexpected(token));
                }
                let name = self.text_of(self.token);
                let message = format!("Unexpected variable \"${name}\" in constant value.");
                return Err(QuerySyntaxError::new(token.start, message));
            }
            Kind::Dollar => Literal::Variable(self.variable()?.text),
            Kind::Int | Kind::Float | Kind::String | Kind::Block | Kind::Name => {
                self.advance()?;
                match (token.kind, written) {
                    (Kind::Int, _) => Literal::Int(written),
                    (Kind::Float, _) => Literal::Float(written),
                    (Kind::String, _) => Literal::String(written),
                    (Kind::Block, _) => Literal::Block(written),
                    (_, "true") => Literal::Boolean(true),
                    (_, "false") => Literal::Boolean(false),
                    (_, "null") => Literal::Null,
                    _ => Literal::Enum(written),
                }
            }
            _ => return Err(self.unexpected(token)),
        };
        Ok(Value { at: token.start, literal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, at: usize, expect: &str) {
        let expect = QuerySyntaxError::Mistake { message: format!("Syntax Error: {expect}"), at };
        assert_eq!(parse(text, 50).map(|_| ()), Err(expect), "{text}");
    }

    #[test]
    fn the_first_error_has_the_message_of_graphql_js() {
        check("", 0, "Unexpected <EOF>.");
        check("# nothing", 9, "Unexpected <EOF>.");
        check("{", 1, "Expected Name, found <EOF>.");
        check("{ a ?", 4, "Unexpected character: \"?\".");
        check("{ a é", 4, "Unexpected character: U+00E9.");
        check("{ a(b: \"c", 9, "Unterminated string.");
        check("{ a(b: \"\\q\") }", 8, "Invalid character escape sequence: \"\\q\".");
        check("{ a(b: \"\\u12\") }", 8, "Invalid Unicode escape sequence: \"\\u12\")\".");
        check("{ a(b: \"\\u{}\") }", 8, "Invalid Unicode escape sequence: \"\\u{}\".");
        check("{ a(b: 1a) }", 8, "Invalid number, expected digit but got: \"a\".");
        check("{ a(b: 01) }", 8, "Invalid number, unexpected digit after 0: \"1\".");
        check("{ a(b: -) }", 8, "Invalid number, expected digit but got: \")\".");
        check("a", 0, "Unexpected Name \"a\".");
        check("{ a(b: ) }", 7, "Unexpected \")\".");
        check("{ a() }", 4, "Expected Name, found \")\".");
        check("query ($a: B = $c) { a }", 15, "Unexpected variable \"$c\" in constant value.");
        check("fragment on on A { a }", 9, "Unexpected Name \"on\".");
        check("fragment F A { a }", 11, "Expected \"on\", found Name \"A\".");
        check(
            "{ a } \"b\" { c }",
            6,
            "Unexpected description, descriptions are not supported on shorthand queries.",
        );
        check("{ a: \"b\" }", 5, "Expected Name, found String \"b\".");
    }

    #[test]
    fn documents_that_are_nested_too_deeply_are_rejected() {
        let nested = |count: usize| format!("{}a{}", "{a".repeat(count), "}".repeat(count));
        assert!(parse(&nested(50), 50).is_ok());
        assert_eq!(parse(&nested(51), 50).map(|_| ()), Err(QuerySyntaxError::TooDeep));
    }
}

//! Parses tokens by Jinja2's grammar.

mod expression;
mod statement;

use crate::fault::{Kind, Outcome, Trouble};
use crate::lexer::{Placed, Token};
use crate::syntax::{Name, SpeaksOf, Template};

pub(crate) struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    depth: usize,
    limit: usize,
    /// Whether it is a template of a data repo, with additional tags and filters.
    strict: bool,
    assigned: Vec<Name>,
    /// The special names that the body of each open macro uses.
    speaks_of: Vec<SpeaksOf>,
    /// Unknown filters and tests, in order.
    unknown: Vec<Unknown>,
}

/// An unknown filter or test.
struct Unknown {
    line: usize,
    what: String,
    /// Whether it is within a condition or one of its branches: Jinja2 reports it there only if it is
    /// reached.
    may_be_passed: bool,
}

/// Parses a whole template.
pub(crate) fn parse(tokens: Vec<Placed>, depth: usize, strict: bool) -> Outcome<Template> {
    parse_until(tokens, depth, strict).map_err(|(error, _)| error)
}

/// Parses a whole template; or returns the error, and the byte offset of its token if it belongs to one
/// token.
pub(crate) fn parse_until(
    tokens: Vec<Placed>,
    depth: usize,
    strict: bool,
) -> Result<Template, (Box<Trouble>, Option<usize>)> {
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        limit: depth,
        strict,
        assigned: Vec::new(),
        speaks_of: Vec::new(),
        unknown: Vec::new(),
    };
    let body = match parser.statements(&[]) {
        Ok(body) => body,
        Err(error) => {
            let token = &parser.tokens[parser.at];
            // An error of an earlier line does not belong to this token.
            let at = error.line.is_none_or(|line| line == token.line).then_some(token.at);
            return Err((error, at));
        }
    };
    let unknown = std::mem::take(&mut parser.unknown);
    let first = unknown.iter().find(|unknown| !unknown.may_be_passed).or(unknown.first());
    if let Some(Unknown { line, what, may_be_passed }) = first {
        let kind = if *may_be_passed { Kind::Refused } else { Kind::Undefined };
        return Err((Trouble::at(kind, *line, format!("there is no {what}")), None));
    }
    Ok(Template { body, assigned: parser.assigned })
}

impl Parser {
    fn token(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn line(&self) -> usize {
        self.tokens[self.at].line
    }

    fn look(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].token
    }

    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.token(), Token::Name(found) if found == name)
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(self.token(), Token::Operator(found) if *found == operator)
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.advance();
        }
        found
    }

    fn skip_operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        if found {
            self.advance();
        }
        found
    }

    fn expect_operator(&mut self, operator: &str) -> Outcome<()> {
        if self.skip_operator(operator) { Ok(()) } else { self.unexpected(&format!("`{operator}`")) }
    }

    fn expect_name(&mut self) -> Outcome<Name> {
        if let Token::Name(name) = self.token() {
            let name = Name::from(name.as_str());
            self.advance();
            return Ok(name);
        }
        self.unexpected("a name")
    }

    fn expect_block_end(&mut self) -> Outcome<()> {
        if *self.token() == Token::BlockEnd {
            self.advance();
            return Ok(());
        }
        self.unexpected("the end of the tag")
    }

    fn unexpected<T>(&self, expected: &str) -> Outcome<T> {
        let found = match self.token() {
            Token::Data(_) => "text".to_owned(),
            Token::BlockBegin | Token::VariableBegin => "the beginning of a tag".to_owned(),
            Token::BlockEnd | Token::VariableEnd => "the end of the tag".to_owned(),
            Token::Name(name) => format!("`{name}`"),
            Token::Text(_) => "a text".to_owned(),
            Token::Int(_) | Token::Float(_) => "a number".to_owned(),
            Token::Operator(operator) => format!("`{operator}`"),
            Token::End => "the end of the template".to_owned(),
        };
        self.wrong(format!("expected {expected}, found {found}"))
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Outcome<T> {
        Err(Trouble::at(Kind::Syntax, self.line(), message))
    }

    fn refuse<T>(&self, message: impl Into<String>) -> Outcome<T> {
        let message: String = message.into();
        Err(Trouble::at(Kind::Refused, self.line(), format!("not supported: {message}")))
    }

    /// Records an unknown filter or test, to be reported after parsing.
    fn miss(&mut self, line: usize, what: String) {
        self.unknown.push(Unknown { line, what, may_be_passed: false });
    }

    /// Marks the unknown filters and tests from index `since` on as possibly skipped.
    fn may_pass(&mut self, since: usize) {
        self.unknown.iter_mut().skip(since).for_each(|unknown| unknown.may_be_passed = true);
    }

    /// Runs `parse` one level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        self.within(self.depth)?;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Checks the nesting depth against the limit.
    fn within(&self, height: usize) -> Outcome<()> {
        if height > self.limit {
            return Err(Trouble::at(
                Kind::Limit,
                self.line(),
                format!("nested more than {} deep", self.limit),
            ));
        }
        Ok(())
    }
}

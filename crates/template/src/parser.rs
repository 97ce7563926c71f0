//! Parses tokens according to the grammar of Jinja2.

mod expression;
mod statement;

use crate::fault::{EvalError, EvalResult, Kind};
use crate::lexer::{SpannedToken, Token};
use crate::syntax::{MacroUses, Name, Template};

pub(crate) struct TemplateParser {
    tokens: Vec<SpannedToken>,
    at: usize,
    depth: usize,
    limit: usize,
    /// Whether the template belongs to a data repo. Such a template can use additional tags and filters.
    strict: bool,
    assigned: Vec<Name>,
    /// The special names that the body of each open macro uses.
    macro_uses: Vec<MacroUses>,
    /// Unknown filters and tests, in order.
    unknown_callables: Vec<UnknownCallable>,
}

/// An unknown filter or test.
struct UnknownCallable {
    line: usize,
    description: String,
    /// Whether the filter or test is within a condition or a branch of one. There, Jinja2 reports it only if
    /// it is evaluated.
    may_be_skipped: bool,
}

/// Parses a whole template.
pub(crate) fn parse(tokens: Vec<SpannedToken>, depth: usize, strict: bool) -> EvalResult<Template> {
    parse_with_offset(tokens, depth, strict).map_err(|(error, _)| error)
}

/// Parses a whole template. Otherwise returns the error, with the byte offset of its token if the error
/// belongs to one token.
pub(crate) fn parse_with_offset(
    tokens: Vec<SpannedToken>,
    depth: usize,
    strict: bool,
) -> Result<Template, (Box<EvalError>, Option<usize>)> {
    let mut parser = TemplateParser {
        tokens,
        at: 0,
        depth: 0,
        limit: depth,
        strict,
        assigned: Vec::new(),
        macro_uses: Vec::new(),
        unknown_callables: Vec::new(),
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
    let unknown = std::mem::take(&mut parser.unknown_callables);
    let first = unknown.iter().find(|unknown| !unknown.may_be_skipped).or(unknown.first());
    if let Some(UnknownCallable { line, description: what, may_be_skipped: may_be_passed }) = first {
        let kind = if *may_be_passed { Kind::Refused } else { Kind::Undefined };
        return Err((EvalError::at(kind, *line, format!("{what} not found")), None));
    }
    Ok(Template { body, assigned: parser.assigned })
}

impl TemplateParser {
    fn token(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn line(&self) -> usize {
        self.tokens[self.at].line
    }

    fn peek(&self) -> &Token {
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

    fn expect_operator(&mut self, operator: &str) -> EvalResult<()> {
        if self.skip_operator(operator) { Ok(()) } else { self.unexpected(&format!("`{operator}`")) }
    }

    fn expect_name(&mut self) -> EvalResult<Name> {
        if let Token::Name(name) = self.token() {
            let name = Name::from(name.as_str());
            self.advance();
            return Ok(name);
        }
        self.unexpected("a name")
    }

    fn expect_block_end(&mut self) -> EvalResult<()> {
        if *self.token() == Token::BlockEnd {
            self.advance();
            return Ok(());
        }
        self.unexpected("the end of the tag")
    }

    fn unexpected<T>(&self, expected: &str) -> EvalResult<T> {
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
        self.syntax_error(format!("expected {expected}, found {found}"))
    }

    fn syntax_error<T>(&self, message: impl Into<String>) -> EvalResult<T> {
        Err(EvalError::at(Kind::Syntax, self.line(), message))
    }

    fn unsupported<T>(&self, message: impl Into<String>) -> EvalResult<T> {
        let message: String = message.into();
        Err(EvalError::at(Kind::Refused, self.line(), format!("not supported: {message}")))
    }

    /// Records an unknown filter or test, to be reported after parsing.
    fn record_unknown(&mut self, line: usize, what: String) {
        self.unknown_callables.push(UnknownCallable { line, description: what, may_be_skipped: false });
    }

    /// Marks the unknown filters and tests from index `since` on as possibly skipped.
    fn mark_skippable(&mut self, since: usize) {
        self.unknown_callables.iter_mut().skip(since).for_each(|unknown| unknown.may_be_skipped = true);
    }

    /// Runs `parse` one nesting level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> EvalResult<T>) -> EvalResult<T> {
        self.depth += 1;
        self.check_depth(self.depth)?;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Checks the nesting depth against the limit.
    fn check_depth(&self, height: usize) -> EvalResult<()> {
        if height > self.limit {
            return Err(EvalError::at(
                Kind::Limit,
                self.line(),
                format!("nested more than {} deep", self.limit),
            ));
        }
        Ok(())
    }
}

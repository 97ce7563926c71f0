//! Parser primitives: reads tokens and lists of items.

use std::ops::Range;

use super::QuerySyntaxError;
use super::lexer::{self, Kind, Token};

pub type ParseResult<T> = Result<T, QuerySyntaxError>;

/// A parser and its current token.
pub struct Parser<'t> {
    text: &'t str,
    /// The next token.
    pub token: Token,
    /// Remaining nesting levels.
    remaining_depth: usize,
    /// The byte ranges of the descriptions that were parsed so far.
    pub descriptions: Vec<Range<usize>>,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, max_depth: usize) -> Self {
        let token = Token { kind: Kind::Start, start: 0, end: 0 };
        Self { text, token, remaining_depth: max_depth, descriptions: Vec::new() }
    }

    pub fn lookahead(&self) -> ParseResult<Token> {
        if self.token.kind == Kind::End { Ok(self.token) } else { lexer::next(self.text, self.token.end) }
    }

    pub fn advance(&mut self) -> ParseResult<Token> {
        let before = self.token;
        self.token = self.lookahead()?;
        Ok(before)
    }

    pub fn peek(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    pub fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.start..token.end]
    }

    pub fn unexpected(&self, token: Token) -> QuerySyntaxError {
        QuerySyntaxError::new(token.start, format_args!("Unexpected {}.", token.describe(self.text)))
    }

    fn expected(&self, what: &str) -> QuerySyntaxError {
        let actual = self.token.describe(self.text);
        QuerySyntaxError::new(self.token.start, format_args!("Expected {what}, found {actual}."))
    }

    pub fn expect(&mut self, kind: Kind) -> ParseResult<Token> {
        if self.peek(kind) { self.advance() } else { Err(self.expected(kind.describe())) }
    }

    pub fn accept(&mut self, kind: Kind) -> ParseResult<bool> {
        if self.peek(kind) { self.advance().map(|_| true) } else { Ok(false) }
    }

    pub fn expect_word(&mut self, word: &str) -> ParseResult<()> {
        if self.accept_word(word)? { Ok(()) } else { Err(self.expected(&format!("\"{word}\""))) }
    }

    pub fn accept_word(&mut self, word: &str) -> ParseResult<bool> {
        let matches = self.peek(Kind::Name) && self.text_of(self.token) == word;
        if matches { self.advance().map(|_| true) } else { Ok(false) }
    }

    /// Whether the value of the token is this word, as a name or as a string.
    pub fn means(&self, word: &str) -> bool {
        self.token.value(self.text).is_some_and(|value| value == word)
    }

    pub fn syntax_error(&self, message: &str) -> QuerySyntaxError {
        QuerySyntaxError::new(self.token.start, message)
    }

    pub fn describe_token(&self) -> String {
        self.token.describe(self.text)
    }

    pub fn many<T>(
        &mut self,
        open: Kind,
        item: fn(&mut Self) -> ParseResult<T>,
        close: Kind,
    ) -> ParseResult<Vec<T>> {
        self.expect(open)?;
        let mut items = vec![item(self)?];
        while !self.accept(close)? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn optional_many<T>(
        &mut self,
        open: Kind,
        item: fn(&mut Self) -> ParseResult<T>,
        close: Kind,
    ) -> ParseResult<Vec<T>> {
        if self.peek(open) { self.many(open, item, close) } else { Ok(Vec::new()) }
    }

    pub fn any<T>(
        &mut self,
        close: Kind,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        self.advance()?;
        let mut items = Vec::new();
        while !self.accept(close)? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn separated<T>(&mut self, sign: Kind, item: fn(&mut Self) -> ParseResult<T>) -> ParseResult<Vec<T>> {
        self.accept(sign)?;
        let mut items = vec![item(self)?];
        while self.accept(sign)? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        self.remaining_depth = self.remaining_depth.checked_sub(1).ok_or(QuerySyntaxError::TooDeep)?;
        let result = inner(self);
        self.remaining_depth += 1;
        result
    }
}

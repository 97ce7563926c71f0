//! Parser primitives: one token after the other, and lists of items.

use std::ops::Range;

use super::Fault;
use super::lexer::{self, Kind, Token};

pub type Parsed<T> = Result<T, Fault>;

/// A text, read up to a token.
pub struct Parser<'t> {
    text: &'t str,
    /// The next token.
    pub token: Token,
    /// Remaining nesting levels.
    left: usize,
    /// The descriptions seen so far.
    pub descriptions: Vec<Range<usize>>,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, deepest: usize) -> Self {
        let token = Token { kind: Kind::Start, start: 0, end: 0 };
        Self { text, token, left: deepest, descriptions: Vec::new() }
    }

    pub fn lookahead(&self) -> Parsed<Token> {
        if self.token.kind == Kind::End { Ok(self.token) } else { lexer::next(self.text, self.token.end) }
    }

    pub fn advance(&mut self) -> Parsed<Token> {
        let before = self.token;
        self.token = self.lookahead()?;
        Ok(before)
    }

    pub fn peek(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    pub fn written(&self, token: Token) -> &'t str {
        &self.text[token.start..token.end]
    }

    pub fn unexpected(&self, token: Token) -> Fault {
        Fault::new(token.start, format_args!("Unexpected {}.", token.describe(self.text)))
    }

    fn expected(&self, what: &str) -> Fault {
        let found = self.token.describe(self.text);
        Fault::new(self.token.start, format_args!("Expected {what}, found {found}."))
    }

    pub fn expect(&mut self, kind: Kind) -> Parsed<Token> {
        if self.peek(kind) { self.advance() } else { Err(self.expected(kind.describe())) }
    }

    pub fn accept(&mut self, kind: Kind) -> Parsed<bool> {
        if self.peek(kind) { self.advance().map(|_| true) } else { Ok(false) }
    }

    pub fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.accept_word(word)? { Ok(()) } else { Err(self.expected(&format!("\"{word}\""))) }
    }

    pub fn accept_word(&mut self, word: &str) -> Parsed<bool> {
        let found = self.peek(Kind::Name) && self.written(self.token) == word;
        if found { self.advance().map(|_| true) } else { Ok(false) }
    }

    /// Whether the token stands for this word, as a name or as a string.
    pub fn means(&self, word: &str) -> bool {
        self.token.value(self.text).is_some_and(|value| value == word)
    }

    pub fn fault(&self, message: &str) -> Fault {
        Fault::new(self.token.start, message)
    }

    pub fn described(&self) -> String {
        self.token.describe(self.text)
    }

    pub fn many<T>(&mut self, open: Kind, item: fn(&mut Self) -> Parsed<T>, close: Kind) -> Parsed<Vec<T>> {
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
        item: fn(&mut Self) -> Parsed<T>,
        close: Kind,
    ) -> Parsed<Vec<T>> {
        if self.peek(open) { self.many(open, item, close) } else { Ok(Vec::new()) }
    }

    pub fn any<T>(&mut self, close: Kind, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.advance()?;
        let mut items = Vec::new();
        while !self.accept(close)? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn separated<T>(&mut self, sign: Kind, item: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.accept(sign)?;
        let mut items = vec![item(self)?];
        while self.accept(sign)? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.left = self.left.checked_sub(1).ok_or(Fault::TooDeep)?;
        let result = inner(self);
        self.left += 1;
        result
    }
}

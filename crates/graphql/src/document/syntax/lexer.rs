//! Splits a document into tokens, one at a time.

use super::QuerySyntaxError;
use super::literals::{block_text, number_end, string_end, string_text};

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Start,
    End,
    Bang,
    Dollar,
    Amp,
    ParenL,
    ParenR,
    Spread,
    Colon,
    Equals,
    At,
    BracketL,
    BracketR,
    BraceL,
    Pipe,
    BraceR,
    Name,
    Int,
    Float,
    String,
    Block,
}

impl Kind {
    /// The name of the kind in messages.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Start => "<SOF>",
            Kind::End => "<EOF>",
            Kind::Bang => "\"!\"",
            Kind::Dollar => "\"$\"",
            Kind::Amp => "\"&\"",
            Kind::ParenL => "\"(\"",
            Kind::ParenR => "\")\"",
            Kind::Spread => "\"...\"",
            Kind::Colon => "\":\"",
            Kind::Equals => "\"=\"",
            Kind::At => "\"@\"",
            Kind::BracketL => "\"[\"",
            Kind::BracketR => "\"]\"",
            Kind::BraceL => "\"{\"",
            Kind::Pipe => "\"|\"",
            Kind::BraceR => "\"}\"",
            Kind::Name => "Name",
            Kind::Int => "Int",
            Kind::Float => "Float",
            Kind::String => "String",
            Kind::Block => "BlockString",
        }
    }
}

/// A token and its byte range.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    /// The kind and value, as printed in messages.
    pub fn describe(self, text: &str) -> String {
        let name = self.kind.describe();
        match self.value(text) {
            Some(value) => format!("{name} \"{value}\""),
            None => name.to_owned(),
        }
    }

    /// The value; `None` for punctuators.
    pub fn value(self, text: &str) -> Option<std::borrow::Cow<'_, str>> {
        let written = &text[self.start..self.end];
        match self.kind {
            Kind::Name | Kind::Int | Kind::Float => Some(written.into()),
            Kind::String => Some(string_text(written).into()),
            Kind::Block => Some(block_text(written).into()),
            _ => None,
        }
    }
}

/// The first token at or after the byte `from`.
pub fn next(text: &str, from: usize) -> Result<Token, QuerySyntaxError> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        let one = |kind| Ok(Token { kind, start: at, end: at + 1 });
        match byte {
            b' ' | b'\t' | b',' | b'\n' | b'\r' => at += 1,
            // A byte order mark is skipped.
            0xef if bytes[at..].starts_with(&[0xef, 0xbb, 0xbf]) => at += 3,
            b'#' => at += bytes[at..].iter().take_while(|byte| !matches!(byte, b'\n' | b'\r')).count(),
            b'!' => return one(Kind::Bang),
            b'$' => return one(Kind::Dollar),
            b'&' => return one(Kind::Amp),
            b'(' => return one(Kind::ParenL),
            b')' => return one(Kind::ParenR),
            b':' => return one(Kind::Colon),
            b'=' => return one(Kind::Equals),
            b'@' => return one(Kind::At),
            b'[' => return one(Kind::BracketL),
            b']' => return one(Kind::BracketR),
            b'{' => return one(Kind::BraceL),
            b'|' => return one(Kind::Pipe),
            b'}' => return one(Kind::BraceR),
            b'.' if bytes[at..].starts_with(b"...") => {
                return Ok(Token { kind: Kind::Spread, start: at, end: at + 3 });
            }
            b'"' => {
                let block = bytes[at..].starts_with(b"\"\"\"");
                let kind = if block { Kind::Block } else { Kind::String };
                return Ok(Token { kind, start: at, end: string_end(text, at, block)? });
            }
            b'-' | b'0'..=b'9' => {
                let (end, float) = number_end(text, at)?;
                return Ok(Token { kind: if float { Kind::Float } else { Kind::Int }, start: at, end });
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let goes_on = |byte: &&u8| **byte == b'_' || byte.is_ascii_alphanumeric();
                let end = at + bytes[at..].iter().take_while(goes_on).count();
                return Ok(Token { kind: Kind::Name, start: at, end });
            }
            b'\'' => {
                let message =
                    "Unexpected single quote character ('), did you mean to use a double quote (\")?";
                return Err(QuerySyntaxError::new(at, message));
            }
            _ => {
                return Err(QuerySyntaxError::new(
                    at,
                    format_args!("Unexpected character: {}.", character(text, at)),
                ));
            }
        }
    }
    Ok(Token { kind: Kind::End, start: bytes.len(), end: bytes.len() })
}

/// The character at an offset, as printed in messages.
pub fn character(text: &str, at: usize) -> String {
    match text[at..].chars().next() {
        None => "<EOF>".to_owned(),
        Some('"') => "'\"'".to_owned(),
        Some(shown @ ' '..='~') => format!("\"{shown}\""),
        Some(other) => format!("U+{:04X}", u32::from(other)),
    }
}

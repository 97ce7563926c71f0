//! Splits text into tokens as Jinja2's lexer does: delimiters, whitespace control, raw blocks, comments and
//! literals.

use crate::fault::{EvalError, EvalResult, Kind};
use crate::literal;
use crate::source::{Dialect, Whitespace};

/// A token of a template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// Text outside of tags.
    Data(String),
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name(String),
    Text(String),
    Int(i128),
    Float(f64),
    Operator(&'static str),
    End,
}

/// A token and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpannedToken {
    pub token: Token,
    pub line: usize,
    /// The byte offset in the text with normalized line breaks.
    pub at: usize,
}

const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",", ";",
];

struct Delimiters {
    block: TagDelimiters,
    variable: TagDelimiters,
    comment: TagDelimiters,
}

/// The beginning and the end of a tag.
struct TagDelimiters {
    open: &'static str,
    close: &'static str,
}

const JINJA2_DELIMITERS: Delimiters = Delimiters {
    block: TagDelimiters { open: "{%", close: "%}" },
    variable: TagDelimiters { open: "{{", close: "}}" },
    comment: TagDelimiters { open: "{#", close: "#}" },
};
const EXTRA_CURLY_DELIMITERS: Delimiters = Delimiters {
    block: TagDelimiters { open: "{{%", close: "%}}" },
    variable: TagDelimiters { open: "{{{", close: "}}}" },
    comment: TagDelimiters { open: "{{#", close: "#}}" },
};

/// The kind of tag that begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Raw,
    Block,
    Variable,
    Comment,
}

/// Whether Python's `str.isspace` is true for the character.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// Normalizes line breaks to `\n`.
pub(crate) fn normalize_newlines(source: &str) -> String {
    source.replace("\r\n", "\n").replace('\r', "\n")
}

/// All tokens of `source`.
pub(crate) fn tokenize(
    source: &str,
    dialect: Dialect,
    whitespace: Whitespace,
) -> EvalResult<Vec<SpannedToken>> {
    tokenize_with_offset(source, dialect, whitespace).map_err(|(error, _)| error)
}

/// All tokens of `source`; or the error, with its byte offset in the text with normalized line breaks.
pub(crate) fn tokenize_with_offset(
    source: &str,
    dialect: Dialect,
    whitespace: Whitespace,
) -> Result<Vec<SpannedToken>, (Box<EvalError>, usize)> {
    let mut text = normalize_newlines(source);
    if !whitespace.keep_trailing_newline && text.ends_with('\n') {
        text.pop();
    }
    let delimiters = match dialect {
        Dialect::Jinja2 => &JINJA2_DELIMITERS,
        Dialect::ExtraCurly => &EXTRA_CURLY_DELIMITERS,
    };
    let mut lexer =
        Lexer { text: &text, at: 0, line: 1, delimiters, whitespace, line_starting: true, out: Vec::new() };
    if let Err(error) = lexer.run() {
        return Err((error, lexer.at));
    }
    let (line, at) = (lexer.line, lexer.at);
    lexer.out.push(SpannedToken { token: Token::End, line, at });
    Ok(lexer.out)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    delimiters: &'static Delimiters,
    whitespace: Whitespace,
    /// Whether the text before the current position ends with a line break.
    line_starting: bool,
    out: Vec<SpannedToken>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn advance(&mut self, bytes: usize) {
        let passed = &self.text[self.at..self.at + bytes];
        self.line += passed.matches('\n').count();
        if bytes > 0 {
            self.line_starting = passed.ends_with('\n');
        }
        self.at += bytes;
    }

    fn push(&mut self, token: Token) {
        self.out.push(SpannedToken { token, line: self.line, at: self.at });
    }

    fn run(&mut self) -> EvalResult<()> {
        while self.at < self.text.len() {
            let Some((offset, opening, length, sign)) = self.next_opening() else {
                self.push(Token::Data(self.rest().to_owned()));
                self.advance(self.rest().len());
                return Ok(());
            };
            self.data(offset, opening != Opening::Variable, sign);
            self.advance(offset);
            self.open(opening, length)?;
        }
        Ok(())
    }

    /// Adds the text before a tag, trimmed by the tag's whitespace control (`-` or `+`).
    fn data(&mut self, length: usize, is_block: bool, sign: Option<char>) {
        let text = &self.rest()[..length];
        let kept = match sign {
            Some('-') => text.trim_end_matches(is_space),
            None if is_block && self.whitespace.lstrip_blocks => {
                let start = text.rfind('\n').map_or(0, |index| index + 1);
                let blank = (start > 0 || self.line_starting)
                    && !text[start..].is_empty()
                    && text[start..].chars().all(is_space);
                if blank { &text[..start] } else { text }
            }
            _ => text,
        };
        if !kept.is_empty() {
            self.push(Token::Data(kept.to_owned()));
        }
    }

    /// The next tag: its offset, its kind, the length of its opening delimiter, and its sign.
    fn next_opening(&self) -> Option<(usize, Opening, usize, Option<char>)> {
        let rest = self.rest();
        let first = self.delimiters.block.open.chars().next()?;
        for (offset, _) in rest.match_indices(first) {
            let here = &rest[offset..];
            if let Some((length, sign)) = raw_opening(here, self.delimiters) {
                return Some((offset, Opening::Raw, length, sign));
            }
            // As in Jinja2, the longest delimiter comes first, and delimiters of equal length are in reverse
            // order of their names.
            let rules = [
                (self.delimiters.variable.open, Opening::Variable),
                (self.delimiters.comment.open, Opening::Comment),
                (self.delimiters.block.open, Opening::Block),
            ];
            for (start, opening) in rules {
                if let Some(after) = here.strip_prefix(start) {
                    let sign = after.chars().next().filter(|sign| matches!(sign, '-' | '+'));
                    return Some((offset, opening, start.len() + sign.map_or(0, char::len_utf8), sign));
                }
            }
        }
        None
    }

    fn open(&mut self, opening: Opening, length: usize) -> EvalResult<()> {
        match opening {
            Opening::Raw => {
                self.advance(length);
                self.raw()
            }
            Opening::Comment => {
                self.advance(length);
                self.comment()
            }
            Opening::Block => {
                self.push(Token::BlockBegin);
                self.advance(length);
                self.tag(true)
            }
            Opening::Variable => {
                self.push(Token::VariableBegin);
                self.advance(length);
                self.tag(false)
            }
        }
    }

    fn comment(&mut self) -> EvalResult<()> {
        let rest = self.rest();
        let end = self.delimiters.comment.close;
        let Some(offset) = rest.find(end) else {
            // An unclosed comment without content is ignored, as in Jinja2, whose rule requires a character.
            if rest.is_empty() {
                return Ok(());
            }
            return Err(EvalError::at(Kind::Syntax, self.line, "missing end of comment tag"));
        };
        let signed = rest[..offset].ends_with('-');
        self.advance(offset + end.len());
        self.trim_after_tag(signed, rest[..offset].ends_with('+') || signed);
        Ok(())
    }

    fn raw(&mut self) -> EvalResult<()> {
        let rest = self.rest();
        for (offset, _) in rest.match_indices(self.delimiters.block.open) {
            let after = &rest[offset + self.delimiters.block.open.len()..];
            let sign = after.chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let body = after[sign.map_or(0, char::len_utf8)..].trim_start_matches(is_space);
            let Some(body) = body.strip_prefix("endraw") else { continue };
            let body = body.trim_start_matches(is_space);
            let end = self.delimiters.block.close;
            let (tail, end_sign) = match body.chars().next() {
                Some(mark @ ('-' | '+')) if body[1..].starts_with(end) => {
                    (&body[1 + end.len()..], Some(mark))
                }
                _ if body.starts_with(end) => (&body[end.len()..], None),
                _ => continue,
            };
            self.data(offset, true, sign);
            self.advance(rest.len() - tail.len());
            self.trim_after_tag(end_sign == Some('-'), end_sign.is_some());
            return Ok(());
        }
        if rest.is_empty() {
            return Ok(());
        }
        Err(EvalError::at(Kind::Syntax, self.line, "missing end of raw directive"))
    }

    /// Removes the whitespace after a tag: all of it, or one line break.
    fn trim_after_tag(&mut self, strip: bool, signed: bool) {
        let rest = self.rest();
        if strip {
            self.advance(rest.len() - rest.trim_start_matches(is_space).len());
        } else if !signed && self.whitespace.trim_blocks && rest.starts_with('\n') {
            self.advance(1);
        }
    }

    /// Adds the tokens of a tag up to its end.
    fn tag(&mut self, is_block: bool) -> EvalResult<()> {
        let mut open: Vec<&'static str> = Vec::new();
        let end = if is_block { self.delimiters.block.close } else { self.delimiters.variable.close };
        while self.at < self.text.len() {
            if open.is_empty() && self.end_of_tag(is_block, end) {
                return Ok(());
            }
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches(is_space).len();
            if blank > 0 {
                self.advance(blank);
                continue;
            }
            let line = self.line;
            let (token, length) = self.token()?;
            if let Token::Operator(operator) = token {
                balance(&mut open, operator, line)?;
            }
            self.push(token);
            self.advance(length);
        }
        Ok(())
    }

    fn end_of_tag(&mut self, is_block: bool, end: &str) -> bool {
        let rest = self.rest();
        let token = if is_block { Token::BlockEnd } else { Token::VariableEnd };
        let sign = rest.chars().next().filter(|sign| *sign == '-' || (is_block && *sign == '+'));
        let signed = sign.filter(|sign| rest[sign.len_utf8()..].starts_with(end));
        if signed.is_none() && !rest.starts_with(end) {
            return false;
        }
        self.push(token);
        self.advance(end.len() + usize::from(signed.is_some()));
        if is_block {
            self.trim_after_tag(signed == Some('-'), signed.is_some());
        } else if signed.is_some() {
            self.trim_after_tag(true, true);
        }
        true
    }

    /// One token of a tag and its length.
    fn token(&self) -> EvalResult<(Token, usize)> {
        let rest = self.rest();
        let after_dot = self.text[..self.at].ends_with('.');
        let fault = |error: Box<EvalError>| EvalError::at(error.kind, self.line, error.message);
        if let Some((number, length)) = literal::float(rest).filter(|_| !after_dot) {
            return Ok((Token::Float(number), length));
        }
        if let Some(length) = literal::integer_length(rest) {
            return Ok((Token::Int(literal::integer(&rest[..length]).map_err(fault)?), length));
        }
        let name = rest.len() - rest.trim_start_matches(literal::is_word).len();
        if name > 0 {
            let name = literal::name(&rest[..name]).map_err(fault)?;
            return Ok((Token::Name(name.to_owned()), name.len()));
        }
        if let Some(length) = literal::text_length(rest) {
            return Ok((Token::Text(literal::text(&rest[1..length - 1]).map_err(fault)?), length));
        }
        if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            return Ok((Token::Operator(operator), operator.len()));
        }
        let character = rest.chars().next().unwrap_or_default();
        Err(EvalError::at(Kind::Syntax, self.line, format!("unexpected character `{character}`")))
    }
}

fn balance(open: &mut Vec<&'static str>, operator: &'static str, line: usize) -> EvalResult<()> {
    let closing = match operator {
        "{" => "}",
        "(" => ")",
        "[" => "]",
        "}" | ")" | "]" => {
            return match open.pop() {
                Some(expected) if expected == operator => Ok(()),
                Some(expected) => Err(EvalError::at(
                    Kind::Syntax,
                    line,
                    format!("unexpected `{operator}`, expected `{expected}`"),
                )),
                None => Err(EvalError::at(Kind::Syntax, line, format!("unexpected `{operator}`"))),
            };
        }
        _ => return Ok(()),
    };
    open.push(closing);
    Ok(())
}

/// `{% raw %}` at the start of `here`: its length and sign.
fn raw_opening(here: &str, delimiters: &Delimiters) -> Option<(usize, Option<char>)> {
    let after = here.strip_prefix(delimiters.block.open)?;
    let sign = after.chars().next().filter(|sign| matches!(sign, '-' | '+'));
    let body = after[sign.map_or(0, char::len_utf8)..].trim_start_matches(is_space);
    let body = body.strip_prefix("raw")?.trim_start_matches(is_space);
    let tail = match body.strip_prefix('-').and_then(|body| body.strip_prefix(delimiters.block.close)) {
        Some(tail) => tail.trim_start_matches(is_space),
        None => body.strip_prefix(delimiters.block.close)?,
    };
    Some((here.len() - tail.len(), sign))
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Token, Whitespace, tokenize};

    fn check(source: &str, dialect: Dialect, expect: &[&str]) {
        let found = tokenize(source, dialect, Whitespace::default()).unwrap();
        let found: Vec<String> = found
            .iter()
            .map(|placed| match &placed.token {
                Token::Data(text) => format!("{}:{text:?}", placed.line),
                Token::Operator(text) => format!("{}:{text}", placed.line),
                token => format!("{}:{token:?}", placed.line),
            })
            .collect();
        assert_eq!(found, expect, "{source:?}");
    }

    #[test]
    fn signs_trim_whitespace_and_line_numbers_stay() {
        check(
            "a \n{%- x -%} \n b",
            Dialect::Jinja2,
            &["1:\"a\"", "2:BlockBegin", "2:Name(\"x\")", "2:BlockEnd", "3:\"b\"", "3:End"],
        );
    }

    #[test]
    fn braces_within_a_tag_do_not_end_it() {
        check(
            "{{ {'a': {}} }}",
            Dialect::Jinja2,
            &[
                "1:VariableBegin",
                "1:{",
                "1:Text(\"a\")",
                "1::",
                "1:{",
                "1:}",
                "1:}",
                "1:VariableEnd",
                "1:End",
            ],
        );
    }

    #[test]
    fn extra_curly_leaves_plain_tags_alone() {
        check(
            "{{ a }}{{{ b }}}{{# c #}}",
            Dialect::ExtraCurly,
            &["1:\"{{ a }}\"", "1:VariableBegin", "1:Name(\"b\")", "1:VariableEnd", "1:End"],
        );
    }
}

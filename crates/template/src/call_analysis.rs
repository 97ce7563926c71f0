//! Analyzes the uses of a name in a template, from its tokens alone.

use crate::lexer::{Token, tokenize};
use crate::source::{Dialect, Whitespace};

/// Whether a template, in either dialect, uses this name only in calls with literal arguments: strings
/// without braces, numbers, `true`, `false` and `none`, positional or named. A template that cannot be parsed
/// counts as not using the name, because it is not rendered.
pub fn has_only_literal_calls(text: &str, name: &str) -> bool {
    [Dialect::Jinja2, Dialect::ExtraCurly].into_iter().all(|dialect| {
        let Ok(placed) = tokenize(text, dialect, Whitespace::default()) else { return true };
        let tokens: Vec<Token> = placed.into_iter().map(|placed| placed.token).collect();
        let mut uses = (0..tokens.len()).filter(|place| is_name(&tokens[*place], name));
        uses.all(|place| is_literal_call(&tokens[place + 1..]))
    })
}

fn is_name(token: &Token, name: &str) -> bool {
    matches!(token, Token::Name(found) if found == name)
}

/// Whether these tokens begin with arguments in parentheses that are all literals.
fn is_literal_call(tokens: &[Token]) -> bool {
    let [Token::Operator("("), arguments @ ..] = tokens else { return false };
    let mut left = arguments;
    loop {
        left = match left {
            [Token::Operator(")"), ..] => return true,
            [Token::Operator(",") | Token::Int(_), rest @ ..]
            | [Token::Name(_), Token::Operator("="), rest @ ..] => rest,
            [Token::Text(text), rest @ ..] if !text.contains('{') => rest,
            [Token::Name(word), rest @ ..]
                if matches!(word.as_str(), "true" | "false" | "True" | "False" | "none" | "None") =>
            {
                rest
            }
            _ => return false,
        }
    }
}

//! Character sets in square brackets. Sets do not nest, and a hyphen at either end is literal.

use super::super::syntax::{Item, Set, SetPart};
use super::{Parser, Refusal, Token};

impl Parser {
    /// Parses a set after its opening bracket.
    pub(super) fn set(&mut self) -> Result<Item, Refusal> {
        let open = || "`[` without `]`".to_owned();
        let negated = self.accept('^');
        let mut parts: Vec<SetPart> = Vec::new();
        loop {
            let token = self.next().ok_or_else(open)?;
            if token == (Token { escaped: false, character: ']' }) && !parts.is_empty() {
                break;
            }
            let from = self.part(token)?;
            if !self.accept('-') {
                parts.push(from);
                continue;
            }
            let token = self.next().ok_or_else(open)?;
            if token == (Token { escaped: false, character: ']' }) {
                parts.extend([from, SetPart::Range(0x2D, 0x2D)]);
                break;
            }
            match (from, self.part(token)?) {
                (SetPart::Range(from, _), SetPart::Range(to, _)) if from <= to => {
                    parts.push(SetPart::Range(from, to));
                }
                _ => {
                    return Err(
                        "a range between `[` and `]` is reversed, or has a class as a bound".to_owned()
                    );
                }
            }
        }
        Ok(Item::Set(Set { negated, parts }))
    }

    fn part(&mut self, token: Token) -> Result<SetPart, Refusal> {
        if token.escaped {
            return self.escape_in_set(token.character);
        }
        let number = u32::from(token.character);
        Ok(SetPart::Range(number, number))
    }
}

//! Character sets in square brackets. Sets do not nest, and a hyphen at either end is literal.

use super::super::syntax::{CharSet, CharSetPart, PatternItem};
use super::{PatternParser, PatternSyntaxError, PatternToken};

impl PatternParser {
    /// Parses a set after its opening bracket.
    pub(super) fn set(&mut self) -> Result<PatternItem, PatternSyntaxError> {
        let open = || "`[` without `]`".to_owned();
        let negated = self.accept('^');
        let mut parts: Vec<CharSetPart> = Vec::new();
        loop {
            let token = self.next().ok_or_else(open)?;
            if token == (PatternToken { escaped: false, character: ']' }) && !parts.is_empty() {
                break;
            }
            let from = self.part(token)?;
            if !self.accept('-') {
                parts.push(from);
                continue;
            }
            let token = self.next().ok_or_else(open)?;
            if token == (PatternToken { escaped: false, character: ']' }) {
                parts.extend([from, CharSetPart::Range(0x2D, 0x2D)]);
                break;
            }
            match (from, self.part(token)?) {
                (CharSetPart::Range(from, _), CharSetPart::Range(to, _)) if from <= to => {
                    parts.push(CharSetPart::Range(from, to));
                }
                _ => {
                    return Err(
                        "a range between `[` and `]` is reversed, or has a class as a bound".to_owned()
                    );
                }
            }
        }
        Ok(PatternItem::Set(CharSet { negated, parts }))
    }

    fn part(&mut self, token: PatternToken) -> Result<CharSetPart, PatternSyntaxError> {
        if token.escaped {
            return self.escape_in_set(token.character);
        }
        let number = u32::from(token.character);
        Ok(CharSetPart::Range(number, number))
    }
}

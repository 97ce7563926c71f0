//! Escape sequences: a backslash and a character.

use super::super::syntax::{Anchor, CharClass, CharSet, CharSetPart, PatternItem};
use super::{PatternParser, PatternSyntaxError};

impl PatternParser {
    /// Parses an escape outside of brackets.
    pub(super) fn escape(&mut self, character: char) -> Result<PatternItem, PatternSyntaxError> {
        if let Some((class, negated)) = char_class(character) {
            return Ok(PatternItem::Set(CharSet {
                negated: false,
                parts: vec![CharSetPart::Class { class, negated }],
            }));
        }
        match character {
            'A' => Ok(PatternItem::Anchor(Anchor::TextStart)),
            'Z' => Ok(PatternItem::Anchor(Anchor::TextEnd)),
            'b' => Ok(PatternItem::Anchor(Anchor::Boundary)),
            'B' => Ok(PatternItem::Anchor(Anchor::NoBoundary)),
            '0' => {
                let digits = format!("0{}", self.take(2, is_octal));
                octal(&digits).map(PatternItem::Literal)
            }
            '1'..='9' => {
                let mut digits = character.to_string();
                digits += &self.take(1, |character| character.is_ascii_digit());
                if digits.len() == 2 && digits.chars().all(is_octal) {
                    digits += &self.take(1, is_octal);
                    if digits.len() == 3 {
                        return octal(&digits).map(PatternItem::Literal);
                    }
                }
                let number = digits.parse().map_err(|_| invalid_escape(character))?;
                self.referable_group(number).map(PatternItem::Backreference)
            }
            _ => self.character(character).map(PatternItem::Literal),
        }
    }

    /// Parses an escape between brackets.
    pub(super) fn escape_in_set(&mut self, character: char) -> Result<CharSetPart, PatternSyntaxError> {
        if let Some((kind, negated)) = char_class(character) {
            return Ok(CharSetPart::Class { class: kind, negated });
        }
        let number = match character {
            'b' => 8,
            '0'..='7' => octal(&format!("{character}{}", self.take(2, is_octal)))?,
            _ => self.character(character)?,
        };
        Ok(CharSetPart::Range(number, number))
    }

    /// Parses an escaped character, or a character that is given by its code.
    fn character(&mut self, character: char) -> Result<u32, PatternSyntaxError> {
        match character {
            'a' => Ok(7),
            'f' => Ok(12),
            'n' => Ok(10),
            'r' => Ok(13),
            't' => Ok(9),
            'v' => Ok(11),
            'x' => self.hexadecimal(character, 2),
            'u' => self.hexadecimal(character, 4),
            'U' => self.hexadecimal(character, 8),
            'N' => {
                Err("`\\N{…}`, a character by its name, is not supported: write `\\u` and its code"
                    .to_owned())
            }
            other if other.is_ascii_alphanumeric() => Err(invalid_escape(other)),
            other => Ok(u32::from(other)),
        }
    }

    fn hexadecimal(&mut self, character: char, count: usize) -> Result<u32, PatternSyntaxError> {
        let digits = self.take(count, |character| character.is_ascii_hexdigit());
        let number = u32::from_str_radix(&digits, 16).ok().filter(|number| *number <= 0x10_FFFF);
        number.filter(|_| digits.len() == count).ok_or_else(|| {
            format!("`\\{character}{digits}` is not a character code of {count} hexadecimal digits")
        })
    }
}

fn invalid_escape(character: char) -> PatternSyntaxError {
    format!("`\\{character}` is not a valid escape")
}

fn is_octal(character: char) -> bool {
    matches!(character, '0'..='7')
}

fn octal(digits: &str) -> Result<u32, PatternSyntaxError> {
    let number = u32::from_str_radix(digits, 8).ok().filter(|number| *number <= 0o377);
    number.ok_or_else(|| format!("`\\{digits}` is greater than the maximum octal escape, `\\377`"))
}

fn char_class(character: char) -> Option<(CharClass, bool)> {
    match character {
        'd' => Some((CharClass::Digit, false)),
        'D' => Some((CharClass::Digit, true)),
        's' => Some((CharClass::Whitespace, false)),
        'S' => Some((CharClass::Whitespace, true)),
        'w' => Some((CharClass::Word, false)),
        'W' => Some((CharClass::Word, true)),
        _ => None,
    }
}

//! Escape sequences: a backslash and a character.

use super::super::syntax::{At, Item, Kind, Set, SetPart};
use super::{Parser, Refusal};

impl Parser {
    /// An escape outside of brackets.
    pub(super) fn escape(&mut self, character: char) -> Result<Item, Refusal> {
        if let Some((kind, negated)) = kind(character) {
            return Ok(Item::Set(Set { negated: false, parts: vec![SetPart::Kind { kind, negated }] }));
        }
        match character {
            'A' => Ok(Item::At(At::TextStart)),
            'Z' => Ok(Item::At(At::TextEnd)),
            'b' => Ok(Item::At(At::Boundary)),
            'B' => Ok(Item::At(At::NoBoundary)),
            '0' => {
                let digits = format!("0{}", self.take(2, is_octal));
                octal(&digits).map(Item::Literal)
            }
            '1'..='9' => {
                let mut digits = character.to_string();
                digits += &self.take(1, |character| character.is_ascii_digit());
                if digits.len() == 2 && digits.chars().all(is_octal) {
                    digits += &self.take(1, is_octal);
                    if digits.len() == 3 {
                        return octal(&digits).map(Item::Literal);
                    }
                }
                let number = digits.parse().map_err(|_| bad(character))?;
                self.known_group(number).map(Item::Again)
            }
            _ => self.character(character).map(Item::Literal),
        }
    }

    /// An escape between brackets.
    pub(super) fn escape_in_set(&mut self, character: char) -> Result<SetPart, Refusal> {
        if let Some((kind, negated)) = kind(character) {
            return Ok(SetPart::Kind { kind, negated });
        }
        let number = match character {
            'b' => 8,
            '0'..='7' => octal(&format!("{character}{}", self.take(2, is_octal)))?,
            _ => self.character(character)?,
        };
        Ok(SetPart::Range(number, number))
    }

    /// An escaped character, or one given by its code.
    fn character(&mut self, character: char) -> Result<u32, Refusal> {
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
            other if other.is_ascii_alphanumeric() => Err(bad(other)),
            other => Ok(u32::from(other)),
        }
    }

    fn hexadecimal(&mut self, character: char, count: usize) -> Result<u32, Refusal> {
        let digits = self.take(count, |character| character.is_ascii_hexdigit());
        let number = u32::from_str_radix(&digits, 16).ok().filter(|number| *number <= 0x10_FFFF);
        number.filter(|_| digits.len() == count).ok_or_else(|| {
            format!("`\\{character}{digits}` is not a character code of {count} hexadecimal digits")
        })
    }
}

fn bad(character: char) -> Refusal {
    format!("`\\{character}` is not a valid escape")
}

fn is_octal(character: char) -> bool {
    matches!(character, '0'..='7')
}

fn octal(digits: &str) -> Result<u32, Refusal> {
    let number = u32::from_str_radix(digits, 8).ok().filter(|number| *number <= 0o377);
    number.ok_or_else(|| format!("`\\{digits}` is greater than the maximum octal escape, `\\377`"))
}

fn kind(character: char) -> Option<(Kind, bool)> {
    match character {
        'd' => Some((Kind::Digit, false)),
        'D' => Some((Kind::Digit, true)),
        's' => Some((Kind::Blank, false)),
        'S' => Some((Kind::Blank, true)),
        'w' => Some((Kind::Word, false)),
        'W' => Some((Kind::Word, true)),
        _ => None,
    }
}

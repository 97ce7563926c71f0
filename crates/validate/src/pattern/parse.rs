//! Parses patterns like Python 3.11, and rejects the patterns that Python rejects.

mod escape;
mod group;
mod set;

use super::syntax::{Anchor, Flags, Greediness, PatternItem, Repeat, Sequence};
use super::width::{self, PatternWidth};

/// Maximum nesting depth of groups.
const MAX_GROUP_DEPTH: usize = 200;
/// The smallest repetition count that is too large for Python.
const MAX_REPEAT: u64 = u32::MAX as u64;

/// The message for a pattern that cannot be parsed.
pub type PatternSyntaxError = String;

/// A whole pattern.
#[derive(Debug)]
pub struct ParsedPattern {
    /// Flags of the whole pattern.
    pub flags: Flags,
    /// The alternatives.
    pub branches: Vec<Sequence>,
}

/// Parses a pattern.
pub fn parse(written: &str) -> Result<ParsedPattern, PatternSyntaxError> {
    let mut parser = PatternParser {
        tokens: tokens(written)?,
        position: 0,
        flags: Flags::default(),
        unicode: false,
        groups: vec![Some(PatternWidth::ANY)],
        names: Vec::new(),
        condition_groups: Vec::new(),
        look_behind_start: None,
        depth: 0,
    };
    let branches = parser.branches(false)?;
    if parser.peek().is_some() {
        return Err("`)` without `(`".to_owned());
    }
    if let Some(group) = parser.condition_groups.iter().find(|group| **group >= parser.groups.len()) {
        return Err(format!("group {group} not found"));
    }
    if parser.flags.ascii && parser.unicode {
        return Err("the flags `a` and `u` are mutually exclusive".to_owned());
    }
    Ok(ParsedPattern { flags: parser.flags, branches })
}

/// A character of a pattern, with or without a backslash before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PatternToken {
    escaped: bool,
    character: char,
}

fn tokens(written: &str) -> Result<Vec<PatternToken>, PatternSyntaxError> {
    let mut tokens = Vec::with_capacity(written.len());
    let mut characters = written.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            let character = characters.next().ok_or("the pattern ends with a single `\\`")?;
            tokens.push(PatternToken { escaped: true, character });
        } else {
            tokens.push(PatternToken { escaped: false, character });
        }
    }
    Ok(tokens)
}

struct PatternParser {
    tokens: Vec<PatternToken>,
    position: usize,
    /// Flags of the whole pattern.
    flags: Flags,
    /// Whether the flag `u` is set for the whole pattern.
    unicode: bool,
    /// The widths of groups that are closed. Group 0 is the whole pattern.
    groups: Vec<Option<PatternWidth>>,
    names: Vec<(String, usize)>,
    /// Numbers of groups that conditionals refer to.
    condition_groups: Vec<usize>,
    /// Number of groups before the look-behind that is being parsed.
    look_behind_start: Option<usize>,
    depth: usize,
}

impl PatternParser {
    fn peek(&self) -> Option<PatternToken> {
        self.tokens.get(self.position).copied()
    }

    /// The next character, if it is not escaped.
    fn peek_unescaped(&self) -> Option<char> {
        self.peek().filter(|token| !token.escaped).map(|token| token.character)
    }

    fn next(&mut self) -> Option<PatternToken> {
        let token = self.peek()?;
        self.position += 1;
        Some(token)
    }

    fn accept(&mut self, character: char) -> bool {
        let found = self.peek_unescaped() == Some(character);
        self.position += usize::from(found);
        found
    }

    /// Takes up to `most` unescaped characters of one kind.
    fn take(&mut self, most: usize, is_kind: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(character) =
            self.peek_unescaped().filter(|character| taken.len() < most && is_kind(*character))
        {
            taken.push(character);
            self.position += 1;
        }
        taken
    }

    /// Parses alternatives, up to a closing bracket or the end.
    fn branches(&mut self, verbose: bool) -> Result<Vec<Sequence>, PatternSyntaxError> {
        let is_whole = self.depth == 0;
        let mut verbose = verbose;
        let mut branches = Vec::new();
        loop {
            self.depth += 1;
            let first = is_whole && branches.is_empty();
            branches.push(self.sequence(verbose, first)?);
            self.depth -= 1;
            if !self.accept('|') {
                return Ok(branches);
            }
            if is_whole {
                verbose = self.flags.verbose;
            }
        }
    }

    /// Parses a sequence of items. The first sequence of the whole pattern may begin with flags.
    fn sequence(&mut self, verbose: bool, first: bool) -> Result<Sequence, PatternSyntaxError> {
        let mut verbose = verbose;
        let mut items = Sequence::new();
        while let Some(token) = self.peek() {
            if matches!(self.peek_unescaped(), Some('|' | ')')) {
                break;
            }
            self.position += 1;
            if token.escaped {
                items.push(self.escape(token.character)?);
                continue;
            }
            match token.character {
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' if verbose => {}
                '#' if verbose => {
                    while self
                        .next()
                        .is_some_and(|token| token != PatternToken { escaped: false, character: '\n' })
                    {
                    }
                }
                '[' => items.push(self.set()?),
                '.' => items.push(PatternItem::Any),
                '^' => items.push(PatternItem::Anchor(Anchor::Start)),
                '$' => items.push(PatternItem::Anchor(Anchor::End)),
                '(' => {
                    let may_set_flags = first && items.is_empty();
                    if let Some(item) = self.group(verbose, may_set_flags)? {
                        items.push(item);
                    } else if may_set_flags {
                        verbose = self.flags.verbose;
                    }
                }
                sign @ ('*' | '+' | '?' | '{') => match self.repetition(sign)? {
                    Some((least, most)) => self.repeat(least, most, &mut items)?,
                    None => items.push(PatternItem::Literal(u32::from('{'))),
                },
                other => items.push(PatternItem::Literal(u32::from(other))),
            }
        }
        Ok(items)
    }

    /// The minimum and maximum of a repetition; `None` for a literal brace.
    fn repetition(&mut self, sign: char) -> Result<Option<(u32, Option<u32>)>, PatternSyntaxError> {
        match sign {
            '*' => return Ok(Some((0, None))),
            '+' => return Ok(Some((1, None))),
            '?' => return Ok(Some((0, Some(1)))),
            _ => {}
        }
        let start = self.position;
        if self.peek_unescaped() == Some('}') {
            return Ok(None);
        }
        let least = self.take(usize::MAX, |character| character.is_ascii_digit());
        let most = if self.accept(',') {
            self.take(usize::MAX, |character| character.is_ascii_digit())
        } else {
            least.clone()
        };
        if !self.accept('}') {
            self.position = start;
            return Ok(None);
        }
        let number = |digits: &str| match digits.parse::<u64>() {
            _ if digits.is_empty() => Ok(None),
            Ok(number) if number < MAX_REPEAT => Ok(u32::try_from(number).ok()),
            _ => Err("a repetition count is too large".to_owned()),
        };
        let (least, most) = (number(&least)?.unwrap_or(0), number(&most)?);
        if most.is_some_and(|most| most < least) {
            return Err("the minimum of a repetition is greater than its maximum".to_owned());
        }
        Ok(Some((least, most)))
    }

    /// Repeats the last of `items`.
    fn repeat(
        &mut self,
        least: u32,
        most: Option<u32>,
        items: &mut Sequence,
    ) -> Result<(), PatternSyntaxError> {
        match items.last() {
            None | Some(PatternItem::Anchor(_)) => {
                return Err("a repetition has nothing to repeat".to_owned());
            }
            Some(PatternItem::Repeat(_)) => return Err("a repetition is repeated without a group".to_owned()),
            Some(_) => {}
        }
        let greed = if self.accept('?') {
            Greediness::Lazy
        } else if self.accept('+') {
            Greediness::Possessive
        } else {
            Greediness::Greedy
        };
        let what = items.pop().into_iter().collect();
        items.push(PatternItem::Repeat(Repeat { items: what, min: least, max: most, greediness: greed }));
        Ok(())
    }

    /// Checks that a group may be referred to, and returns its number.
    fn referable_group(&self, number: usize) -> Result<usize, PatternSyntaxError> {
        match self.groups.get(number) {
            None => Err(format!("group {number} is referenced before it is defined")),
            Some(None) => Err(format!("group {number} refers to itself")),
            Some(Some(_)) => self.check_look_behind(number),
        }
    }

    fn check_look_behind(&self, number: usize) -> Result<usize, PatternSyntaxError> {
        match self.look_behind_start {
            Some(before) if number >= before => {
                Err(format!("group {number} is referenced within the look-behind that defines it"))
            }
            Some(_) if self.groups[number].is_none() => Err(format!("group {number} refers to itself")),
            _ => Ok(number),
        }
    }

    fn close(&mut self, number: usize, branches: &[Sequence]) {
        self.groups[number] = Some(width::of(branches, &self.groups));
    }
}

//! Groups: everything in round brackets.

use super::super::syntax::{Flags, Group, Item, Look};
use super::super::width;
use super::{Parser, Refusal};

/// The flags at the start of a group, and what they apply to.
enum Given {
    /// They apply to the whole pattern.
    Whole,
    /// They apply to a group: turned on, turned off, and whether `u` is on.
    Group(Flags, Flags, bool),
}

impl Parser {
    /// Parses a group after its opening bracket; `None` for comments and for flags of the whole pattern.
    pub(super) fn group(&mut self, verbose: bool, may_set_flags: bool) -> Result<Option<Item>, Refusal> {
        if self.depth > super::DEEPEST {
            return Err("groups are nested too deeply".to_owned());
        }
        if !self.accept('?') {
            return self.capture(None, verbose).map(Some);
        }
        let token =
            self.next().filter(|token| !token.escaped).ok_or("`(?` is not followed by a known extension")?;
        match token.character {
            'P' if self.accept('<') => {
                let name = self.name('>')?;
                self.capture(Some(name), verbose).map(Some)
            }
            'P' if self.accept('=') => {
                let name = self.name(')')?;
                let number = self.named(&name)?;
                self.known_group(number).map(|number| Some(Item::Again(number)))
            }
            ':' => self.plain_group(Flags::default(), Flags::default(), false, verbose).map(Some),
            '>' => Ok(Some(Item::Atomic(self.inner(verbose)?))),
            '#' => {
                while let Some(token) = self.next() {
                    if !token.escaped && token.character == ')' {
                        return Ok(None);
                    }
                }
                Err("a comment is not closed".to_owned())
            }
            '=' => self.look(false, false, verbose).map(Some),
            '!' => self.look(false, true, verbose).map(Some),
            '<' if self.accept('=') => self.look(true, false, verbose).map(Some),
            '<' if self.accept('!') => self.look(true, true, verbose).map(Some),
            '(' => self.conditional(verbose).map(Some),
            first @ ('i' | 'm' | 's' | 'x' | 'a' | 'u' | '-') => match self.given(first)? {
                Given::Whole if may_set_flags => Ok(None),
                Given::Whole => Err("flags of the whole pattern are not at its start".to_owned()),
                Given::Group(on, off, unicode) => self.plain_group(on, off, unicode, verbose).map(Some),
            },
            '<' => Err("`(?<` is not followed by `=` or `!`; a named group is `(?P<name>…)`".to_owned()),
            other => Err(format!("`(?{other}` is not a valid group")),
        }
    }

    /// Parses the alternatives of a group, and its closing bracket.
    fn inner(&mut self, verbose: bool) -> Result<Vec<super::Sequence>, Refusal> {
        let branches = self.branches(verbose)?;
        if self.accept(')') { Ok(branches) } else { Err("`(` without `)`".to_owned()) }
    }

    fn capture(&mut self, name: Option<String>, verbose: bool) -> Result<Item, Refusal> {
        let number = self.groups.len();
        self.groups.push(None);
        if let Some(name) = name {
            if self.names.iter().any(|(known, _)| *known == name) {
                return Err(format!("two groups have the name `{name}`"));
            }
            self.names.push((name, number));
        }
        let branches = self.inner(verbose)?;
        self.close(number, &branches);
        let (on, off) = (Flags::default(), Flags::default());
        Ok(Item::Group(Group { number: Some(number), on, off, unicode: false, branches }))
    }

    fn plain_group(&mut self, on: Flags, off: Flags, unicode: bool, verbose: bool) -> Result<Item, Refusal> {
        let branches = self.inner((verbose || on.verbose) && !off.verbose)?;
        Ok(Item::Group(Group { number: None, on, off, unicode, branches }))
    }

    fn look(&mut self, behind: bool, negated: bool, verbose: bool) -> Result<Item, Refusal> {
        let before = self.behind;
        if behind && before.is_none() {
            self.behind = Some(self.groups.len());
        }
        let branches = self.inner(verbose)?;
        self.behind = before;
        if behind {
            let (least, most) = width::of(&branches, &self.groups);
            if least != most {
                return Err("a look-behind does not have a fixed width".to_owned());
            }
        }
        Ok(Item::Look(Look { behind, negated, branches }))
    }

    fn conditional(&mut self, verbose: bool) -> Result<Item, Refusal> {
        let mut name = String::new();
        while let Some(token) = self.next().filter(|token| token.escaped || token.character != ')') {
            name.push(token.character);
        }
        let group = if name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() {
            let number = name.parse().ok().filter(|number: &usize| (1..1 << 30).contains(number));
            let number = number.ok_or_else(|| format!("there is no group {name}"))?;
            self.asked.push(number);
            number
        } else {
            self.named(&name)?
        };
        self.not_in_look_behind(group)?;
        if self.groups.get(group).is_some_and(Option::is_none) {
            return Err(format!("a condition on group {group} within that group is not supported"));
        }
        self.depth += 1;
        let yes = self.sequence(verbose, false)?;
        let no = if self.accept('|') { Some(self.sequence(verbose, false)?) } else { None };
        self.depth -= 1;
        if self.accept(')') {
            return Ok(Item::Conditional { group, yes, no });
        }
        Err(match self.plain() {
            Some('|') => "a condition has more than two alternatives".to_owned(),
            _ => "`(` without `)`".to_owned(),
        })
    }

    fn name(&mut self, end: char) -> Result<String, Refusal> {
        let mut name = String::new();
        loop {
            let token = self.next().ok_or("the name of a group is not closed")?;
            if !token.escaped && token.character == end {
                break;
            }
            name.extend(token.escaped.then_some('\\'));
            name.push(token.character);
        }
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && name.chars().all(|character| character.is_alphanumeric() || character == '_');
        if is_name { Ok(name) } else { Err(format!("`{name}` is not a valid group name")) }
    }

    fn named(&self, name: &str) -> Result<usize, Refusal> {
        let found = self.names.iter().find(|(known, _)| known == name).map(|(_, number)| *number);
        found.ok_or_else(|| format!("there is no group `{name}`"))
    }

    /// Parses the flags of a group, after the first one.
    fn given(&mut self, first: char) -> Result<Given, Refusal> {
        let missing = || "flags are not followed by `)` or `:`".to_owned();
        let (mut on, mut off) = (Flags::default(), Flags::default());
        let mut unicode = false;
        let mut sign = first;
        while sign != '-' {
            match sign {
                'a' => on.ascii = true,
                'u' => unicode = true,
                ')' => {
                    let all = Group { number: None, on, off, unicode: false, branches: Vec::new() };
                    self.flags = self.flags.within(&all);
                    self.unicode |= unicode;
                    return Ok(Given::Whole);
                }
                ':' => return Ok(Given::Group(on, off, unicode)),
                other => set(&mut on, other)?,
            }
            if on.ascii && unicode {
                return Err("the flags `a` and `u` are mutually exclusive".to_owned());
            }
            sign = self.next().filter(|token| !token.escaped).ok_or_else(missing)?.character;
        }
        loop {
            sign = self.next().filter(|token| !token.escaped).ok_or_else(missing)?.character;
            if sign == ':' && off != Flags::default() {
                break;
            }
            set(&mut off, sign)?;
        }
        let both = [
            on.ignore_case && off.ignore_case,
            on.multiline && off.multiline,
            on.dot_all && off.dot_all,
            on.verbose && off.verbose,
        ];
        if both.contains(&true) {
            return Err("a flag is turned on and off".to_owned());
        }
        Ok(Given::Group(on, off, unicode))
    }
}

fn set(flags: &mut Flags, sign: char) -> Result<(), Refusal> {
    match sign {
        'i' => flags.ignore_case = true,
        'm' => flags.multiline = true,
        's' => flags.dot_all = true,
        'x' => flags.verbose = true,
        other => return Err(format!("`{other}` is not a flag that is allowed here")),
    }
    Ok(())
}

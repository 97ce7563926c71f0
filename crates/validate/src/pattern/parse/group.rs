//! Parses groups: all constructs in round brackets.

use super::super::syntax::{Flags, LookAround, PatternGroup, PatternItem};
use super::super::width;
use super::{PatternParser, PatternSyntaxError};

/// The flags at the start of a group, and their scope.
enum GroupFlags {
    /// Flags for the whole pattern.
    Whole,
    /// Flags for a group: the flags that are turned on, the flags that are turned off, and whether `u` is
    /// turned on.
    Group(Flags, Flags, bool),
}

impl PatternParser {
    /// Parses a group after its opening bracket; `None` for comments and for flags of the whole pattern.
    pub(super) fn group(
        &mut self,
        verbose: bool,
        may_set_flags: bool,
    ) -> Result<Option<PatternItem>, PatternSyntaxError> {
        if self.depth > super::MAX_GROUP_DEPTH {
            return Err("groups are nested too deeply".to_owned());
        }
        if !self.accept('?') {
            return self.capture(None, verbose).map(Some);
        }
        let token =
            self.next().filter(|token| !token.escaped).ok_or("`(?` is not followed by a known extension")?;
        match token.character {
            'P' if self.accept('<') => {
                let name = self.group_name('>')?;
                self.capture(Some(name), verbose).map(Some)
            }
            'P' if self.accept('=') => {
                let name = self.group_name(')')?;
                let number = self.group_number(&name)?;
                self.referable_group(number).map(|number| Some(PatternItem::Backreference(number)))
            }
            ':' => self.plain_group(Flags::default(), Flags::default(), false, verbose).map(Some),
            '>' => Ok(Some(PatternItem::Atomic(self.inner(verbose)?))),
            '#' => {
                while let Some(token) = self.next() {
                    if !token.escaped && token.character == ')' {
                        return Ok(None);
                    }
                }
                Err("a comment is not closed".to_owned())
            }
            '=' => self.look_around(false, false, verbose).map(Some),
            '!' => self.look_around(false, true, verbose).map(Some),
            '<' if self.accept('=') => self.look_around(true, false, verbose).map(Some),
            '<' if self.accept('!') => self.look_around(true, true, verbose).map(Some),
            '(' => self.conditional(verbose).map(Some),
            first @ ('i' | 'm' | 's' | 'x' | 'a' | 'u' | '-') => match self.group_flags(first)? {
                GroupFlags::Whole if may_set_flags => Ok(None),
                GroupFlags::Whole => Err("flags of the whole pattern are not at its start".to_owned()),
                GroupFlags::Group(on, off, unicode) => self.plain_group(on, off, unicode, verbose).map(Some),
            },
            '<' => Err("`(?<` is not followed by `=` or `!`; a named group is `(?P<name>…)`".to_owned()),
            other => Err(format!("`(?{other}` is not a valid group")),
        }
    }

    /// Parses the alternatives of a group, and its closing bracket.
    fn inner(&mut self, verbose: bool) -> Result<Vec<super::Sequence>, PatternSyntaxError> {
        let branches = self.branches(verbose)?;
        if self.accept(')') { Ok(branches) } else { Err("`(` without `)`".to_owned()) }
    }

    fn capture(&mut self, name: Option<String>, verbose: bool) -> Result<PatternItem, PatternSyntaxError> {
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
        Ok(PatternItem::Group(PatternGroup { number: Some(number), on, off, unicode: false, branches }))
    }

    fn plain_group(
        &mut self,
        on: Flags,
        off: Flags,
        unicode: bool,
        verbose: bool,
    ) -> Result<PatternItem, PatternSyntaxError> {
        let branches = self.inner((verbose || on.verbose) && !off.verbose)?;
        Ok(PatternItem::Group(PatternGroup { number: None, on, off, unicode, branches }))
    }

    fn look_around(
        &mut self,
        behind: bool,
        negated: bool,
        verbose: bool,
    ) -> Result<PatternItem, PatternSyntaxError> {
        let before = self.look_behind_start;
        if behind && before.is_none() {
            self.look_behind_start = Some(self.groups.len());
        }
        let branches = self.inner(verbose)?;
        self.look_behind_start = before;
        if behind {
            let width = width::of(&branches, &self.groups);
            if !width.is_fixed() {
                return Err("a look-behind does not have a fixed width".to_owned());
            }
        }
        Ok(PatternItem::LookAround(LookAround { behind, negated, branches }))
    }

    fn conditional(&mut self, verbose: bool) -> Result<PatternItem, PatternSyntaxError> {
        let mut name = String::new();
        while let Some(token) = self.next().filter(|token| token.escaped || token.character != ')') {
            name.push(token.character);
        }
        let group = if name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() {
            let number = name.parse().ok().filter(|number: &usize| (1..1 << 30).contains(number));
            let number = number.ok_or_else(|| format!("group {name} not found"))?;
            self.condition_groups.push(number);
            number
        } else {
            self.group_number(&name)?
        };
        self.check_look_behind(group)?;
        if self.groups.get(group).is_some_and(Option::is_none) {
            return Err(format!("a condition on group {group} within that group is not supported"));
        }
        self.depth += 1;
        let yes = self.sequence(verbose, false)?;
        let no = if self.accept('|') { Some(self.sequence(verbose, false)?) } else { None };
        self.depth -= 1;
        if self.accept(')') {
            return Ok(PatternItem::Conditional { group, yes, no });
        }
        Err(match self.peek_unescaped() {
            Some('|') => "a condition has more than two alternatives".to_owned(),
            _ => "`(` without `)`".to_owned(),
        })
    }

    fn group_name(&mut self, end: char) -> Result<String, PatternSyntaxError> {
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

    fn group_number(&self, name: &str) -> Result<usize, PatternSyntaxError> {
        let found = self.names.iter().find(|(known, _)| known == name).map(|(_, number)| *number);
        found.ok_or_else(|| format!("group `{name}` not found"))
    }

    /// Parses the flags of a group, after the first flag.
    fn group_flags(&mut self, first: char) -> Result<GroupFlags, PatternSyntaxError> {
        let missing = || "flags are not followed by `)` or `:`".to_owned();
        let (mut on, mut off) = (Flags::default(), Flags::default());
        let mut unicode = false;
        let mut sign = first;
        while sign != '-' {
            match sign {
                'a' => on.ascii = true,
                'u' => unicode = true,
                ')' => {
                    let all = PatternGroup { number: None, on, off, unicode: false, branches: Vec::new() };
                    self.flags = self.flags.within(&all);
                    self.unicode |= unicode;
                    return Ok(GroupFlags::Whole);
                }
                ':' => return Ok(GroupFlags::Group(on, off, unicode)),
                other => set_flag(&mut on, other)?,
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
            set_flag(&mut off, sign)?;
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
        Ok(GroupFlags::Group(on, off, unicode))
    }
}

fn set_flag(flags: &mut Flags, sign: char) -> Result<(), PatternSyntaxError> {
    match sign {
        'i' => flags.ignore_case = true,
        'm' => flags.multiline = true,
        's' => flags.dot_all = true,
        'x' => flags.verbose = true,
        other => return Err(format!("`{other}` is not a flag that is allowed here")),
    }
    Ok(())
}

//! The part of the JSONPath of `jsonpath_ng.ext` that data repos use: fields, indices, slices, `*`, `..` before a
//! field, and filters that compare a field with a literal. All other paths are refused.

use std::rc::Rc;

use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::Interpreter;
use crate::syntax::Comparison;
use crate::value::{Key, Value};

/// A parsed path.
pub(crate) struct JsonPath(Vec<Segment>);

enum Segment {
    Fields(Vec<Rc<str>>),
    Index(i128),
    Slice([Option<i128>; 3]),
    Wildcard,
    /// `..field`
    Descendants(Rc<str>),
    Filter(Vec<Condition>),
}

struct Condition {
    fields: Vec<Rc<str>>,
    test: Option<(Comparison, Value)>,
}

/// A matching value, and the path to it.
#[derive(Clone)]
pub(crate) struct PathMatch {
    pub value: Value,
    steps: Vec<MatchStep>,
}

#[derive(Clone)]
enum MatchStep {
    Field(Rc<str>),
    Index(usize),
}

impl PathMatch {
    /// The pointer to the value, as qontract-reconcile writes it.
    pub fn pointer(&self) -> EvalResult<Value> {
        let mut pointer = String::new();
        for step in &self.steps {
            pointer.push('/');
            match step {
                MatchStep::Field(name)
                    if name
                        .chars()
                        .all(|character| character.is_ascii_alphanumeric() || character == '_') =>
                {
                    pointer.push_str(name);
                }
                MatchStep::Field(name) => return refused(format!("a pointer through the field `{name}`")),
                // The pattern in qontract-reconcile matches only one digit.
                MatchStep::Index(index) if *index < 10 => pointer.push_str(&index.to_string()),
                MatchStep::Index(index) => pointer.push_str(&format!("[{index}]")),
            }
        }
        if pointer.is_empty() { refused("a pointer to the whole value") } else { Ok(Value::text(pointer)) }
    }
}

/// Whether an index skips a dict: the dict is empty, or its number of entries does not exceed the index.
fn is_index_skipped(length: usize, index: i128) -> bool {
    length == 0 || i128::try_from(length).is_ok_and(|length| length <= index)
}

struct PathParser<'a> {
    rest: &'a str,
}

impl JsonPath {
    pub fn parse(path: &str) -> EvalResult<Self> {
        let mut reader = PathParser { rest: path.trim() };
        let mut segments = Vec::new();
        if !reader.take("$") && !reader.rest.starts_with('[') {
            let field = reader.field()?;
            segments.push(field);
        }
        while !reader.rest.is_empty() {
            segments.push(reader.segment()?);
        }
        Ok(Self(segments))
    }

    pub fn find(&self, run: &mut Interpreter<'_>, value: &Value) -> EvalResult<Vec<PathMatch>> {
        let mut found = vec![PathMatch { value: value.clone(), steps: Vec::new() }];
        for segment in &self.0 {
            let mut next = Vec::new();
            for at in found {
                run.step(1)?;
                segment.find(run, &at, &mut next)?;
            }
            found = next;
        }
        Ok(found)
    }
}

impl<'a> PathParser<'a> {
    fn take(&mut self, mark: &str) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_whitespace(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn unsupported<T>(&self) -> EvalResult<T> {
        refused(format!("the path starting at `{}`", self.rest))
    }

    fn word(&mut self) -> EvalResult<&'a str> {
        let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        let length = self.rest.len() - self.rest.trim_start_matches(fits).len();
        let (word, rest) = self.rest.split_at(length);
        let starts_well = word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if !starts_well || matches!(word, "where" | "wherenot" | "true" | "false" | "null") {
            return self.unsupported();
        }
        self.rest = rest;
        Ok(word)
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let quote = self.rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let (text, rest) = self.rest[1..].split_once(quote)?;
        if text.contains('\\') || text.is_empty() || text == "*" {
            return None;
        }
        self.rest = rest;
        Some(text)
    }

    fn number(&mut self) -> Option<i128> {
        let sign = usize::from(self.rest.starts_with('-'));
        let digits = self.rest[sign..].len()
            - self.rest[sign..].trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        if digits == 0 || digits > 9 {
            return None;
        }
        let (number, rest) = self.rest.split_at(sign + digits);
        self.rest = rest;
        number.parse().ok()
    }

    fn field(&mut self) -> EvalResult<Segment> {
        if self.take("*") {
            return Ok(Segment::Wildcard);
        }
        if let Some(text) = self.quoted() {
            return Ok(Segment::Fields(vec![text.into()]));
        }
        self.word().map(|word| Segment::Fields(vec![word.into()]))
    }

    fn segment(&mut self) -> EvalResult<Segment> {
        if self.take("..") {
            return match self.field()? {
                Segment::Fields(mut names) => Ok(Segment::Descendants(names.remove(0))),
                _ => refused("`..` before anything but a field"),
            };
        }
        if self.take(".") {
            if self.take("[") {
                return self.brackets();
            }
            return self.field();
        }
        if self.take("[") {
            return self.brackets();
        }
        self.unsupported()
    }

    fn brackets(&mut self) -> EvalResult<Segment> {
        self.skip_whitespace();
        let segment = if self.take("?") {
            self.skip_whitespace();
            let parentheses = self.take("(");
            let mut conditions = vec![self.condition()?];
            self.skip_whitespace();
            while self.rest.starts_with('&') && !self.rest.starts_with("&&") {
                self.take("&");
                self.skip_whitespace();
                conditions.push(self.condition()?);
                self.skip_whitespace();
            }
            if parentheses && !self.take(")") {
                return self.unsupported();
            }
            Segment::Filter(conditions)
        } else if self.take("*") {
            Segment::Wildcard
        } else if let Some(text) = self.quoted() {
            let mut names = vec![Rc::from(text)];
            self.skip_whitespace();
            while self.take(",") {
                self.skip_whitespace();
                match self.quoted() {
                    Some(text) => names.push(text.into()),
                    None => return self.unsupported(),
                }
                self.skip_whitespace();
            }
            Segment::Fields(names)
        } else {
            let start = self.number();
            if self.take(":") {
                let stop = self.number();
                if self.rest.starts_with(':') {
                    return refused("a slice with a step in a path");
                }
                Segment::Slice([start, stop, None])
            } else {
                match start {
                    Some(index) => Segment::Index(index),
                    None => return self.unsupported(),
                }
            }
        };
        self.skip_whitespace();
        if self.take("]") { Ok(segment) } else { self.unsupported() }
    }

    fn condition(&mut self) -> EvalResult<Condition> {
        if !self.take("@.") {
            return self.unsupported();
        }
        let mut fields = vec![Rc::from(self.word()?)];
        while self.take(".") {
            fields.push(Rc::from(self.word()?));
        }
        self.skip_whitespace();
        let comparison = if self.take("==") {
            Comparison::Equal
        } else if self.take("!=") {
            Comparison::NotEqual
        } else if self.rest.starts_with([')', ']', '&']) {
            return Ok(Condition { fields, test: None });
        } else {
            return self.unsupported();
        };
        self.skip_whitespace();
        let literal = match self.quoted() {
            Some(text) => Value::text(text),
            None => return refused("a filter in a path that compares with anything but a quoted string"),
        };
        Ok(Condition { fields, test: Some((comparison, literal)) })
    }
}

fn field(value: &Value, name: &Rc<str>) -> Option<Value> {
    let Value::Dict(dict) = value else { return None };
    dict.items.borrow().get(&Key::Text(Rc::clone(name))).cloned()
}

impl PathMatch {
    fn child(&self, step: MatchStep, value: Value) -> PathMatch {
        let mut way = self.steps.clone();
        way.push(step);
        PathMatch { value, steps: way }
    }
}

impl Segment {
    fn find(&self, run: &mut Interpreter<'_>, at: &PathMatch, out: &mut Vec<PathMatch>) -> EvalResult<()> {
        match self {
            Segment::Fields(names) => {
                for name in names {
                    out.extend(
                        field(&at.value, name)
                            .map(|value| at.child(MatchStep::Field(Rc::clone(name)), value)),
                    );
                }
            }
            Segment::Wildcard => children(run, at, out)?,
            Segment::Index(index) => match &at.value {
                Value::List(list) => {
                    let items = list.items.borrow();
                    if *index < 0 {
                        return refused("an index from the end in a path");
                    }
                    let place = usize::try_from(*index).unwrap_or(usize::MAX);
                    out.extend(
                        items.get(place).map(|value| at.child(MatchStep::Index(place), value.clone())),
                    );
                }
                Value::None => {}
                // A dict that is shorter than the index is skipped; in a longer dict, the index would be a
                // key.
                Value::Dict(dict) if is_index_skipped(dict.items.borrow().len(), *index) => {}
                other => return refused(format!("an index into a {} in a path", other.kind())),
            },
            Segment::Slice(bounds) => match &at.value {
                Value::List(list) => {
                    let items = list.items.borrow().clone();
                    for place in crate::interpreter::slice_indices(*bounds, items.len()) {
                        out.push(at.child(MatchStep::Index(place), items[place].clone()));
                    }
                }
                Value::None => {}
                other => return refused(format!("a slice of a {} in a path", other.kind())),
            },
            Segment::Descendants(name) => descend(run, at, name, out)?,
            Segment::Filter(conditions) => {
                let items: Vec<Value> = match &at.value {
                    Value::List(list) => list.items.borrow().clone(),
                    Value::Dict(_) => return refused("a filter over a dict in a path"),
                    _ => Vec::new(),
                };
                for (place, item) in items.iter().enumerate() {
                    run.step(1)?;
                    if meets_conditions(run, item, conditions)? {
                        out.push(at.child(MatchStep::Index(place), item.clone()));
                    }
                }
            }
        }
        Ok(())
    }
}

fn children(run: &mut Interpreter<'_>, at: &PathMatch, out: &mut Vec<PathMatch>) -> EvalResult<()> {
    match &at.value {
        Value::List(list) => {
            let items = list.items.borrow();
            run.step(items.len() as u64)?;
            out.extend(
                items.iter().enumerate().map(|(place, item)| at.child(MatchStep::Index(place), item.clone())),
            );
        }
        Value::Dict(dict) => {
            for (key, value) in dict.items.borrow().entries() {
                run.step(1)?;
                let Value::Text(name) = key else { return refused("keys that are not strings in a path") };
                out.push(at.child(MatchStep::Field(Rc::clone(name)), value.clone()));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Finds the field at `at`, and then everywhere below `at`.
fn descend(
    run: &mut Interpreter<'_>,
    at: &PathMatch,
    name: &Rc<str>,
    out: &mut Vec<PathMatch>,
) -> EvalResult<()> {
    run.deeper(|run| {
        out.extend(field(&at.value, name).map(|value| at.child(MatchStep::Field(Rc::clone(name)), value)));
        let mut below = Vec::new();
        children(run, at, &mut below)?;
        below.iter().try_for_each(|child| descend(run, child, name, out))
    })
}

fn meets_conditions(run: &mut Interpreter<'_>, item: &Value, conditions: &[Condition]) -> EvalResult<bool> {
    for condition in conditions {
        let mut value = Some(item.clone());
        for name in &condition.fields {
            value = value.and_then(|value| field(&value, name));
        }
        let met = match (value, &condition.test) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(value), Some((comparison, literal))) => run.compare(*comparison, &value, literal)?,
        };
        if !met {
            return Ok(false);
        }
    }
    if conditions.is_empty() { failed("a filter without a condition") } else { Ok(true) }
}

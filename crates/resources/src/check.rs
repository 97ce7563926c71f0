//! Errors in templates and files of namespaces that the data alone shows, for who checks the data before a run. Pure.
//!
//! Nothing is looked up: a template that needs a secret, or another answer from outside, is not checked, since its text may depend on the answer.

use std::collections::BTreeMap;

use qontract_runtime::{Data, Fault, Place};

use crate::declare::declare;
use crate::family::Family;
use crate::item::{Item, Wrong, WrongCause};

/// The families whose entries name texts.
const FAMILIES: [Family; 3] = [Family::Files, Family::Routes, Family::Rules];

/// A text that comes to no object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextError {
    /// The path of the resource.
    pub resource: String,
    /// The line in it, counted from 1, if it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
    /// What is wrong in words: lower case, values in backticks.
    pub message: String,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// A template that cannot be rendered, for example because a variable is not defined.
    NotRendered,
    /// A template that renders to something that is not an object.
    OutputNotAnObject,
    /// A file that is not an object.
    FileNotAnObject,
}

/// All errors, each with the entries of the data that name the text.
pub fn text_errors(data: &Data) -> Result<BTreeMap<TextError, Vec<Place>>, Fault> {
    let mut errors: BTreeMap<TextError, Vec<Place>> = BTreeMap::new();
    for family in FAMILIES {
        for shard in declare(family, data)?.shards.values() {
            for (index, item) in shard.state.items.iter().enumerate() {
                let Item::Wrong(wrong) = item else { continue };
                let Some(error) = error(wrong) else { continue };
                let place = shard.place(&format!("/items/{index}")).cloned();
                errors.entry(error).or_default().extend(place);
            }
        }
    }
    Ok(errors)
}

fn error(Wrong { what, fault, cause }: &Wrong) -> Option<TextError> {
    let of = |line: Option<usize>, problem: Problem, message: &str| {
        Some(TextError { resource: what.clone(), line, problem, message: message.to_owned() })
    };
    match cause {
        WrongCause::Template { line, message } => of(*line, Problem::NotRendered, message),
        WrongCause::Output => of(None, Problem::OutputNotAnObject, &fault.text),
        WrongCause::File { line } => of(*line, Problem::FileNotAnObject, &fault.text),
        WrongCause::Other => None,
    }
}

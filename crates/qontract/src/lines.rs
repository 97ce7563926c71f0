//! JSON pointers → lines, by reading a file again when its first line is asked for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use qontract_diagnostics::{Sources, position};
use qontract_yaml::{Document, Limits, Syntax, parse_as};

/// The lines of one side.
pub struct Lines<'a> {
    sources: &'a dyn Sources,
    read: RefCell<HashMap<String, Option<Rc<Read>>>>,
}

/// A file that was read again.
struct Read {
    text: String,
    document: Document,
}

impl<'a> Lines<'a> {
    /// Lines of these texts.
    pub fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, read: RefCell::default() }
    }

    /// `file:line` of the value at `pointer`, or the file alone where there are no lines.
    pub fn place(&self, file: &str, pointer: &str) -> String {
        let Some(read) = self.document(file) else { return file.to_owned() };
        let located = read.document.root().locate(pointer);
        let span = located.key_span.unwrap_or(located.span);
        format!("{file}:{}", position(&read.text, span.start as usize).line)
    }

    fn document(&self, file: &str) -> Option<Rc<Read>> {
        let mut read = self.read.borrow_mut();
        let entry = read.entry(file.to_owned()).or_insert_with(|| {
            let text = self.sources.text(file)?.into_owned();
            let document = parse_as(Syntax::of(file), text.as_bytes(), &Limits::default()).document?;
            Some(Rc::new(Read { text, document }))
        });
        entry.clone()
    }
}

//! Maps JSON pointers to lines. A file is parsed when the first of its lines is looked up.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_diagnostics::{LineIndex, Sources};
use qontract_yaml::{Document, Limits, Syntax, parse_as};

/// Maximum number of cached files. When the cache is full, it is cleared: usually, all lookups in one file occur in
/// succession.
const MAX_FILES: usize = 256;

/// Cache of parsed files by name; `None` for a file without text. Entries are never invalidated, because pinned data
/// does not change.
#[derive(Default)]
pub struct LineCache(Mutex<HashMap<String, Option<Arc<ParsedFile>>>>);

/// A parsed file with its line index.
struct ParsedFile {
    text: String,
    lines: LineIndex,
    document: Document,
}

impl LineCache {
    /// The `file:line` of the value at `pointer`, or only the file name if the text of the file is not available.
    pub fn locate(&self, sources: &dyn Sources, file: &str, pointer: &str) -> String {
        let Some(read) = self.document(sources, file) else { return file.to_owned() };
        let located = read.document.root().locate(pointer);
        let span = located.key_span.unwrap_or(located.span);
        format!("{file}:{}", read.lines.position(&read.text, span.start as usize).line)
    }

    fn document(&self, sources: &dyn Sources, file: &str) -> Option<Arc<ParsedFile>> {
        let mut read = self.0.lock();
        if let Some(cached) = read.get(file) {
            return cached.clone();
        }
        if read.len() == MAX_FILES {
            read.clear();
        }
        let text = sources.text(file).map(std::borrow::Cow::into_owned);
        let found = text.and_then(|text| {
            let document = parse_as(Syntax::of(file), text.as_bytes(), &Limits::default()).document?;
            Some(Arc::new(ParsedFile { lines: LineIndex::new(&text), text, document }))
        });
        read.entry(file.to_owned()).or_insert(found).clone()
    }
}

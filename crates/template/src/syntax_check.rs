//! Checks the syntax of a template without rendering it.

use crate::fault::{EvalError, Kind};
use crate::limits::RenderLimits;
use crate::source::Source;
use crate::{lexer, parser};

/// A syntax error of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, counted from 1.
    pub line: usize,
    /// The byte offset in the line.
    pub column: usize,
    /// The message, in lower case, with values in backticks.
    pub message: String,
}

/// Checks whether Jinja2 can parse a template: its tags, expressions, filters and tests. A feature
/// that Jinja2 supports and this program does not is not an error.
pub fn check_syntax(source: &Source<'_>) -> Result<(), SyntaxError> {
    let text = lexer::normalize_newlines(source.text);
    let place = |error: &EvalError, at: Option<usize>| {
        let start_of = |line: usize| text.split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>();
        match (at, error.line) {
            (Some(at), line) => {
                let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
                let counted = || text[..at].matches('\n').count() + 1;
                (line.unwrap_or_else(counted), at - start)
            }
            (None, line) => {
                let line = line.unwrap_or(1);
                let rest = &text[start_of(line)..];
                (line, rest.len() - rest.trim_start_matches([' ', '\t']).len())
            }
        }
    };
    let report = |error: Box<EvalError>, at: Option<usize>| match error.kind {
        Kind::Syntax | Kind::Undefined => {
            let (line, column) = place(&error, at);
            Err(SyntaxError { line, column, message: error.message })
        }
        Kind::Failed | Kind::Raised | Kind::Refused | Kind::Limit | Kind::Lookup => Ok(()),
    };
    let tokens = match lexer::tokenize_with_offset(source.text, source.dialect, source.whitespace) {
        Ok(tokens) => tokens,
        Err((error, at)) => return report(error, Some(at)),
    };
    match parser::parse_with_offset(tokens, RenderLimits::default().depth, true) {
        Ok(_) => Ok(()),
        Err((error, at)) => report(error, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Dialect;

    fn check(text: &str, expect: Result<(), (usize, usize, &str)>) {
        let found = check_syntax(&Source::new("a.j2", text));
        let expect = expect.map_err(|(line, column, message)| SyntaxError {
            line,
            column,
            message: message.to_owned(),
        });
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn templates_that_jinja2_parses_have_no_error() {
        check("a: {{ b | default('c') }}\n{% if d %}e{% endif %}\n", Ok(()));
        check("plain", Ok(()));
        check("", Ok(()));
        // Jinja2 parses this template, so it has no syntax error, although this program does not support it.
        check("{% include 'a' %}", Ok(()));
    }

    #[test]
    fn syntax_errors_have_a_line_and_a_column() {
        check("a: 1\nb: {{ c }\n", Err((2, 8, "unexpected `}`")));
        check("a: {{ b c }}", Err((1, 8, "expected the end of the tag, found `c`")));
        check("a\r\n{{ $ }}", Err((2, 3, "unexpected character `$`")));
        check("ok\n  {{ a | nosuchfilter }}", Err((2, 2, "filter `nosuchfilter` not found")));
        check("{# never closed", Err((1, 2, "missing end of comment tag")));
    }

    #[test]
    fn tags_are_those_of_the_dialect() {
        let source = Source::new("a.j2", "{{ $labels.a }} {{{ b }}}").dialect(Dialect::ExtraCurly);
        assert_eq!(check_syntax(&source), Ok(()));
        let source = Source::new("a.j2", "{{ x }} {{{ b c }}}").dialect(Dialect::ExtraCurly);
        assert_eq!(check_syntax(&source).map_err(|error| (error.line, error.column)), Err((1, 14)));
    }
}

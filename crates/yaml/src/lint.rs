//! Finds plain scalars on which YAML 1.1, the language of data repos, and YAML 1.2 disagree.
//!
//! Such a scalar is not an error: it has the meaning that YAML 1.1 defines. However, editors and other tools
//! may read it differently, and its author may have intended another value. Quoted strings are never
//! ambiguous.

use qontract_diagnostics::{Diagnostic, Span, code};

use crate::scalar::{self, Scalar};
use crate::{Document, Limits, Node, Value, parse};

/// All plain scalars of a file that the two versions read differently, in the order of the file.
///
/// ```
/// let found = qontract_yaml::lint::dialect("mode: 0755\nname: \"0755\"\nref: 12345e7\n");
/// let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
/// assert_eq!(messages, [
///     "`0755` is the number 493 in YAML 1.1, and the number 755 in YAML 1.2",
///     "`12345e7` is a string in YAML 1.1, and the number 123450000000 in YAML 1.2",
/// ]);
/// ```
pub fn dialect(source: &str) -> Vec<Diagnostic> {
    // Most files have no such scalar, so they are not parsed again.
    let separators = |character: char| character.is_whitespace() || ",[]{}".contains(character);
    let words = source.split(separators).map(|word| word.trim_end_matches(':'));
    if !words.clone().any(|word| differs(word).is_some()) {
        return Vec::new();
    }
    match parse(source.as_bytes(), &Limits::default()).document {
        Some(document) => scalars(&document, source),
        None => Vec::new(),
    }
}

fn scalars(document: &Document, source: &str) -> Vec<Diagnostic> {
    let mut spans: Vec<Span> = document.entries.iter().map(|entry| entry.key_span).collect();
    let nodes = (0..document.slots.len()).map(|index| Node::at(document, index));
    let is_scalar = |node: &Node<'_>| !matches!(node.value(), Value::List(_) | Value::Map(_));
    spans.extend(nodes.filter(is_scalar).map(Node::span));
    spans.sort_unstable();
    spans.dedup();
    let finding = |span: Span| {
        let text = source.get(span.range())?;
        let (ours, theirs) = differs(text)?;
        let message =
            format!("`{text}` is {} in YAML 1.1, and {} in YAML 1.2", describe(&ours), describe(&theirs));
        let finding = Diagnostic::new(code::SCALAR_DIALECT, message).at(span);
        Some(finding.hint(match canonical_spelling(&ours) {
            Some(plain) => format!("write `{plain}` if that is meant, or \"{text}\" for a string"),
            None => format!("write \"{text}\""),
        }))
    };
    spans.into_iter().filter_map(finding).collect()
}

/// The values of a plain scalar in both versions, if they differ.
fn differs(text: &str) -> Option<(Scalar, Scalar)> {
    let ours = scalar::resolve(text);
    let theirs = resolve_core_schema(text);
    let refused = matches!(ours, Scalar::Date | Scalar::Merge | Scalar::Default | Scalar::NoValue);
    let same = match (&ours, &theirs) {
        (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (a, b) => a == b,
    };
    (!refused && !same).then_some((ours, theirs))
}

/// Resolves a plain scalar according to the core schema of YAML 1.2.
fn resolve_core_schema(text: &str) -> Scalar {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = |digits: &str, base: u32| match i64::from_str_radix(digits, base) {
        Ok(value) => Scalar::Int(value),
        Err(_) => Scalar::BigInt(digits.to_owned()),
    };
    let digits_only = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        _ => {}
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Scalar::Float(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if let Some(octal) =
        text.strip_prefix("0o").filter(|rest| digits_only(rest) && !rest.contains(['8', '9']))
    {
        return number(octal, 8);
    }
    let is_hex = |rest: &&str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(hex) = text.strip_prefix("0x").filter(is_hex) {
        // A number that does not fit 64 bits is the same number in both versions.
        return i64::from_str_radix(hex, 16).map_or_else(|_| scalar::resolve(text), Scalar::Int);
    }
    if digits_only(unsigned) {
        return match text.trim_start_matches('+').parse() {
            Ok(value) => Scalar::Int(value),
            Err(_) => scalar::resolve(text),
        };
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_float = (digits_only(whole) || (whole.is_empty() && !fraction.is_empty()))
        && all_digits(fraction)
        && digits_only(exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
    match text.parse() {
        Ok(value) if is_float => Scalar::Float(value),
        _ => Scalar::Str,
    }
}

/// Describes a scalar in a message.
fn describe(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Bool(value) => format!("`{value}`"),
        Scalar::Str => "a string".to_owned(),
        Scalar::Null => "null".to_owned(),
        other => canonical_spelling(other)
            .map_or_else(|| "another value".to_owned(), |plain| format!("the number {plain}")),
    }
}

/// The spelling of a scalar that both versions read the same way; `None` for a string.
fn canonical_spelling(scalar: &Scalar) -> Option<String> {
    match scalar {
        Scalar::Bool(value) => Some(value.to_string()),
        Scalar::Int(value) => Some(value.to_string()),
        Scalar::BigInt(digits) => Some(digits.clone()),
        Scalar::Float(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expect: &[&str]) {
        let hints: Vec<String> = dialect(source).into_iter().filter_map(|finding| finding.hint).collect();
        assert_eq!(hints, expect, "{source}");
    }

    #[test]
    fn differing_scalars_are_reported_with_the_quoting_to_use() {
        check("a: yes\n", &["write `true` if that is meant, or \"yes\" for a string"]);
        check(
            "- 1_000\n- 1:30\n",
            &[
                "write `1000` if that is meant, or \"1_000\" for a string",
                "write `90` if that is meant, or \"1:30\" for a string",
            ],
        );
        check("a: 0o17\nb: 089\n", &["write \"0o17\"", "write \"089\""]);
        check("1e3: x\n", &["write \"1e3\""]);
    }

    #[test]
    fn quoted_and_equal_scalars_are_not_reported() {
        check("a: \"yes\"\nb: 'on'\nc: 17\nd: true\ne: 1.5\nf: ~\ng: 0x1F\nh: 1.5e+3\n", &[]);
        check("text: |\n  yes\n  no\nfolded: say yes or no\n", &[]);
        check("a: -17\nb: +17\nc: 0\nd: 18446744073709551616\ne: .inf\nf: .5\n", &[]);
    }

    #[test]
    fn an_alias_is_reported_once() {
        check("a: &x off\nb: *x\n", &["write `false` if that is meant, or \"off\" for a string"]);
    }
}

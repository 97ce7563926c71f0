//! YAML within templates, read by the house's own reader: what PyYAML makes of it, or refused.

use qontract_diagnostics::Diagnostic;
use qontract_yaml::{Limits, Node, Value as Yaml, parse};

use crate::fault::{Outcome, refused};
use crate::run::Run;
use crate::value::{Dict, Value};

/// `yaml.safe_load(text)`
pub(crate) fn read(run: &mut Run<'_>, text: &str) -> Outcome<Value> {
    run.charge(text.len())?;
    let parsed = parse(text.as_bytes(), &Limits::default());
    if let Some(finding) = parsed.findings.iter().find(|finding| Diagnostic::is_error(finding)) {
        // PyYAML may read what is refused here; either way it is no value
        return refused(format!(
            "the text is not YAML, or not YAML that all readers agree about ({})",
            finding.code
        ));
    }
    match parsed.document {
        Some(document) => value(run, document.root()),
        None => Ok(Value::None),
    }
}

fn value(run: &mut Run<'_>, node: Node<'_>) -> Outcome<Value> {
    run.step(1)?;
    Ok(match node.value() {
        Yaml::Null => Value::None,
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::Int(number) => Value::Int(number.into()),
        Yaml::BigInt(digits) => match digits.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => return refused("a number of more than 128 bits"),
        },
        Yaml::Float(number) => crate::run_float(number)?,
        Yaml::Str(text) => {
            run.charge(text.len())?;
            Value::text(text)
        }
        Yaml::List(list) => {
            let items = run.deeper(|run| list.iter().map(|item| value(run, item)).collect::<Outcome<_>>())?;
            run.list(items)?
        }
        Yaml::Map(map) => {
            let dict = run.deeper(|run| {
                let mut dict = Dict::default();
                for entry in map.iter() {
                    let value = value(run, entry.value)?;
                    dict.insert_text(entry.key, value);
                }
                Ok(dict)
            })?;
            run.dict(dict)?
        }
    })
}

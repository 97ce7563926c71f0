//! Parses YAML within templates with `qontract-yaml`. The result equals that of PyYAML, or the YAML is
//! refused.

use qontract_diagnostics::Diagnostic;
use qontract_yaml::{Limits, Node, Value as Yaml, parse};

use crate::fault::{EvalResult, refused};
use crate::interpreter::Interpreter;
use crate::value::{Dict, Value};

/// `yaml.safe_load(text)`
pub(crate) fn read(run: &mut Interpreter<'_>, text: &str) -> EvalResult<Value> {
    run.charge(text.len())?;
    let parsed = parse(text.as_bytes(), &Limits::default());
    if let Some(finding) = parsed.findings.iter().find(|finding| Diagnostic::is_error(finding)) {
        // PyYAML may accept this YAML, but the result would not be a supported value.
        return refused(format!(
            "text that is not YAML, or that YAML parsers read differently ({})",
            finding.code
        ));
    }
    match parsed.document {
        Some(document) => value(run, document.root()),
        None => Ok(Value::None),
    }
}

fn value(run: &mut Interpreter<'_>, node: Node<'_>) -> EvalResult<Value> {
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
            let items =
                run.deeper(|run| list.iter().map(|item| value(run, item)).collect::<EvalResult<_>>())?;
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

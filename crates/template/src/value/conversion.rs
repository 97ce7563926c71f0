//! Converts input data to run-time values.

use crate::data::Data;
use crate::fault::EvalResult;
use crate::interpreter::Interpreter;
use crate::value::{Dict, Value};

/// Converts `data` to a value.
pub(crate) fn value(data: &Data, run: &mut Interpreter<'_>) -> EvalResult<Value> {
    run.step(1)?;
    Ok(match data {
        Data::Null => Value::None,
        Data::Bool(value) => Value::Bool(*value),
        Data::Int(number) => Value::Int(*number),
        Data::Float(number) => crate::run_float(*number)?,
        Data::Text(text) => {
            run.charge(text.len())?;
            Value::text(text.as_str())
        }
        Data::List(items) => {
            let items =
                run.deeper(|run| items.iter().map(|item| value(item, run)).collect::<EvalResult<_>>())?;
            run.list(items)?
        }
        Data::Map(entries) => {
            let dict = dict(entries, run)?;
            run.dict(dict)?
        }
    })
}

/// Converts `entries` to a dict.
pub(crate) fn dict(entries: &[(String, Data)], run: &mut Interpreter<'_>) -> EvalResult<Dict> {
    run.deeper(|run| {
        let mut dict = Dict::default();
        for (key, data) in entries {
            run.charge(key.len())?;
            let value = value(data, run)?;
            dict.insert_text(key, value);
        }
        Ok(dict)
    })
}

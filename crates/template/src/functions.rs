//! Functions: those of Jinja2, and those of data repos.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::fault::{EvalResult, failed, refused};
use crate::filters::{hash_list, json, url};
use crate::interpreter::{Args, Interpreter};
use crate::lookup::TemplateLookup;
use crate::value::{Cycler, Dict, Joiner, Range, Value};

/// Functions of data repos. They take precedence over variables.
pub(crate) const DATA_REPO_FUNCTIONS: [&str; 12] = [
    "vault",
    "github",
    "query",
    "url",
    "s3",
    "s3_ls",
    "urlescape",
    "urlunescape",
    "hash_list",
    "flatten_dict",
    "yesterday",
    "sloth_alerts",
];

/// Jinja2 functions. Variables take precedence over them.
pub(crate) const JINJA2_FUNCTIONS: [&str; 6] = ["range", "dict", "lipsum", "cycler", "joiner", "namespace"];

pub(crate) fn data_repo_function(name: &str) -> Option<&'static str> {
    DATA_REPO_FUNCTIONS.iter().find(|known| **known == name).copied()
}

pub(crate) fn jinja2_function(name: &str) -> Option<&'static str> {
    JINJA2_FUNCTIONS.iter().find(|known| **known == name).copied()
}

pub(crate) fn call(run: &mut Interpreter<'_>, name: &str, args: Args) -> EvalResult<Value> {
    match name {
        "range" => range(&args),
        "dict" => dict(run, args),
        "namespace" => match dict(run, args)? {
            Value::Dict(mapping) => Ok(Value::Namespace(mapping)),
            other => Ok(other),
        },
        "cycler" => {
            if args.positional.is_empty() || !args.named.is_empty() {
                return failed("`cycler` takes the values to cycle through");
            }
            run.record_all(&args.positional)?;
            let cycler = Cycler { level: Cell::new(0), items: args.positional, at: Cell::new(0) };
            Ok(Value::Cycler(Rc::new(cycler)))
        }
        "joiner" => {
            let [separator] = args.bind(name, ["sep"], 0)?;
            let separator = match separator {
                None => ", ".into(),
                Some(Value::Text(text)) => text,
                Some(_) => return refused("a `joiner` with a separator that is not a string"),
            };
            Ok(Value::Joiner(Rc::new(Joiner { separator, used: Cell::new(false) })))
        }
        "lipsum" => refused("`lipsum`: it is random"),
        "sloth_alerts" => refused("`sloth_alerts`: it needs the `sloth` program"),
        "urlescape" => {
            let [text, safe, encoding] = args.bind(name, ["u", "s", "e"], 1)?;
            url::escape(run, text, safe, encoding)
        }
        "urlunescape" => {
            let [text, encoding] = args.bind(name, ["u", "e"], 1)?;
            url::unescape(run, text, encoding)
        }
        "hash_list" => {
            let [items] = args.bind(name, ["input"], 1)?;
            hash_list(run, &items.unwrap_or(Value::None))
        }
        "flatten_dict" => {
            let [of, parent, separator] = args.bind(name, ["d", "parent_key", "sep"], 1)?;
            flatten(run, [of, parent, separator])
        }
        name => {
            let address = lookup_of(run, name, args)?;
            run.look_up(address)
        }
    }
}

/// The lookup that a function call requests.
fn lookup_of(run: &mut Interpreter<'_>, name: &str, args: Args) -> EvalResult<TemplateLookup> {
    Ok(match name {
        "vault" => {
            let [path, key, version, allow] = args.bind(name, ["p", "k", "v", "allow_not_found"], 2)?;
            let path = rendered_argument(run, path)?;
            let key = rendered_argument(run, key)?;
            let version = match version {
                None | Some(Value::None) => None,
                Some(Value::Int(number)) => Some(number.to_string()),
                Some(Value::Text(text)) if text.is_empty() => None,
                Some(version) => Some(rendered_argument(run, Some(version))?),
            };
            let allow_not_found = match allow {
                // qontract-reconcile reads this argument only if the secret is missing.
                Some(Value::Undefined(_)) => return refused("an undefined `allow_not_found`"),
                Some(allow) => run.is_truthy(&allow)?,
                None => false,
            };
            TemplateLookup::Secret { path, key, version, allow_not_found }
        }
        "github" => {
            let [repo, path, reference, _] = args.bind(name, ["u", "p", "r", "v"], 3)?;
            let repo = rendered_argument(run, repo)?;
            let path = rendered_argument(run, path)?;
            TemplateLookup::GithubFile { repo, path, reference: rendered_argument(run, reference)? }
        }
        "query" => query(run, args)?,
        "url" => {
            let [url] = args.bind(name, ["url"], 1)?;
            TemplateLookup::Url { url: text_argument(url)? }
        }
        "s3" | "s3_ls" => {
            let [account, bucket, path, region] =
                args.bind(name, ["account_name", "bucket_name", "path", "region_name"], 3)?;
            let region = match region {
                None | Some(Value::None) => None,
                Some(Value::Text(region)) if region.is_empty() => return refused("an empty region"),
                region => Some(text_argument(region)?),
            };
            let (account, bucket, path) =
                (text_argument(account)?, text_argument(bucket)?, text_argument(path)?);
            if name == "s3" {
                TemplateLookup::S3Object { account, bucket, path, region }
            } else {
                TemplateLookup::S3List { account, bucket, path, region }
            }
        }
        _ => {
            let [] = args.bind(name, [], 0)?;
            TemplateLookup::Yesterday
        }
    })
}

fn query(run: &mut Interpreter<'_>, mut args: Args) -> EvalResult<TemplateLookup> {
    let path = match args.named.iter().position(|(name, _)| &**name == "query") {
        Some(index) if args.positional.is_empty() => args.named.remove(index).1,
        None if args.positional.len() == 1 => args.positional.remove(0),
        _ => return failed("`query` takes the path of a resource, and variables by name"),
    };
    let mut variables = BTreeMap::new();
    for (name, value) in args.named {
        variables.insert(name.to_string(), json::compact(run, &value)?);
    }
    Ok(TemplateLookup::Query { path: text_argument(Some(path))?, variables })
}

fn text_argument(value: Option<Value>) -> EvalResult<String> {
    match value {
        Some(Value::Text(text)) => Ok(text.to_string()),
        Some(other) => failed(format!("an argument of a lookup must be a string, not a {}", other.kind())),
        None => failed("an argument of a lookup is missing"),
    }
}

/// An argument that is itself a template.
fn rendered_argument(run: &mut Interpreter<'_>, value: Option<Value>) -> EvalResult<String> {
    let text = text_argument(value)?;
    run.deeper(|run| run.render_nested(&text))
}

fn range(args: &Args) -> EvalResult<Value> {
    if !args.named.is_empty() {
        return failed("`range` takes no named arguments");
    }
    let numbers: Option<Vec<i128>> = args.positional.iter().map(Value::as_int).collect();
    let range = match numbers.as_deref() {
        Some([stop]) => Range { start: 0, stop: *stop, step: 1 },
        Some([start, stop]) => Range { start: *start, stop: *stop, step: 1 },
        Some([start, stop, step]) if *step != 0 => Range { start: *start, stop: *stop, step: *step },
        _ => return failed("`range` takes one to three integers"),
    };
    if [range.start, range.stop, range.step].iter().any(|number| number.unsigned_abs() > 1 << 100) {
        return refused("a `range` of numbers this large");
    }
    if range.len() > 100_000 {
        return failed("a `range` of more than 100000 numbers");
    }
    Ok(Value::Range(range))
}

fn dict(run: &mut Interpreter<'_>, args: Args) -> EvalResult<Value> {
    let mut dict = Dict::default();
    match args.positional.as_slice() {
        [] => {}
        [Value::Dict(other)] => dict = other.items.borrow().clone(),
        [pairs] => {
            for pair in run.collect(pairs)? {
                let pair = run.collect(&pair)?;
                let [name, value] = pair.as_slice() else { return failed("`dict` takes pairs") };
                let key = run.key(name)?;
                dict.insert(key, name.clone(), value.clone());
            }
        }
        _ => return failed("`dict` takes one argument, and others by name"),
    }
    for (name, value) in args.named {
        dict.insert_text(&name, value);
    }
    run.dict(dict)
}

/// Flattens nested dicts into one dict with joined keys; values become strings, and `none` is omitted.
fn flatten(run: &mut Interpreter<'_>, [of, parent, separator]: [Option<Value>; 3]) -> EvalResult<Value> {
    let Some(Value::Dict(of)) = of else { return failed("`flatten_dict` takes a dict") };
    let option = |value: Option<Value>, default: &str| match value {
        None => Ok(default.to_owned()),
        value => text_argument(value),
    };
    let (parent, separator) = (option(parent, "")?, option(separator, ".")?);
    let mut flat = Dict::default();
    // The dicts are visited depth first, in order: the stack has the remaining entries of each dict.
    let entries = of.items.borrow().entries().to_vec();
    let mut stack = vec![(parent, entries.into_iter())];
    while let Some((parent, entries)) = stack.last_mut() {
        let Some((key, value)) = entries.next() else {
            stack.pop();
            continue;
        };
        run.step(1)?;
        if matches!(value, Value::None) {
            continue;
        }
        let Value::Text(key) = key else { return refused("`flatten_dict` of keys that are not strings") };
        let name = if parent.is_empty() { key.to_string() } else { format!("{parent}{separator}{key}") };
        run.charge(name.len())?;
        if let Value::Dict(inner) = value {
            let entries = inner.items.borrow().entries().to_vec();
            stack.push((name, entries.into_iter()));
        } else {
            let value = run.text(&value)?;
            flat.insert_text(&name, Value::text(value));
        }
    }
    run.dict(flat)
}

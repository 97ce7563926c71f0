//! Seeded random templates from a grammar: small, unusual, and mostly valid.

use fastrand::Rng;
use serde_json::Value as Json;

use super::corpus;
use super::reader::Case;

const ATOMS: [&str; 54] = [
    "1e16",
    "123456789.125",
    "'%s'",
    "'{}'",
    "'a\\nb\\n'",
    "[[1], 2]",
    "{1: 2, 'b': none}",
    "('a',)",
    "html",
    "'é'",
    "0",
    "1",
    "-1",
    "2",
    "7",
    "-7",
    "1.5",
    "2.0",
    "-0.5",
    "true",
    "false",
    "none",
    "''",
    "'a'",
    "'Ab c'",
    "'1'",
    "' x '",
    "'<&>'",
    "[]",
    "[1, 2]",
    "['b', 'a']",
    "[1, 'a']",
    "{}",
    "{'a': 1}",
    "(1, 2)",
    "()",
    "name",
    "text",
    "numbers",
    "words",
    "mixed",
    "labels",
    "users",
    "nested",
    "deep",
    "nothing",
    "yes",
    "half",
    "empty",
    "missing",
    "range(3)",
    "accent",
    "x",
    "json",
];

const OPERATORS: [&str; 17] =
    ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in"];

const FILTERS: [&str; 70] = [
    "abs",
    "upper",
    "lower",
    "title",
    "capitalize",
    "trim",
    "length",
    "count",
    "first",
    "last",
    "list",
    "reverse|list",
    "sort",
    "sort(true)",
    "unique|list",
    "join",
    "join('-')",
    "join(1)",
    "string",
    "int",
    "int(5)",
    "float",
    "float(1.5)",
    "round",
    "round(1)",
    "round(1, 'ceil')",
    "tojson",
    "tojson(indent=1)",
    "tojson|indent",
    "default('d')",
    "default('d', true)",
    "d",
    "replace('a', 'b')",
    "replace('', '.')",
    "truncate(5)",
    "truncate(4, true, '.', 0)",
    "indent",
    "indent(1, true)",
    "center(9)",
    "wordcount",
    "urlencode",
    "urlescape",
    "urlunescape",
    "e",
    "max",
    "min",
    "sum",
    "batch(2)|list",
    "slice(2)|list",
    "items|list",
    "dictsort",
    "dictsort(by='value')",
    "map('upper')|list",
    "map('int')|list",
    "map(attribute='name')|list",
    "map(attribute=0)|list",
    "select|list",
    "reject|list",
    "select('string')|list",
    "select('odd')|list",
    "selectattr('age', 'gt', 26)|list",
    "rejectattr('roles')|list",
    "groupby('age')|list",
    "groupby(0)|list",
    "sort(attribute='age')|list",
    "filesizeformat",
    "format(1)",
    "attr('a')",
    "json_to_dict",
    "yaml_to_dict",
];

const TESTS: [&str; 22] = [
    "defined",
    "undefined",
    "none",
    "string",
    "number",
    "integer",
    "float",
    "mapping",
    "sequence",
    "iterable",
    "odd",
    "even",
    "divisibleby 2",
    "lower",
    "upper",
    "true",
    "false",
    "boolean",
    "in [1, 'a']",
    "eq 1",
    "gt 1",
    "not none",
];

const POSTFIXES: [&str; 48] = [
    ".find('a')",
    ".rsplit('a', 1)",
    ".partition('b')",
    ".zfill(4)",
    ".ljust(5, '.')",
    ".center(6)",
    ".format(1, 'b')",
    ".isdigit()",
    ".capitalize()",
    ".title",
    "[true]",
    "[1.0]",
    "['x']",
    ".0",
    "[::2]",
    "[-3:-1]",
    "[x:]",
    ".endswith('c')",
    "[0]",
    "[-1]",
    "[1:]",
    "[::-1]",
    "[:1]",
    "[0:2]",
    ".a",
    "['a']",
    ".name",
    "[0].name",
    ".upper()",
    ".split()",
    ".split('a')",
    ".strip()",
    ".keys()|list",
    ".items()|list",
    ".values()|list",
    ".get('a')",
    ".get('z', 1)",
    ".replace('a', 'x')",
    ".startswith('a')",
    ".join(words)",
    ".count('a')",
    ".index(1)",
    ".copy()",
    ".append(1)",
    ".pop()",
    ".splitlines()",
    ".lower()",
    "[x]",
];

pub fn generate(count: usize) -> Vec<Case> {
    let mut rng = Rng::with_seed(seed());
    let variables: Json = corpus::variables();
    (0..count).map(|_| Case::new(&template(&mut rng), &variables)).collect()
}

/// The hand-written templates with a few characters changed.
pub fn mutate(count: usize) -> Vec<Case> {
    let mut rng = Rng::with_seed(seed());
    let corpus = corpus::read();
    let mut cases = Vec::new();
    while cases.len() < count {
        let mut case = corpus[rng.usize(..corpus.len())].case.clone();
        let mut text: Vec<char> = case.template.chars().collect();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..=text.len());
            let end = (at + rng.usize(..4)).min(text.len());
            let from: Vec<char> = corpus[rng.usize(..corpus.len())].case.template.chars().collect();
            let start = rng.usize(..=from.len());
            let piece = match rng.usize(..3) {
                0 => Vec::new(),
                1 => vec![char::from(rng.choice("{}%#-+'\"()[]|.,:~*/=<>!_ \n\\x1".bytes()).unwrap_or(b' '))],
                _ => from[start..(start + rng.usize(..12)).min(from.len())].to_vec(),
            };
            text.splice(at..end, piece);
        }
        case.template = text.into_iter().collect();
        cases.push(case);
    }
    cases
}

/// The seed; `QONTRACT_ORACLE_SEED` overrides it.
fn seed() -> u64 {
    std::env::var("QONTRACT_ORACLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7)
}

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

fn expression(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 {
        return pick(rng, &ATOMS).to_owned();
    }
    let inner = |rng: &mut Rng| expression(rng, depth - 1);
    match rng.usize(..12) {
        0 | 1 => format!("{} {} {}", inner(rng), pick(rng, &OPERATORS), inner(rng)),
        2 => format!("({} {} {})", inner(rng), pick(rng, &OPERATORS), inner(rng)),
        3..=5 => format!("{}|{}", inner(rng), pick(rng, &FILTERS)),
        6 => format!("({})|{}", inner(rng), pick(rng, &FILTERS)),
        7 => format!("{} is {}", inner(rng), pick(rng, &TESTS)),
        8 => format!("({}){}", inner(rng), pick(rng, &POSTFIXES)),
        9 => format!("{}{}", pick(rng, &ATOMS), pick(rng, &POSTFIXES)),
        10 => format!("({} if {} else {})", inner(rng), inner(rng), inner(rng)),
        _ => match rng.usize(..5) {
            0 => format!("not {}", inner(rng)),
            1 => format!("-{}", inner(rng)),
            2 => format!("[{}, {}]", inner(rng), inner(rng)),
            3 => format!("{{'k': {}, {}: 1}}", inner(rng), pick(rng, &ATOMS)),
            _ => format!("'%s|%5s' % ({}, {})", inner(rng), inner(rng)),
        },
    }
}

fn body(rng: &mut Rng, depth: usize) -> String {
    let sign = |rng: &mut Rng| pick(rng, &["", "", "", "-"]);
    let blank = pick(rng, &["", " ", "\n", "  \n "]);
    if depth == 0 {
        let depth = rng.usize(1..3);
        return format!("{blank}{{{{{} {} {}}}}}{blank}", sign(rng), expression(rng, depth), sign(rng));
    }
    let inside = body(rng, depth - 1);
    let expression = expression(rng, 1);
    let (open, close) = (format!("{{%{} ", sign(rng)), format!(" {}%}}", sign(rng)));
    match rng.usize(..15) {
        9 => format!(
            "{{% set n = namespace(v={expression}) %}}{open}for x in numbers{close}{{% set n.v = x %}}{inside}{{{{ n.v }}}}{{% endfor %}}"
        ),
        10 => format!(
            "{{% macro c(y) %}}[{{{{ caller(y) }}}}{{{{ y }}}}]{{% endmacro %}}{open}call(x) c({expression}){close}{inside}{{% endcall %}}"
        ),
        11 => format!(
            "{{% set l = [1, 'b'] %}}{{% set x = l.{}({expression}) %}}{{{{ l }}}}{inside}",
            pick(rng, &["append", "extend", "insert", "pop", "remove", "index", "count"])
        ),
        12 => format!(
            "{{% set d = {{'a': 1}} %}}{{% set x = d.{}({expression}) %}}{{{{ d }}}}{inside}",
            pick(rng, &["update", "get", "pop", "setdefault"])
        ),
        13 => format!(
            "{open}for x in {expression} if x{close}{{{{ loop.length }}}}{{{{ loop.revindex }}}}{{{{ loop.changed(x) }}}}{inside}{{% endfor %}}"
        ),
        14 => format!(
            "{open}for x in tree recursive{close}{{{{ loop.depth }}}}{inside}{{{{ loop(x.c) }}}}{{% endfor %}}"
        ),
        0 => format!("{open}if {expression}{close}{inside}{{% else %}}n{open}endif{close}{blank}"),
        1 => format!("{open}for x in {expression}{close}{inside}{blank}{open}else{close}e{{% endfor %}}"),
        2 => format!(
            "{open}for x in {expression}{close}{{{{ loop.index }}}}{{{{ loop.last }}}}{inside}{open}endfor{close}"
        ),
        3 => format!("{open}set x = {expression}{close}{inside}"),
        4 => format!("{{% set x %}}{inside}{open}endset{close}{{{{ x }}}}"),
        5 => format!("{open}with x = {expression}{close}{inside}{{% endwith %}}{blank}"),
        6 => format!(
            "{{% macro m(x, y={expression}) %}}{inside}{{{{ y }}}}{{% endmacro %}}{{{{ m(1) }}}}{{{{ m(2, 3) }}}}"
        ),
        7 => format!(
            "{{% filter {} %}}{inside}{{% endfilter %}}",
            pick(rng, &["upper", "trim", "indent", "replace('a', 'b')"])
        ),
        _ => format!("{{% b64encode %}}{inside}{{% endb64encode %}}{}", body(rng, depth - 1)),
    }
}

fn template(rng: &mut Rng) -> String {
    let depth = rng.usize(..3);
    let mut text = body(rng, depth);
    if rng.bool() {
        text = format!("{{% set x = {} %}}{text}", pick(rng, &ATOMS));
    }
    text
}

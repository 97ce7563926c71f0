//! Generates invalid requests by mutating valid ones.

use qontract_testkit::SeededRng;

/// Valid requests for the types of the recorded bundle; together they cover the whole grammar.
pub const GOOD: &[&str] = &[
    "query Q($p: String, $f: JSON = {a: [1, {b: $}]}) @x { apps_v1(path: $p, filter: $f) { name } }",
    "query Apps($name: String, $with: Boolean! = true, $f: JSON) {\n  apps_v1(name: $name, filter: $f) {\n    ...App\n    team @include(if: $with) { ...Team }\n  }\n}\n\nfragment App on App_v1 {\n  path\n  name\n  endpoints { __typename ...End ... on EndpointHttp_v1 { url method } }\n}\n\nfragment Team on Team_v1 { name contact apps { name path } }\n\nfragment End on Endpoint_v1 { name provider ... on EndpointTcp_v1 { port } }\n",
    "{ a: apps_v1(name: \"billing\") { n: name ... @skip(if: false) { path } } b: teams_v1 { name } }",
    "query A { apps_v1 { name team { name } ...F } } query B($x: String!) { teams_v1(name: $x) { ...T } } fragment F on App_v1 { team { contact } } fragment T on Team_v1 { apps { ...F } }",
    "{ __schema { types { name fields(includeDeprecated: true) { name type { kind ofType { name } } } } } __type(name: \"App_v1\") { name possibleTypes { name interfaces { name } } } }",
    "{ apps_v1(filter: {team: {filter: {name: \"core\"}}, name: {in: [\"a\", \"b\"]}, ratio: 1.5e3, x: null}) { labels parameters } }",
    "query ($k: __TypeKind = OBJECT, $i: Int = -12, $l: [String!]! = [\"a\"]) { apps_v1(filter: {k: $k, i: $i, l: $l}) { name } }",
    "{ apps_v1(name: \"\"\"\n    block\n      text \\\"\"\" é 😀\n  \"\"\") { name # a comment, with é\n } }",
    "{ teams_v1(name: \"\\u00e9\\n\\uD83D\\uDE00\\u{1F600} \\\\ \\\"\") { name, contact,, } }",
    "query Both { apps_v1 { name endpoints { name ... on EndpointHttp_v1 { x: url } ... on EndpointTcp_v1 { x: name } } } clusters_v1 { name serverUrl } }",
    "mutation M { x(y: 1) { z } } query Q { apps_v1 { name } }",
    "mutation M { x ...F } query Q { apps_v1 { name ...G } } fragment F on Team_v1 { name } fragment G on App_v1 { path }",
    "\"about\" query Q(\"what\" $p: String) { apps_v1(path: $p) { ...F } } \"\"\"é\"\"\" fragment F on App_v1 { name }",
    "{ apps_v1 { ...A } } fragment A on App_v1 { name ...B } fragment B on App_v1 { path ...C } fragment C on App_v1 { team { name } }",
    "type New implements Node & Other @deprecated { id(a: [Int!] = [1]): String! } { apps_v1 { name } } directive @x(a: Int!) repeatable on FIELD | QUERY",
    "{ apps_v1 { name @include(if: true) @skip(if: false) path } } extend schema @x { query: Query } enum E { A B } input I { a: Int = 1 } union U = App_v1 | Team_v1 scalar S interface N { a: Int }",
    "query ($a: Boolean, $b: String) { apps_v1(name: $b) { name @skip(if: $a) team { name @include(if: true) apps { team { apps { name } } } } } }",
    "{ apps_v1 { team { name } team { contact apps { name } } team { apps { path } } } apps_v1 { name } }",
    "subscription S($a: Int) { x } { resources_v1(path: \"/a\", schema: \"b\") { path content sha256sum } }",
];

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    "=",
    "!",
    "$",
    "@",
    "...",
    "|",
    "&",
    "query",
    "mutation",
    "fragment",
    "on",
    "subscription",
    "true",
    "false",
    "null",
    "1",
    "-1",
    "2.5",
    "3000000000",
    "\"text\"",
    "\"\"",
    "\"\"\"b\"\"\"",
    "name",
    "path",
    "team",
    "contact",
    "apps",
    "apps_v1",
    "teams_v1",
    "App_v1",
    "Team_v1",
    "Endpoint_v1",
    "EndpointTcp_v1",
    "EndpointHttp_v1",
    "DatafileObject_v1",
    "Query",
    "String",
    "Int",
    "Boolean",
    "JSON",
    "ID",
    "Nope",
    "nope",
    "__typename",
    "__schema",
    "__type",
    "__TypeKind",
    "$p",
    "$f",
    "$x",
    "@skip(if: true)",
    "@include",
    "@deprecated",
    "@x",
    "...F",
    "...App",
    "... on App_v1",
    "filter",
    "filter: {a: 1, a: 2}",
    "name: 1",
    "path: [\"a\"]",
    "if: $p",
    "if: 1",
    "($p: String)",
    "{ name }",
    "{ a: name a: path }",
    "x: name",
    "x: path",
    "type",
    "extend",
    "schema",
    "scalar",
    "enum",
    "url",
    "port",
    "provider",
    "endpoints",
    "labels",
    "$k: __TypeKind = OBJEC",
    "fields { type { fields { type { fields { name } } } } }",
    "fragment F on App_v1 { ...F }",
    "query Q { __typename }",
    "{ __typename }",
    ",",
    "#",
    "# c\n",
    "\n",
    "\r\n",
    "\r",
];

/// Names, and other tokens that can replace a name.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "name", "path", "team", "contact", "apps", "apps_v1", "teams_v1", "clusters_v1", "App_v1", "Team_v1", "Endpoint_v1",
    "EndpointTcp_v1", "EndpointHttp_v1", "DatafileObject_v1", "Query", "String", "Int", "Float", "Boolean", "JSON", "ID",
    "__typename", "__schema", "__type", "__TypeKind", "__Type", "url", "port", "provider", "endpoints", "labels", "filter",
    "skip", "include", "deprecated", "if", "reason", "p", "f", "x", "F", "App", "Team", "End", "Q", "A", "B", "a", "on", "true",
    "null", "1", "1.5", "\"text\"", "[1, \"a\"]", "{a: 1}", "$p", "[String]", "query", "mutation", "name { name }",
    "team { name }", "x: name", "name: path", "... on EndpointTcp_v1 { port }", "... on Team_v1 { name }", "...App",
    "things_v1", "others_v1", "shapes_v1", "Thing_v1", "Other_v1", "Shape_v1", "one_string", "many_int", "must_float",
    "name @skip(if: true) @skip(if: $a)", "name @include(fi: 1)", "name @nope(name: 1)", "name: 1, name: 2", "kind", "fields",
];

#[rustfmt::skip]
const LETTERS: &[&str] = &[
    "a", "b", "e", "n", "s", "t", "_", "V", "0", "1", "9", ".", "-", "+", "\"", "'", "\\", "\\u", "{", "}",
    "(", ")", "$", "@", "!", "?", "%", ":", "#", " ", "\n", "\r", "\t", ",", "é", "☃", "😀", "\u{feff}",
    "\u{0}", "\u{7f}", "\"\"\"",
];

/// Splits a string into words, punctuation and white space.
fn pieces(text: &str) -> Vec<String> {
    let class = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => 0,
        '.' => 1,
        ' ' | '\n' | '\r' | '\t' | ',' => 2,
        _ => 3,
    };
    let mut pieces: Vec<String> = Vec::new();
    for character in text.chars() {
        let goes_on = pieces
            .last()
            .and_then(|last| last.chars().next_back())
            .is_some_and(|last| class(last) == class(character) && class(character) < 3);
        match pieces.last_mut() {
            Some(last) if goes_on => last.push(character),
            _ => pieces.push(character.to_string()),
        }
    }
    pieces
}

/// Mutates a request one to three times.
pub fn mutate(text: &str, chance: &mut SeededRng) -> String {
    let mut text = text.to_owned();
    for _ in 0..=chance.below(6) / 2 {
        text = change(&text, chance);
    }
    text
}

fn change(text: &str, chance: &mut SeededRng) -> String {
    if chance.percent(60) {
        return change_name(text, chance);
    }
    let in_letters = chance.percent(35);
    let mut pieces = if in_letters { text.chars().map(String::from).collect() } else { pieces(text) };
    if pieces.is_empty() {
        return WORDS[chance.below(WORDS.len())].to_owned();
    }
    let place = chance.below(pieces.len());
    let new = if in_letters { LETTERS } else { WORDS };
    let new = new[chance.below(new.len())];
    match chance.below(7) {
        0 => drop(pieces.remove(place)),
        1 | 2 => new.clone_into(&mut pieces[place]),
        3 => pieces.insert(place, if in_letters { new.to_owned() } else { format!(" {new} ") }),
        4 => {
            let other = if in_letters { (place + 1) % pieces.len() } else { chance.below(pieces.len()) };
            pieces.swap(place, other);
        }
        5 => {
            let from = chance.below(pieces.len());
            let copied = pieces[from.min(place)..from.max(place)].concat();
            let to = chance.below(pieces.len());
            pieces.insert(to, if copied.len() < 200 { copied } else { new.to_owned() });
        }
        // Truncate the request.
        _ if chance.percent(20) => pieces.truncate(place),
        _ => " ".clone_into(&mut pieces[place]),
    }
    pieces.concat()
}

/// Replaces a name by a similar one or by another.
fn change_name(text: &str, chance: &mut SeededRng) -> String {
    let mut pieces = pieces(text);
    let is_name =
        |at: &usize| pieces[*at].starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    let names: Vec<usize> = (0..pieces.len()).filter(is_name).collect();
    if names.is_empty() {
        return text.to_owned();
    }
    let place = names[chance.below(names.len())];
    match chance.below(5) {
        0 => {
            let mut letters: Vec<char> = pieces[place].chars().collect();
            let letter = chance.below(letters.len());
            match chance.below(3) {
                0 => drop(letters.remove(letter)),
                1 => letters.swap(0, letter),
                _ => letters.insert(letter, 'x'),
            }
            pieces[place] = letters.into_iter().collect();
        }
        1 => pieces.swap(place, names[chance.below(names.len())]),
        2 => {
            let other = names[chance.below(names.len())];
            let copied = pieces[other].clone();
            pieces[place] = copied;
        }
        3 => pieces[place] = format!("{} {}", pieces[place], NAMES[chance.below(NAMES.len())]),
        _ => NAMES[chance.below(NAMES.len())].clone_into(&mut pieces[place]),
    }
    pieces.concat()
}

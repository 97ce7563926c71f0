//! The grammar of schema definitions. A request must not contain schema definitions, but syntax errors in
//! them are reported first.

use super::cursor::{ParseResult, Parser};
use super::lexer::Kind;
use super::tree::{Definition, DirectiveRules, Name, SchemaChild, SchemaNode, SchemaPart, Type, TypeForm};

const LOCATIONS: [&str; 20] = [
    "QUERY",
    "MUTATION",
    "SUBSCRIPTION",
    "FIELD",
    "FRAGMENT_DEFINITION",
    "FRAGMENT_SPREAD",
    "INLINE_FRAGMENT",
    "VARIABLE_DEFINITION",
    "SCHEMA",
    "SCALAR",
    "OBJECT",
    "FIELD_DEFINITION",
    "ARGUMENT_DEFINITION",
    "INTERFACE",
    "UNION",
    "ENUM",
    "ENUM_VALUE",
    "INPUT_OBJECT",
    "INPUT_FIELD_DEFINITION",
    "DIRECTIVE_DEFINITION",
];

/// An argument or an input field, with the properties that a directive definition needs.
struct InputDefinition<'t> {
    name: &'t str,
    required: Option<String>,
    node: SchemaNode<'t>,
}

impl<'t> Parser<'t> {
    /// Parses the definition that starts with a keyword.
    pub fn schema_part(&mut self, word: &str) -> ParseResult<Definition<'t>> {
        let at = self.token.start;
        self.description()?;
        self.expect_word(word)?;
        if word == "directive" {
            return self.directive_definition(at);
        }
        let (name, node) = self.body(word, false)?;
        let is_type = name.is_some();
        Ok(Definition::Schema(SchemaPart { at, name, is_type, directive: None, node }))
    }

    /// Parses `extend` and the extension that follows.
    pub fn extension(&mut self) -> ParseResult<Definition<'t>> {
        let at = self.token.start;
        let keyword = self.lookahead()?;
        let word = self.text_of(keyword);
        if keyword.kind != Kind::Name
            || !matches!(word, "schema" | "scalar" | "type" | "interface" | "union" | "enum" | "input")
        {
            return Err(self.unexpected(keyword));
        }
        self.advance()?;
        self.advance()?;
        let (name, node) = self.body(word, true)?;
        // An extension must add something.
        if node.directives.is_empty() && node.children.len() < 2 {
            return Err(self.unexpected(self.token));
        }
        Ok(Definition::Schema(SchemaPart { at, name, is_type: false, directive: None, node }))
    }

    /// Parses the rest of a definition after its keyword: the name, if any, and the body.
    fn body(&mut self, word: &str, extends: bool) -> ParseResult<(Option<&'t str>, SchemaNode<'t>)> {
        let name = if word == "schema" { None } else { Some(self.name()?.text) };
        let mut children = Vec::new();
        if matches!(word, "type" | "interface") && self.accept_word("implements")? {
            let interfaces = self.separated(Kind::Amp, Self::name)?;
            children.extend(interfaces.into_iter().map(SchemaChild::Type));
        }
        let directives = self.directives(true)?;
        children.push(SchemaChild::Directives);
        let (open, close) = (Kind::BraceL, Kind::BraceR);
        let location = match word {
            "schema" => {
                let types = if extends {
                    self.optional_many(open, Self::root, close)?
                } else {
                    self.many(open, Self::root, close)?
                };
                children.extend(types.into_iter().map(SchemaChild::Type));
                "SCHEMA"
            }
            "type" | "interface" => {
                let fields = self.optional_many(open, Self::field_definition, close)?;
                children.extend(fields.into_iter().map(SchemaChild::Node));
                if word == "type" { "OBJECT" } else { "INTERFACE" }
            }
            "union" => {
                if self.accept(Kind::Equals)? {
                    let types = self.separated(Kind::Pipe, Self::name)?;
                    children.extend(types.into_iter().map(SchemaChild::Type));
                }
                "UNION"
            }
            "enum" => {
                let values = self.optional_many(open, Self::enum_value, close)?;
                children.extend(values.into_iter().map(SchemaChild::Node));
                "ENUM"
            }
            "input" => {
                let location = if extends { "ARGUMENT_DEFINITION" } else { "INPUT_FIELD_DEFINITION" };
                let fields = self.optional_many(open, Self::input, close)?;
                children.extend(fields.into_iter().map(|input| input.child(location)));
                "INPUT_OBJECT"
            }
            _ => "SCALAR",
        };
        Ok((name, SchemaNode { location, directives, children }))
    }

    fn root(&mut self) -> ParseResult<Name<'t>> {
        self.operation_kind()?;
        self.expect(Kind::Colon)?;
        self.name()
    }

    fn field_definition(&mut self) -> ParseResult<SchemaNode<'t>> {
        self.description()?;
        self.name()?;
        let arguments = self.optional_many(Kind::ParenL, Self::input, Kind::ParenR)?;
        self.expect(Kind::Colon)?;
        let type_ = self.type_()?;
        let directives = self.directives(true)?;
        let mut children: Vec<_> =
            arguments.into_iter().map(|input| input.child("ARGUMENT_DEFINITION")).collect();
        children.extend([SchemaChild::Type(type_.named()), SchemaChild::Directives]);
        Ok(SchemaNode { location: "FIELD_DEFINITION", directives, children })
    }

    fn input(&mut self) -> ParseResult<InputDefinition<'t>> {
        self.description()?;
        let name = self.name()?.text;
        self.expect(Kind::Colon)?;
        let type_ = self.type_()?;
        let default = if self.accept(Kind::Equals)? { Some(self.value(true)?) } else { None };
        let directives = self.directives(true)?;
        let required = matches!(type_.form, TypeForm::NonNull(_)) && default.is_none();
        let mut children = vec![SchemaChild::Type(type_.named())];
        children.extend(default.map(SchemaChild::Value));
        children.push(SchemaChild::Directives);
        let node = SchemaNode { location: "", directives, children };
        Ok(InputDefinition { name, required: required.then(|| type_.to_string()), node })
    }

    fn enum_value(&mut self) -> ParseResult<SchemaNode<'t>> {
        self.description()?;
        if ["true", "false", "null"].iter().any(|word| self.means(word)) {
            let found = self.describe_token();
            return Err(
                self.syntax_error(&format!("{found} is reserved and cannot be used for an enum value."))
            );
        }
        self.name()?;
        let directives = self.directives(true)?;
        Ok(SchemaNode { location: "ENUM_VALUE", directives, children: vec![SchemaChild::Directives] })
    }

    fn directive_definition(&mut self, at: usize) -> ParseResult<Definition<'t>> {
        self.expect(Kind::At)?;
        let name = Some(self.name()?.text);
        let inputs = self.optional_many(Kind::ParenL, Self::input, Kind::ParenR)?;
        let repeatable = self.accept_word("repeatable")?;
        self.expect_word("on")?;
        let locations = self.separated(Kind::Pipe, Self::location)?;
        let arguments = inputs.iter().map(|input| (input.name, input.required.clone())).collect();
        let rules = DirectiveRules { repeatable, locations, arguments };
        let children = inputs.into_iter().map(|input| input.child("ARGUMENT_DEFINITION")).collect();
        let node = SchemaNode { location: "DIRECTIVE_DEFINITION", directives: Vec::new(), children };
        Ok(Definition::Schema(SchemaPart { at, name, is_type: false, directive: Some(rules), node }))
    }

    fn location(&mut self) -> ParseResult<&'t str> {
        let token = self.token;
        let name = self.name()?.text;
        if LOCATIONS.contains(&name) { Ok(name) } else { Err(self.unexpected(token)) }
    }
}

impl<'t> InputDefinition<'t> {
    fn child(self, location: &'static str) -> SchemaChild<'t> {
        SchemaChild::Node(SchemaNode { location, ..self.node })
    }
}

impl std::fmt::Display for Type<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.form {
            TypeForm::Named(name) => out.write_str(name),
            TypeForm::List(inner) => write!(out, "[{inner}]"),
            TypeForm::NonNull(inner) => write!(out, "{inner}!"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::document::syntax::{QuerySyntaxError, parse};

    fn check(text: &str, expect: Result<(), (usize, &str)>) {
        let fault =
            |(at, message)| QuerySyntaxError::Mistake { message: format!("Syntax Error: {message}"), at };
        assert_eq!(parse(text, 50).map(|_| ()), expect.map_err(fault), "{text}");
    }

    #[test]
    fn syntax_errors_in_schemas_are_reported() {
        check("\"a\" type A implements & B & C @d { e(f: [G!]! = [1] @h): I \"j\" k: L }", Ok(()));
        check("schema @a { query: B } extend schema { mutation: C } scalar D", Ok(()));
        check("union A = | B | C enum D { E } input F { g: H = 1 } interface I", Ok(()));
        check("directive @a(b: C! = 1) repeatable on FIELD | QUERY", Ok(()));
        check("directive @a on NOWHERE", Err((16, "Unexpected Name \"NOWHERE\".")));
        check("extend type A", Err((13, "Unexpected <EOF>.")));
        check("extend directive @a", Err((7, "Unexpected Name \"directive\".")));
        let reserved = "Name \"true\" is reserved and cannot be used for an enum value.";
        check("enum A { true }", Err((9, reserved)));
        check("type A { }", Err((9, "Expected Name, found \"}\".")));
        check("schema { a: B }", Err((9, "Unexpected Name \"a\".")));
        check("\"a\" b", Err((0, "Unexpected description, only GraphQL definitions support descriptions.")));
    }
}

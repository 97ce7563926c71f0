//! The syntax tree of a request; each node has the byte offset of its start.

use std::collections::HashSet;
use std::ops::Range;

/// A parsed document.
#[derive(Debug)]
pub struct Document<'t> {
    /// The definitions, in order.
    pub definitions: Vec<Definition<'t>>,
    /// The byte ranges of the descriptions.
    pub descriptions: Vec<Range<usize>>,
}

impl<'t> Document<'t> {
    /// Number of selections and directives, which determines the cost of validation.
    pub fn selections(&self) -> usize {
        let each = self.definitions.iter().map(|definition| match definition {
            Definition::Operation(operation) => weight(&operation.directives) + operation.set.selections(),
            Definition::Fragment(fragment) => weight(&fragment.directives) + fragment.set.selections(),
            Definition::Schema(_) => 0,
        });
        each.sum()
    }

    /// The fragments that queries use.
    pub fn used_by_queries(&self) -> HashSet<&'t str> {
        let queries = self.operations().filter(|operation| operation.kind == OperationKind::Query);
        let mut sets: Vec<&SelectionSet<'t>> = queries.map(|operation| &operation.set).collect();
        let mut used = HashSet::new();
        while let Some(set) = sets.pop() {
            let names: Vec<_> = set.spreads().iter().map(|spread| spread.name.text).collect();
            let new: Vec<_> = names.into_iter().filter(|name| used.insert(*name)).collect();
            sets.extend(self.definitions.iter().filter_map(|definition| match definition {
                Definition::Fragment(fragment) if new.contains(&fragment.name.text) => Some(&fragment.set),
                _ => None,
            }));
        }
        used
    }

    /// The operations among the definitions.
    pub fn operations(&self) -> impl Iterator<Item = &Operation<'t>> {
        self.definitions.iter().filter_map(|definition| match definition {
            Definition::Operation(operation) => Some(operation),
            _ => None,
        })
    }
}

impl<'t> SelectionSet<'t> {
    /// The spreads in this set and in all nested sets: first those of this set, then those of the nested
    /// sets, starting with the last nested set.
    pub fn spreads(&self) -> Vec<&Spread<'t>> {
        let mut spreads = Vec::new();
        let mut sets = vec![self];
        while let Some(set) = sets.pop() {
            for selection in &set.selections {
                match selection {
                    Selection::Spread(spread) => spreads.push(spread),
                    Selection::Field(field) => sets.extend(&field.set),
                    Selection::Inline(inline) => sets.push(&inline.set),
                }
            }
        }
        spreads
    }
}

/// A top-level definition.
#[derive(Debug)]
pub enum Definition<'t> {
    /// A query, mutation or subscription.
    Operation(Operation<'t>),
    /// A named fragment.
    Fragment(Fragment<'t>),
    /// A part of a schema, which a request cannot execute.
    Schema(SchemaPart<'t>),
}

/// A name and its offset.
#[derive(Debug, Clone, Copy)]
pub struct Name<'t> {
    pub text: &'t str,
    pub at: usize,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    Query,
    Mutation,
    Subscription,
}

#[derive(Debug)]
pub struct Operation<'t> {
    pub at: usize,
    pub kind: OperationKind,
    pub name: Option<Name<'t>>,
    pub variables: Vec<Variable<'t>>,
    pub directives: Vec<Directive<'t>>,
    pub set: SelectionSet<'t>,
}

#[derive(Debug)]
pub struct Fragment<'t> {
    pub at: usize,
    pub name: Name<'t>,
    pub condition: Name<'t>,
    pub directives: Vec<Directive<'t>>,
    pub set: SelectionSet<'t>,
}

/// The declaration of a variable.
#[derive(Debug)]
pub struct Variable<'t> {
    pub at: usize,
    pub name: Name<'t>,
    pub type_: Type<'t>,
    pub default: Option<Value<'t>>,
    pub directives: Vec<Directive<'t>>,
}

#[derive(Debug)]
pub struct Type<'t> {
    pub at: usize,
    pub form: TypeForm<'t>,
}

#[derive(Debug)]
pub enum TypeForm<'t> {
    Named(&'t str),
    List(Box<Type<'t>>),
    NonNull(Box<Type<'t>>),
}

impl<'t> Type<'t> {
    /// The named type inside of all wrappers, and its offset.
    pub fn named(&self) -> Name<'t> {
        match &self.form {
            TypeForm::Named(text) => Name { text, at: self.at },
            TypeForm::List(inner) | TypeForm::NonNull(inner) => inner.named(),
        }
    }
}

/// A selection set: selections in braces.
#[derive(Debug)]
pub struct SelectionSet<'t> {
    pub at: usize,
    pub selections: Vec<Selection<'t>>,
}

impl SelectionSet<'_> {
    fn selections(&self) -> usize {
        let each = self.selections.iter().map(|selection| match selection {
            Selection::Field(field) => {
                1 + weight(&field.directives) + field.set.as_ref().map_or(0, SelectionSet::selections)
            }
            Selection::Spread(spread) => 1 + weight(&spread.directives),
            Selection::Inline(inline) => 1 + weight(&inline.directives) + inline.set.selections(),
        });
        each.sum()
    }
}

/// The validation cost of directives: each repetition of a directive is compared with all others.
fn weight(directives: &[Directive<'_>]) -> usize {
    directives.len() * directives.len()
}

#[derive(Debug)]
pub enum Selection<'t> {
    Field(Field<'t>),
    Spread(Spread<'t>),
    Inline(InlineFragment<'t>),
}

#[derive(Debug)]
pub struct Field<'t> {
    pub at: usize,
    pub alias: Option<&'t str>,
    pub name: &'t str,
    pub arguments: Vec<Argument<'t>>,
    pub directives: Vec<Directive<'t>>,
    pub set: Option<SelectionSet<'t>>,
}

/// `...Name`
#[derive(Debug)]
pub struct Spread<'t> {
    pub at: usize,
    pub name: Name<'t>,
    pub directives: Vec<Directive<'t>>,
}

/// `... on Name {}`
#[derive(Debug)]
pub struct InlineFragment<'t> {
    pub at: usize,
    pub condition: Option<Name<'t>>,
    pub directives: Vec<Directive<'t>>,
    pub set: SelectionSet<'t>,
}

#[derive(Debug)]
pub struct Argument<'t> {
    pub name: Name<'t>,
    pub value: Value<'t>,
}

#[derive(Debug)]
pub struct Directive<'t> {
    pub at: usize,
    pub name: &'t str,
    pub arguments: Vec<Argument<'t>>,
}

#[derive(Debug)]
pub struct Value<'t> {
    pub at: usize,
    pub literal: Literal<'t>,
}

/// A literal; strings are stored as written, with quotes.
#[derive(Debug)]
pub enum Literal<'t> {
    Variable(&'t str),
    Int(&'t str),
    Float(&'t str),
    String(&'t str),
    Block(&'t str),
    Boolean(bool),
    Null,
    Enum(&'t str),
    List(Vec<Value<'t>>),
    Object(Vec<(Name<'t>, Value<'t>)>),
}

/// A part of a schema.
#[derive(Debug)]
pub struct SchemaPart<'t> {
    pub at: usize,
    /// The name of the defined type or directive; the schema itself has none.
    pub name: Option<&'t str>,
    /// Whether the part defines a type with that name.
    pub is_type: bool,
    /// The definition, if the part defines a directive.
    pub directive: Option<DirectiveRules<'t>>,
    pub node: SchemaNode<'t>,
}

/// The definition of a directive.
#[derive(Debug)]
pub struct DirectiveRules<'t> {
    pub repeatable: bool,
    pub locations: Vec<&'t str>,
    /// Names of the arguments. A required argument has its type as written, any other has `None`.
    pub arguments: Vec<(&'t str, Option<String>)>,
}

/// A part of a schema that can have directives.
#[derive(Debug, Default)]
pub struct SchemaNode<'t> {
    /// The directive location of this part.
    pub location: &'static str,
    pub directives: Vec<Directive<'t>>,
    pub children: Vec<SchemaChild<'t>>,
}

/// A child of a schema node, in the order of validation.
#[derive(Debug)]
pub enum SchemaChild<'t> {
    Type(Name<'t>),
    /// The directives of the node.
    Directives,
    Value(Value<'t>),
    Node(SchemaNode<'t>),
}

//! The syntax tree of a template.

use std::rc::Rc;

pub(crate) type Name = Rc<str>;

/// A parsed template.
#[derive(Debug)]
pub(crate) struct Template {
    pub body: Vec<Statement>,
    /// Names that `set` or `macro` assign anywhere in the template.
    pub assigned: Vec<Name>,
}

#[derive(Debug)]
pub(crate) enum Statement {
    Data(Rc<str>),
    Print(Expression),
    If { branches: Vec<(Expression, Vec<Statement>)>, otherwise: Vec<Statement> },
    For(Rc<ForLoop>),
    Set { target: AssignTarget, value: Expression },
    SetBlock { target: AssignTarget, filters: Vec<Call>, body: Vec<Statement> },
    With { values: Vec<(AssignTarget, Expression)>, body: Vec<Statement> },
    Macro(Rc<Macro>),
    CallBlock { call: Expression, caller: Rc<Macro> },
    Filter { filters: Vec<Call>, body: Vec<Statement> },
    Base64 { body: Vec<Statement> },
    Raise { message: Expression, line: usize },
}

#[derive(Debug)]
pub(crate) struct ForLoop {
    pub target: AssignTarget,
    pub iterable: Expression,
    pub condition: Option<Expression>,
    pub recursive: bool,
    pub body: Vec<Statement>,
    pub otherwise: Vec<Statement>,
    pub line: usize,
}

#[derive(Debug)]
pub(crate) enum AssignTarget {
    Name(Name),
    Attribute(Name, Name),
    Tuple(Vec<AssignTarget>),
}

#[derive(Debug)]
pub(crate) struct Macro {
    pub name: Name,
    /// Whether the macro is the body of a `call`, which has no name.
    pub is_anonymous: bool,
    pub parameters: Vec<(Name, Option<Expression>)>,
    pub body: Vec<Statement>,
    /// Whether the body uses `caller`, `varargs`, `kwargs`.
    pub uses: MacroUses,
}

/// The special names that the body of a macro uses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MacroUses {
    pub caller: bool,
    pub varargs: bool,
    pub kwargs: bool,
}

#[derive(Debug)]
pub(crate) struct Expression {
    pub kind: ExpressionKind,
    pub line: usize,
}

#[derive(Debug)]
pub(crate) enum ExpressionKind {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Rc<str>),
    Name(Name),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Dict(Vec<(Expression, Expression)>),
    Attribute(Box<Expression>, Name),
    Item(Box<Expression>, Box<Expression>),
    Slice(Box<Expression>, [Option<Box<Expression>>; 3]),
    Call(Box<Expression>, Arguments),
    Filter(Box<Expression>, Call),
    Test(Box<Expression>, Call),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Positive(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Concat(Vec<Expression>),
    Compare(Box<Expression>, Vec<(Comparison, Expression)>),
    Conditional { condition: Box<Expression>, then: Box<Expression>, otherwise: Option<Box<Expression>> },
}

/// A filter or a test with its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub name: Name,
    pub arguments: Arguments,
    pub line: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub positional: Vec<Expression>,
    pub named: Vec<(Name, Expression)>,
    pub star: Option<Box<Expression>>,
    pub double_star: Option<Box<Expression>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

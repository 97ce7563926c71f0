//! Answers as Rust types: from the executor's tree in the same process, from JSON elsewhere.

use serde::de::{self, DeserializeOwned, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::engine::{Engine, PlannedRequest, Request};
use crate::failure::Failure;
use crate::provenance::Provenance;
use crate::read_set::ReadSet;
use crate::sink::{Discard, Sink};
use crate::tree::{Node, TreeBuilder};

/// Why a typed answer failed.
#[derive(Debug, thiserror::Error)]
pub enum TypedError {
    /// The request or the data has errors.
    #[error("{}", .0.first().map_or("the request was refused", |failure| failure.message.as_str()))]
    Failed(Vec<Failure>),
    /// The answer does not match the type.
    #[error("the answer does not match the Rust type: {0}")]
    Mismatch(String),
}

/// A request that is part of the program; `cargo xtask generate` generates these from `query.graphql` files.
pub trait Operation: DeserializeOwned {
    /// The request to send.
    const SOURCE: QuerySource;
}

/// An operation, the text that it is in, and the shared fragments that the text spreads.
#[derive(Clone, Copy, Debug)]
pub struct QuerySource {
    name: &'static str,
    text: &'static str,
    fragments: &'static [&'static [&'static str]],
}

impl QuerySource {
    /// The operation `name` of a text. Each fragment comes with those that it spreads itself.
    pub const fn new(
        name: &'static str,
        text: &'static str,
        fragments: &'static [&'static [&'static str]],
    ) -> Self {
        Self { name, text, fragments }
    }

    /// The name of the operation in the text.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The whole text, as it is sent: with every shared fragment that it needs, once.
    ///
    /// ```
    /// use qontract_graphql::QuerySource;
    /// let source = QuerySource::new("Q", "query Q { t { ...A ...B } }", &[&["<A>", "<B>"], &["<B>"]]);
    /// assert_eq!(source.text(), "query Q { t { ...A ...B } }\n<A>\n<B>");
    /// ```
    pub fn text(&self) -> String {
        let mut parts = vec![self.text];
        for fragment in self.fragments.iter().copied().flatten() {
            if !parts.contains(fragment) {
                parts.push(fragment);
            }
        }
        parts.join("\n")
    }
}

/// A typed answer and its records.
#[derive(Clone, Debug)]
pub struct TypedAnswer<T> {
    /// The data.
    pub data: T,
    /// Origins of its objects, if requested.
    pub provenance: Option<Provenance>,
    /// The files that were read, if requested.
    pub touched: Option<ReadSet>,
    /// Schemas of the objects that were read, in order of first occurrence.
    pub schemas: Vec<Box<str>>,
}

impl Engine {
    /// Executes a request and deserializes the answer; any error in the answer is an error here.
    ///
    /// ```
    /// use qontract_graphql::{Engine, Request};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Teams { teams: Vec<Team> }
    /// #[derive(serde::Deserialize)]
    /// struct Team { name: String }
    ///
    /// # use std::sync::Arc;
    /// # use qontract_bundle::{Pool, load};
    /// # let bundle = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
    /// #     "graphql": [
    /// #         {"name": "Query", "fields": [
    /// #             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
    /// #         {"name": "Team", "fields": [
    /// #             {"name": "name", "type": "string"}, {"name": "description", "type": "string"}]}],
    /// #     "data": {"/core.yml": {"$schema": "/team.yml", "name": "core", "description": "The core team"}}}"#;
    /// # let engine = Engine::new(Arc::new(load(bundle, &Pool::default())?))?;
    /// let request = Request { query: "{ teams { name } }", ..Request::default() };
    /// let answer = engine.query::<Teams>(request)?;
    /// assert_eq!(answer.data.teams[0].name, "core");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn query<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<TypedAnswer<T>, TypedError> {
        let TypedAnswer { data, provenance, touched, schemas } = self.tree(request)?;
        let data = T::deserialize(data).map_err(|ShapeMismatch(why)| TypedError::Mismatch(why))?;
        Ok(TypedAnswer { data, provenance, touched, schemas })
    }

    /// Executes a request and returns a tree; any error in the answer is an error here.
    pub fn tree(&self, request: Request<'_>) -> Result<TypedAnswer<Node>, TypedError> {
        let TypedAnswer { data, provenance, touched, schemas } =
            self.write(request, TreeBuilder::default())?;
        Ok(TypedAnswer { data: data.into_node(), provenance, touched, schemas })
    }

    /// Executes a request and drops the answer; any error in the answer is an error here. Even a very large
    /// answer takes no memory.
    pub fn check(&self, request: Request<'_>) -> Result<TypedAnswer<()>, TypedError> {
        let TypedAnswer { provenance, touched, schemas, .. } = self.write(request, Discard::default())?;
        Ok(TypedAnswer { data: (), provenance, touched, schemas })
    }

    fn write<S: Sink>(&self, request: Request<'_>, sink: S) -> Result<TypedAnswer<S>, TypedError> {
        let document = self.document(request.query);
        let document = document.as_ref().as_ref().map_err(|failures| TypedError::Failed(failures.clone()))?;
        let (plan, variables) = match self.plan(document, request).map_err(TypedError::Failed)? {
            PlannedRequest::Query { plan, variables, .. } => (plan, variables),
            PlannedRequest::ErrorOnly(failure, _) => return Err(TypedError::Failed(vec![failure])),
        };
        let executed = self.execute(&plan, &variables, request, sink);
        if !executed.failures.is_empty() {
            return Err(TypedError::Failed(executed.failures));
        }
        let (provenance, touched) = (executed.record.provenance, executed.record.touched);
        Ok(TypedAnswer { data: executed.data, provenance, touched, schemas: executed.schemas })
    }
}

/// A tree does not match a type.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ShapeMismatch(String);

impl de::Error for ShapeMismatch {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl<'de> de::Deserializer<'de> for Node {
    type Error = ShapeMismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeMismatch> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Flag(value) => visitor.visit_bool(value),
            Node::Int(value) => visitor.visit_i32(value),
            Node::Float(value) => visitor.visit_f64(value),
            Node::Text(text) => visitor.visit_string(text.into()),
            Node::List(items) => visitor.visit_seq(NodeItems(items.into_iter())),
            Node::Object(fields) => visitor.visit_map(NodeFields { fields: fields.into_iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeMismatch> {
        match self {
            Node::Null => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeMismatch> {
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ShapeMismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeMismatch> {
        match self {
            Node::Text(text) => visitor.visit_enum(String::from(text).into_deserializer()),
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct NodeItems(std::vec::IntoIter<Node>);

impl<'de> SeqAccess<'de> for NodeItems {
    type Error = ShapeMismatch;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ShapeMismatch> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct NodeFields {
    fields: std::vec::IntoIter<(Box<str>, Node)>,
    value: Option<Node>,
}

impl<'de> MapAccess<'de> for NodeFields {
    type Error = ShapeMismatch;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ShapeMismatch> {
        let Some((key, value)) = self.fields.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(String::from(key).into_deserializer()).map(Some)
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ShapeMismatch> {
        let value = self.value.take().ok_or_else(|| ShapeMismatch("a value without a key".to_owned()))?;
        seed.deserialize(value)
    }
}

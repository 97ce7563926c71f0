//! Responses as Rust types. In the process of the executor, they are deserialized from its tree; other
//! processes deserialize them from JSON.

use serde::de::{self, DeserializeOwned, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::engine::{Engine, PlannedRequest, Request};
use crate::failure::Failure;
use crate::provenance::Provenance;
use crate::read_set::ReadSet;
use crate::sink::{Discard, Sink};
use crate::tree::{Node, TreeBuilder};

/// The reason why a typed query failed.
#[derive(Debug, thiserror::Error)]
pub enum TypedError {
    /// The response has errors.
    #[error("{}", .0.first().map_or("the request was refused", |failure| failure.message.as_str()))]
    Failed(Vec<Failure>),
    /// The response does not match the Rust type.
    #[error("the response does not match the Rust type: {0}")]
    Mismatch(String),
}

/// A query whose response type is known at compile time. `cargo xtask generate` generates the implementations
/// from `query.graphql` files.
pub trait Operation: DeserializeOwned {
    /// The source of the query.
    const SOURCE: QuerySource;
}

/// The source of an operation: its name, its document and the shared fragments that the document spreads.
#[derive(Clone, Copy, Debug)]
pub struct QuerySource {
    name: &'static str,
    text: &'static str,
    fragments: &'static [&'static [&'static str]],
}

impl QuerySource {
    /// Creates the source of the operation `name` in a document. Each element of `fragments` contains the
    /// source of a fragment and of the fragments that it spreads.
    pub const fn new(
        name: &'static str,
        text: &'static str,
        fragments: &'static [&'static [&'static str]],
    ) -> Self {
        Self { name, text, fragments }
    }

    /// The name of the operation.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The complete document to send, with each shared fragment included once.
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

/// A typed response and the data recorded during execution.
#[derive(Clone, Debug)]
pub struct TypedAnswer<T> {
    /// The data.
    pub data: T,
    /// Origins of the objects in the response, if requested.
    pub provenance: Option<Provenance>,
    /// The files that were read, if requested.
    pub touched: Option<ReadSet>,
    /// Schemas of the objects that were read, in order of first occurrence.
    pub schemas: Vec<Box<str>>,
}

impl Engine {
    /// Executes a request and deserializes the response. Returns `Err` if the response has any errors.
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

    /// Executes a request and returns the response as a tree. Returns `Err` if the response has any errors.
    pub fn tree(&self, request: Request<'_>) -> Result<TypedAnswer<Node>, TypedError> {
        let TypedAnswer { data, provenance, touched, schemas } =
            self.execute_into(request, TreeBuilder::default())?;
        Ok(TypedAnswer { data: data.into_node(), provenance, touched, schemas })
    }

    /// Executes a request and discards the response, which is never stored in memory. Returns `Err` if the
    /// response has any errors.
    pub fn check(&self, request: Request<'_>) -> Result<TypedAnswer<()>, TypedError> {
        let TypedAnswer { provenance, touched, schemas, .. } =
            self.execute_into(request, Discard::default())?;
        Ok(TypedAnswer { data: (), provenance, touched, schemas })
    }

    fn execute_into<S: Sink>(&self, request: Request<'_>, sink: S) -> Result<TypedAnswer<S>, TypedError> {
        let (plan, variables) = match self.plan_request(request).map_err(TypedError::Failed)? {
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

/// The error if a tree does not match a Rust type.
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

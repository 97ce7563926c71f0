//! The `data` of a response as a tree, for callers in the same process. No JSON is written or parsed.

mod json;

use crate::sink::Sink;

/// A value in a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Flag(bool),
    /// An integer.
    Int(i32),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Text(Box<str>),
    /// A list of values.
    List(Vec<Node>),
    /// Values by key, in response order.
    Object(Vec<(Box<str>, Node)>),
}

impl Node {
    /// The value at a JSON pointer. GraphQL names need no escape sequences, so none are supported.
    pub fn pointer(&self, pointer: &str) -> Option<&Node> {
        pointer.split('/').skip(1).try_fold(self, |node, step| match node {
            Node::Object(fields) => fields.iter().find(|(name, _)| **name == *step).map(|(_, value)| value),
            Node::List(items) => items.get(step.parse::<usize>().ok()?),
            Node::Null | Node::Flag(_) | Node::Int(_) | Node::Float(_) | Node::Text(_) => None,
        })
    }
}

/// A sink that builds a [`Node`].
#[derive(Debug, Default)]
pub struct TreeBuilder {
    /// The incomplete objects and lists, innermost last.
    open: Vec<Node>,
    /// The keys whose values are incomplete, innermost last.
    keys: Vec<Box<str>>,
    root: Option<Node>,
    size: usize,
}

impl TreeBuilder {
    /// The finished tree.
    pub fn into_node(self) -> Node {
        self.root.unwrap_or(Node::Null)
    }

    fn put(&mut self, node: Node, size: usize) {
        self.size += size + 8;
        match self.open.last_mut() {
            Some(Node::List(items)) => items.push(node),
            Some(Node::Object(fields)) => {
                if let Some(key) = self.keys.pop() {
                    fields.push((key, node));
                }
            }
            _ => self.root = Some(node),
        }
    }

    fn close(&mut self) {
        if let Some(node) = self.open.pop() {
            self.put(node, 0);
        }
    }
}

/// A position in a tree under construction: the number of open containers, of pending keys, and of entries in
/// the innermost container.
#[derive(Clone, Copy, Debug)]
pub struct TreeMark {
    open: usize,
    keys: usize,
    within: usize,
}

impl Sink for TreeBuilder {
    type Mark = TreeMark;

    fn mark(&self) -> TreeMark {
        let within = match self.open.last() {
            Some(Node::List(items)) => items.len(),
            Some(Node::Object(fields)) => fields.len(),
            _ => 0,
        };
        TreeMark { open: self.open.len(), keys: self.keys.len(), within }
    }

    fn rewind(&mut self, mark: TreeMark) {
        self.open.truncate(mark.open);
        self.keys.truncate(mark.keys);
        match self.open.last_mut() {
            Some(Node::List(items)) => items.truncate(mark.within),
            Some(Node::Object(fields)) => fields.truncate(mark.within),
            _ => self.root = None,
        }
    }

    fn size(&self) -> usize {
        self.size
    }

    fn null(&mut self) {
        self.put(Node::Null, 0);
    }

    fn flag(&mut self, value: bool) {
        self.put(Node::Flag(value), 0);
    }

    fn int(&mut self, value: i32) {
        self.put(Node::Int(value), 0);
    }

    fn float(&mut self, value: f64) {
        self.put(Node::Float(value), 0);
    }

    fn text(&mut self, value: &str) {
        self.put(Node::Text(value.into()), value.len());
    }

    fn begin_object(&mut self) {
        self.open.push(Node::Object(Vec::new()));
    }

    fn key(&mut self, name: &str, _: &[u8]) {
        self.keys.push(name.into());
    }

    fn end_object(&mut self) {
        self.close();
    }

    fn begin_list(&mut self) {
        self.open.push(Node::List(Vec::new()));
    }

    fn element(&mut self) {}

    fn end_list(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::Node;

    #[test]
    fn a_pointer_leads_to_a_value() {
        let list = Node::List(vec![Node::Null, Node::Int(1)]);
        let node = Node::Object(vec![("a".into(), list.clone()), ("b".into(), Node::Flag(true))]);
        let check =
            |pointer: &str, expect: Option<&Node>| assert_eq!(node.pointer(pointer), expect, "{pointer}");
        check("", Some(&node));
        check("/a", Some(&list));
        check("/a/1", Some(&Node::Int(1)));
        check("/b", Some(&Node::Flag(true)));
        for nowhere in ["/c", "/a/2", "/a/b", "/b/0"] {
            check(nowhere, None);
        }
    }
}

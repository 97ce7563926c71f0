//! Just enough HTTP to set up a server: one request, one JSON answer.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use serde_json::Value;

/// A server on a port of the loopback interface, and who asks.
pub struct Client<'a> {
    pub port: u16,
    pub token: &'a str,
}

impl Client<'_> {
    /// Sends a request; the status and the JSON of the answer, null if it has none.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("a server that listens");
        // HTTP/1.0, so that the answer comes in one piece and the connection ends with it.
        write!(
            stream,
            "{method} /v1/{path} HTTP/1.0\r\nhost: 127.0.0.1\r\nx-vault-token: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
        .expect("a request can be sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Sends a request that must succeed; the answer.
    pub fn demand(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.call(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status}: {answer}");
        answer
    }
}

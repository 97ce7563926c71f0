//! A minimal HTTP client to set up a server: one request, one JSON response.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use serde_json::Value;

/// A client of a server on the loopback interface, with its token.
pub struct HttpClient<'a> {
    pub port: u16,
    pub token: &'a str,
}

impl HttpClient<'_> {
    /// Sends a request; returns the status and the JSON of the response, or null without a body.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("a server that listens");
        // With HTTP/1.0, there is no chunked encoding, and the connection is closed after the response.
        write!(
            stream,
            "{method} /v1/{path} HTTP/1.0\r\nhost: 127.0.0.1\r\nx-vault-token: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
        .expect("a request can be sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("a response");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Sends a request that must succeed; returns the JSON of the response.
    pub fn call_ok(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.call(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status}: {answer}");
        answer
    }
}

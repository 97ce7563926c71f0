//! A scripted API server with namespaces, which it stores as a real one does, and faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use qontract_testkit::{BodyFraming, Loopback, LoopbackRequest, Reply};
use serde_json::{Map, Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";

/// A fault of the server.
#[derive(Clone, Copy, Debug)]
pub enum ApiFault {
    /// Until this time, every request is refused with 429 and `Retry-After: 1`.
    ThrottledUntil(Instant),
    /// Only half of each list is sent.
    HalfLists(BodyFraming),
    /// Lists have two pages, of which the second one fails.
    NoSecondPage,
    /// Writes are redirected to this namespace, with 307.
    RedirectedWrites(&'static str),
    /// Writes are refused with 429.
    ThrottledWrites,
}

/// The server; it ends with the test process.
pub struct ApiServer {
    server: Loopback,
    state: Arc<Mutex<ApiState>>,
}

#[derive(Default)]
struct ApiState {
    fault: Option<ApiFault>,
    namespaces: BTreeMap<String, Value>,
    revision: u64,
    throttled: usize,
    writes: usize,
}

impl ApiServer {
    /// Starts a server without namespaces.
    pub fn start() -> Self {
        let state: Arc<Mutex<ApiState>> = Arc::default();
        let shared = Arc::clone(&state);
        let server = Loopback::with_bodies(move |request| shared.lock().reply(request));
        Self { server, state }
    }

    /// The address.
    pub fn url(&self) -> &str {
        self.server.url()
    }

    /// Sets or ends the fault.
    pub fn fail(&self, fault: Option<ApiFault>) {
        self.state.lock().fault = fault;
    }

    /// The names of the namespaces.
    pub fn namespaces(&self) -> Vec<String> {
        self.state.lock().namespaces.keys().cloned().collect()
    }

    /// Number of requests that were refused with 429.
    pub fn throttled(&self) -> usize {
        self.state.lock().throttled
    }

    /// Number of writes that took effect.
    pub fn writes(&self) -> usize {
        self.state.lock().writes
    }

    /// The method and path of each write that was received so far, whether or not it took effect.
    pub fn received_writes(&self) -> Vec<String> {
        let lines = self.server.seen().into_iter().filter_map(|head| {
            let (method, rest) = head.split_once(' ')?;
            let path = rest.split([' ', '?']).next()?;
            (method != "GET").then(|| format!("{method} {path}"))
        });
        lines.collect()
    }

    /// Number of requests so far.
    pub fn requests(&self) -> usize {
        self.server.seen().len()
    }
}

impl ApiState {
    fn reply(&mut self, request: &LoopbackRequest) -> Reply {
        if let Some(ApiFault::ThrottledUntil(end)) = self.fault
            && Instant::now() < end
        {
            return self.throttle(1);
        }
        let mut words = request.line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match self.fault {
            Some(ApiFault::RedirectedWrites(name)) if method != "GET" => {
                let location = format!("location: {NAMESPACES}/{name}?{query}\r\n");
                return Reply::Full("307 Temporary Redirect", location, String::new());
            }
            Some(ApiFault::ThrottledWrites) if method != "GET" => return self.throttle(0),
            _ => {}
        }
        if path == NAMESPACES && method == "GET" {
            return self.list(query);
        }
        let (status, body) = match (method, path.strip_prefix("/api/v1/namespaces/")) {
            (_, None) => discovery(path).map_or_else(not_found, |body| ("200 OK", body)),
            ("GET", Some(name)) => {
                self.namespaces.get(name).map_or_else(not_found, |it| ("200 OK", it.clone()))
            }
            ("PATCH", Some(name)) => self.apply(name, query, &request.body),
            ("DELETE", Some(name)) => self.delete(name, &request.body),
            (_, Some(_)) => ("405 Method Not Allowed", json!({})),
        };
        Reply::Full(status, String::new(), body.to_string())
    }

    fn throttle(&mut self, seconds: u8) -> Reply {
        self.throttled += 1;
        let status = json!({"kind": "Status", "reason": "TooManyRequests", "message": "too many requests"});
        Reply::Full("429 Too Many Requests", format!("retry-after: {seconds}\r\n"), status.to_string())
    }

    fn list(&self, query: &str) -> Reply {
        let items: Vec<&Value> = self.namespaces.values().collect();
        let whole = json!({"metadata": {"continue": ""}, "items": items}).to_string();
        match self.fault {
            Some(ApiFault::HalfLists(framing)) => Reply::Half("200 OK", whole, framing),
            Some(ApiFault::NoSecondPage) if query.contains("continue=") => {
                Reply::Half("200 OK", whole, BodyFraming::Length)
            }
            Some(ApiFault::NoSecondPage) => {
                let page = json!({"metadata": {"continue": "next"}, "items": items[..items.len() / 2]});
                Reply::Full("200 OK", String::new(), page.to_string())
            }
            Some(ApiFault::ThrottledUntil(_) | ApiFault::RedirectedWrites(_) | ApiFault::ThrottledWrites)
            | None => Reply::Full("200 OK", String::new(), whole),
        }
    }

    /// Server-side apply with one manager: the object becomes what is applied. The precondition is checked.
    fn apply(&mut self, name: &str, query: &str, body: &[u8]) -> (&'static str, Value) {
        let mut object: Value = serde_json::from_slice(body).unwrap_or_default();
        let live = self.namespaces.get(name);
        let (version, uid) = (&object["metadata"]["resourceVersion"], &object["metadata"]["uid"]);
        let is_current = match live {
            Some(live) => *version == live["metadata"]["resourceVersion"],
            None => uid.is_null(),
        };
        if !is_current {
            return (
                "409 Conflict",
                json!({"kind": "Status", "reason": "Conflict", "message": "it changed"}),
            );
        }
        self.revision += 1;
        self.writes += 1;
        let manager = query.split('&').find_map(|pair| pair.strip_prefix("fieldManager="));
        let fields = json!([{"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields(&object)}]);
        let uid = live
            .map_or_else(|| json!(format!("uid-{}", self.revision)), |live| live["metadata"]["uid"].clone());
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = (100 + self.revision).to_string().into();
        object["metadata"]["managedFields"] = fields;
        object["status"] = json!({"phase": "Active"});
        self.namespaces.insert(name.to_owned(), object.clone());
        ("200 OK", object)
    }

    fn delete(&mut self, name: &str, body: &[u8]) -> (&'static str, Value) {
        let options: Value = serde_json::from_slice(body).unwrap_or_default();
        let Some(live) = self.namespaces.get(name) else { return not_found() };
        if options["preconditions"]["resourceVersion"] != live["metadata"]["resourceVersion"] {
            return (
                "409 Conflict",
                json!({"kind": "Status", "reason": "Conflict", "message": "it changed"}),
            );
        }
        self.writes += 1;
        self.namespaces.remove(name);
        ("200 OK", json!({"kind": "Status", "status": "Success"}))
    }
}

fn not_found() -> (&'static str, Value) {
    ("404 Not Found", json!({"kind": "Status", "reason": "NotFound", "message": "not found"}))
}

fn discovery(path: &str) -> Option<Value> {
    let verbs = ["get", "list", "create", "patch", "delete"];
    match path {
        "/api/v1" => Some(json!({"resources": [
            {"kind": "Namespace", "name": "namespaces", "namespaced": false, "verbs": verbs},
        ]})),
        "/apis" => Some(json!({"groups": []})),
        _ => None,
    }
}

/// The fields of an applied object, without those that identify it.
fn fields(object: &Value) -> Value {
    let Some(object) = object.as_object() else { return json!({}) };
    let identity = ["apiVersion", "kind", "name", "uid", "resourceVersion"];
    let own = object.iter().filter(|(key, _)| !identity.contains(&key.as_str()));
    Value::Object(own.map(|(key, value)| (format!("f:{key}"), fields(value))).collect::<Map<_, _>>())
}

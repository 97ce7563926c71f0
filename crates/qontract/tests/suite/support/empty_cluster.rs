//! An API server without objects, on the loopback interface.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::json;

use super::loopback::{Loopback, Reply};

/// An API server without objects that records the number of concurrent requests.
pub struct EmptyCluster {
    /// The requests.
    pub server: Loopback,
    /// Maximum number of concurrent requests.
    pub max_in_flight: Arc<AtomicUsize>,
}

impl EmptyCluster {
    /// Each request is held until another one arrives, or `hold` has passed.
    pub fn start(hold: Duration) -> Self {
        let max_in_flight = Arc::new(AtomicUsize::new(0));
        let in_flight = (Mutex::new(0_usize), Condvar::new());
        let max = Arc::clone(&max_in_flight);
        let server = Loopback::start(move |line| {
            let (count, arrived) = &in_flight;
            let mut now = count.lock().unwrap();
            *now += 1;
            max.fetch_max(*now, Ordering::SeqCst);
            arrived.notify_all();
            let (mut now, _) = arrived.wait_timeout_while(now, hold, |now| *now < 2).unwrap();
            *now -= 1;
            let path = line.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
            let json = "content-type: application/json\r\n".to_owned();
            let kind = |name: &str, kind: &str, namespaced: bool| {
                json!({"name": name, "kind": kind, "namespaced": namespaced, "singularName": "",
                    "verbs": ["get", "list", "patch", "create", "delete"]})
            };
            let body = match path {
                "/api/v1" => json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1",
                    "resources": [kind("namespaces", "Namespace", false), kind("limitranges", "LimitRange", true)]}),
                _ if path.ends_with("/limitranges") => {
                    json!({"kind": "LimitRangeList", "apiVersion": "v1", "metadata": {}, "items": []})
                }
                "/api/v1/namespaces" => {
                    json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": {}, "items": []})
                }
                _ => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "reason": "NotFound", "message": "not found", "code": 404});
                    return Reply::Full("404 Not Found", json, status.to_string());
                }
            };
            Reply::Full("200 OK", json, body.to_string())
        });
        Self { server, max_in_flight }
    }
}

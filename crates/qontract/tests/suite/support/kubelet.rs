//! Plays scheduler and kubelet on a cluster without nodes, and records what happens to the pods of a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use qontract_client_http::Method;
use qontract_testkit::cluster::{Api, unique_name};
use serde_json::{Value, json};

use super::api_request::ApiUser;
use super::pod_history::{PodEvent, PodState};

/// The time until a pod is ready.
pub const START: Duration = Duration::from_secs(2);
/// The time in which a pod ends that does not take its whole grace period.
pub const END: Duration = Duration::from_secs(5);
/// The variable of a pod that takes its whole grace period to end.
pub const SLOW: &str = "TAKES_THE_WHOLE_GRACE_PERIOD";

/// The interval of the heartbeats of the node.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A node, and the watch over the pods of the cluster. Both end when this is dropped.
pub struct Kubelet {
    watch: Child,
    threads: Vec<JoinHandle<()>>,
    events: Arc<Mutex<Vec<PodEvent>>>,
    admin: ApiUser,
    node: String,
}

impl Kubelet {
    /// Starts a node that runs the pods of a namespace.
    pub fn start(api: &'static Api, namespace: &str) -> Self {
        let (admin, node) = (ApiUser::admin(api), unique_name("node"));
        // Pods of DaemonSets of other tests stay away.
        let taint = json!({"key": "example.com/test", "effect": "NoSchedule"});
        let body = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": {"taints": [taint]}});
        let (status, answer) = admin.send(&Method::POST, "/api/v1/nodes", Some(&body));
        assert_eq!(status, 201, "{answer}");
        let mut watch = Command::new(&api.kubectl)
            .arg("--kubeconfig")
            .arg(&api.kubeconfig)
            .args(["get", "--raw", "/api/v1/pods?watch=true&timeoutSeconds=86400"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        let (sender, receiver) = channel();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        let events = Arc::default();
        let (recorded, namespace, name) = (Arc::clone(&events), namespace.to_owned(), node.clone());
        let player = std::thread::spawn(move || {
            let admin = ApiUser::admin(api);
            let begun = Instant::now();
            let tasks = TaskQueue::default();
            Player { admin, node: name, namespace, begun, events: recorded, tasks, seen: BTreeSet::new() }
                .play(&receiver);
        });
        Self { watch, threads: vec![reader, player], events, admin, node }
    }

    /// The events so far.
    pub fn events(&self) -> Vec<PodEvent> {
        self.events.lock().clone()
    }

    /// Number of pods that are ready, and number of pods that exist.
    pub fn pods(&self) -> (usize, usize) {
        let mut pods = BTreeMap::new();
        for PodEvent { uid, state, .. } in self.events() {
            match state {
                PodState::Gone => drop(pods.remove(&uid)),
                state => drop(pods.insert(uid, state)),
            }
        }
        (pods.values().filter(|state| **state == PodState::Ready).count(), pods.len())
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        // The watch has ended already if the API server has. Without it, the threads end.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.admin.send(&Method::DELETE, &format!("/api/v1/nodes/{}", self.node), None);
    }
}

/// An action at a later time.
#[derive(Clone, Debug)]
enum Task {
    Heartbeat,
    Ready(PodId),
    Remove(PodId),
}

/// A pod, which is not confused with another one of the same name.
#[derive(Clone, Debug)]
struct PodId {
    name: String,
    uid: String,
}

/// The actions by time.
#[derive(Default)]
struct TaskQueue {
    tasks: BTreeMap<(Instant, usize), Task>,
    count: usize,
}

impl TaskQueue {
    fn add(&mut self, at: Instant, task: Task) {
        self.count += 1;
        self.tasks.insert((at, self.count), task);
    }

    /// Takes the first task that is due.
    fn take_due(&mut self) -> Option<Task> {
        let entry = self.tasks.first_entry()?;
        (entry.key().0 <= Instant::now()).then(|| entry.remove())
    }

    /// The time until the next task.
    fn wait(&self) -> Duration {
        let next =
            self.tasks.first_key_value().map(|((at, _), _)| at.saturating_duration_since(Instant::now()));
        next.unwrap_or(HEARTBEAT)
    }
}

struct Player {
    admin: ApiUser,
    node: String,
    namespace: String,
    begun: Instant,
    events: Arc<Mutex<Vec<PodEvent>>>,
    tasks: TaskQueue,
    /// What was done for which pod.
    seen: BTreeSet<(&'static str, String)>,
}

impl Player {
    fn play(mut self, received: &Receiver<(Instant, String)>) {
        self.tasks.add(Instant::now(), Task::Heartbeat);
        loop {
            match received.recv_timeout(self.tasks.wait()) {
                Ok((at, line)) => self.observe(at, &serde_json::from_str(&line).unwrap()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Some(task) = self.tasks.take_due() {
                self.perform(&task);
            }
        }
    }

    fn observe(&mut self, at: Instant, event: &Value) {
        let (pod, metadata) = (&event["object"], &event["object"]["metadata"]);
        if metadata["namespace"] != self.namespace.as_str() {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (name, uid) = (text(&metadata["name"]), text(&metadata["uid"]));
        let is_ending = !metadata["deletionTimestamp"].is_null();
        let state = if event["type"] == "DELETED" {
            PodState::Gone
        } else if is_ending {
            PodState::Ending
        } else if is_ready(pod) {
            PodState::Ready
        } else {
            PodState::Starting
        };
        self.events.lock().push(PodEvent { at: at - self.begun, shard: shard(pod), uid: uid.clone(), state });
        if state == PodState::Starting && self.seen.insert(("bound", uid.clone())) {
            self.bind(&name);
            self.tasks.add(at + START, Task::Ready(PodId { name, uid }));
        } else if state == PodState::Ending && self.seen.insert(("ended", uid.clone())) {
            let grace = Duration::from_secs(metadata["deletionGracePeriodSeconds"].as_u64().unwrap());
            let takes = if variable(pod, SLOW).is_some() { grace } else { END.min(grace) };
            self.tasks.add(at + takes, Task::Remove(PodId { name, uid }));
        }
    }

    fn pod_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{name}", self.namespace)
    }

    fn bind(&self, name: &str) {
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": self.node});
        let body =
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
        // The pod may be gone already.
        let (status, answer) =
            self.admin.send(&Method::POST, &format!("{}/binding", self.pod_path(name)), Some(&body));
        assert!(matches!(status, 201 | 404 | 409), "{answer}");
    }

    fn perform(&mut self, task: &Task) {
        match task {
            Task::Heartbeat => {
                let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                let ready = json!({"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastHeartbeatTime": now,
                    "lastTransitionTime": now});
                let path = format!("/api/v1/nodes/{}/status", self.node);
                let metadata = json!({"name": self.node});
                self.set_status(&path, "Node", &metadata, &json!({"conditions": [ready]}));
                self.tasks.add(Instant::now() + HEARTBEAT, Task::Heartbeat);
            }
            Task::Ready(PodId { name, uid }) => {
                let ready = json!({"type": "Ready", "status": "True"});
                let status = json!({"phase": "Running", "conditions": [ready]});
                let metadata = json!({"name": name, "uid": uid});
                self.set_status(&format!("{}/status", self.pod_path(name)), "Pod", &metadata, &status);
            }
            Task::Remove(PodId { name, uid }) => {
                let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                    "preconditions": {"uid": uid}});
                let (status, answer) = self.admin.send(&Method::DELETE, &self.pod_path(name), Some(&body));
                assert!(matches!(status, 200 | 404 | 409), "{answer}");
            }
        }
    }

    fn set_status(&self, path: &str, kind: &str, metadata: &Value, status: &Value) {
        let body = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "status": status});
        let path = format!("{path}?fieldManager=kubelet&force=true");
        let (status, answer) = self.admin.send(&Method::PATCH, &path, Some(&body));
        // The object may be gone already.
        assert!(matches!(status, 200 | 404 | 409), "{answer}");
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The value of a variable of the integration.
fn variable<'p>(pod: &'p Value, name: &str) -> Option<&'p str> {
    let variables = pod["spec"]["containers"][0]["env"].as_array()?;
    variables.iter().find(|variable| variable["name"] == name)?["value"].as_str()
}

/// The shard that a pod runs: the integration and the key, or the number of the shard.
fn shard(pod: &Value) -> String {
    let key = variable(pod, "SHARD_KEY").or_else(|| variable(pod, "SHARD_ID")).unwrap_or_default();
    format!("{} {key}", variable(pod, "INTEGRATION_NAME").unwrap())
}

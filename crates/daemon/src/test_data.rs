//! Data and integrations for unit tests.

use std::sync::Arc;

use parking_lot::Mutex;
use qontract_bundle::{Layout, Pool, load};
use qontract_graphql::{Engine, SchemaCache};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::input::Input;
use crate::pinned_data::PinnedData;
use crate::source::DataSource;

const INTEGRATION: &str = "/app-sre/integration-1.yml";

/// Data that defines only these integrations.
pub fn data_with(integrations: &[&str]) -> Arc<PinnedData> {
    let file = |name: &&str| {
        let content = json!({"$schema": INTEGRATION, "name": name, "schemas": [INTEGRATION]});
        (format!("/integrations/{name}.yml"), content)
    };
    let text = |name: &str| json!({"name": name, "type": "string"});
    let files: Map<String, Value> = integrations.iter().map(file).collect();
    let bundle = json!({
        "git_commit": "0123456789abcdef", "git_commit_timestamp": "", "schemas": {}, "resources": {}, "data": files,
        "graphql": [
            {"name": "Query", "fields": [
                {"name": "integrations_v1", "type": "Integration", "isList": true, "datafileSchema": INTEGRATION},
            ]},
            {"name": "Integration", "fields": [
                text("path"), text("name"), {"name": "schemas", "type": "string", "isList": true},
            ]},
        ],
    });
    let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).expect("a bundle");
    let input = Input { bundle, repo: None };
    let engine = Arc::new(input.engine(None, &SchemaCache::default()).expect("valid types")) as Arc<Engine>;
    Arc::new(PinnedData::with_engine(input, engine, &Layout::default()))
}

/// A data source whose data a test can replace.
pub struct ReplaceableSource {
    current: Mutex<Arc<PinnedData>>,
    generation: watch::Sender<u64>,
}

impl ReplaceableSource {
    /// Creates a source with this data.
    pub fn new(data: Arc<PinnedData>) -> Self {
        Self { current: Mutex::new(data), generation: watch::channel(0).0 }
    }

    /// Replaces the data.
    pub fn replace(&self, data: Arc<PinnedData>) {
        *self.current.lock() = data;
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl DataSource for ReplaceableSource {
    fn current(&self) -> anyhow::Result<Arc<PinnedData>> {
        Ok(Arc::clone(&self.current.lock()))
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

//! Checks the Prometheus rules of namespaces, and runs their tests, with promtool.

mod checks;
mod query;
mod rules;

use std::collections::BTreeMap;

use qontract_client_promtool::Promtool;
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    Data, Fault, FlagKind, Function, FunctionContext, FunctionState, IntegrationMeta, Options, ShardKey,
};
use serde_json::{Value, json};

use checks::promtool_fault;

/// The name of the integration.
pub const NAME: &str = "prometheus-rules-tester";

/// The integration.
pub struct PrometheusRulesTester {
    meta: IntegrationMeta,
    promtool: Promtool,
}

/// Metadata of the integration.
pub fn meta() -> IntegrationMeta {
    IntegrationMeta::new(NAME, "Checks Prometheus rules and runs their tests")
        .query::<query::Rules>()
        .selects("cluster-name", "cluster")
        .excludes("exclude-cluster", "cluster")
        .flag("thread-pool-size", "Run at most this many checks concurrently", FlagKind::Concurrency)
        .reads_ad_hoc()
}

impl PrometheusRulesTester {
    /// Creates the integration with this promtool.
    pub fn new(promtool: Promtool) -> Self {
        Self { meta: meta(), promtool }
    }
}

fn key(cluster: &str) -> ShardKey {
    ShardKey::new([("cluster", cluster)])
}

impl Function for PrometheusRulesTester {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    /// All rendered rules and tests, per cluster, without their provenance.
    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let found = rules::rules(data)?;
        let mut clusters: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for rule in &found.rules {
            clusters.entry(rule.cluster.clone()).or_default().push(json!(rule));
        }
        let mut declared = DeclaredState::new(json!(found.services));
        for (cluster, rules) in clusters {
            declared.add(key(&cluster), Shard::new((), Value::Array(rules), None));
        }
        Ok(Some(declared))
    }

    fn ready(&self) -> Result<(), Fault> {
        self.promtool.check_available().map_err(|error| promtool_fault(&error))
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        let mut found = rules::rules(cx.data)?;
        found.rules.retain(|rule| cx.options.select(&self.meta.flags, &key(&rule.cluster)));
        for fault in checks::faults(&self.promtool, cx, &found).await {
            cx.report_fault(fault);
        }
        Ok(())
    }
}

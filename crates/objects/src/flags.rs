//! Flags that all cluster integrations share, named as in qontract-reconcile.

use qontract_runtime::{FlagKind, IntegrationMeta, Operation, Switch};

/// The label that marks shards on internal clusters.
pub const INTERNAL: &str = "internal";

/// The switch that leaves unmarked objects unchanged.
pub const NO_TAKE_OVER: &str = "no-take-over";

/// Metadata of an integration whose shards are namespaces. The integration declares each namespace
/// independently of the other namespaces in its list.
pub fn namespace_integration<Q: Operation>(name: &str, description: &str) -> IntegrationMeta {
    let meta = cluster_integration::<Q>(name, description).selects("namespace-name", "namespace");
    meta.independent_list("namespaces_v1", &["name"])
}

/// Metadata of an integration whose shards are clusters.
pub fn cluster_integration<Q: Operation>(name: &str, description: &str) -> IntegrationMeta {
    with_cluster_flags(IntegrationMeta::new(name, description).query::<Q>())
}

/// Adds the flags that select clusters and control the connections to them.
#[must_use]
pub fn with_cluster_flags(meta: IntegrationMeta) -> IntegrationMeta {
    let internal = |name, help, has| Switch { name, help, kind: FlagKind::Label { label: INTERNAL, has } };
    let no_jump_host = "jump hosts are not supported: a cluster behind one is reported as unreachable";
    meta.selects("cluster-name", "cluster")
        .excludes("exclude-cluster", "cluster")
        .switches(
            internal("internal", "Only clusters that the data marks as internal", true),
            internal("external", "Only clusters that the data does not mark as internal", false),
        )
        .flag("thread-pool-size", "Process at most this many shards concurrently", FlagKind::Concurrency)
        .switches(
            Switch {
                name: "use-jump-host",
                help: "No effect: clusters are reached directly",
                kind: FlagKind::Ignored(no_jump_host),
            },
            Switch {
                name: "no-use-jump-host",
                help: "Reach clusters directly; this is the default",
                kind: FlagKind::Switch,
            },
        )
}

/// The switch that prints the desired objects.
pub const PRINT_ONLY: &str = "print-only";

/// Adds the switch that prints the desired objects. A program's own flag of that name takes precedence.
#[must_use]
pub fn with_print_flag(meta: IntegrationMeta) -> IntegrationMeta {
    if meta.flags.iter().any(|flag| flag.name == PRINT_ONLY) {
        return meta;
    }
    let help = "Print the desired objects as YAML, without those that contain secrets, and change nothing";
    meta.prints(PRINT_ONLY, help)
}

/// Adds the flags that control the handling of unmarked objects.
#[must_use]
pub fn with_take_over_flags(meta: IntegrationMeta) -> IntegrationMeta {
    meta.switches(
        Switch {
            name: "take-over",
            help: "Also remove undeclared objects without a mark; this is the default",
            kind: FlagKind::Switch,
        },
        Switch { name: NO_TAKE_OVER, help: "Do not remove objects without a mark", kind: FlagKind::Switch },
    )
}

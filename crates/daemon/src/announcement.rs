//! Log line before a run, with the data and the targets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use qontract_access::Mode;
use qontract_config::Config;
use qontract_diagnostics::{MessageSink, sanitize};
use qontract_runtime::slot::Slot;
use qontract_runtime::{AnyDeclaredState, Data, Integration, Options, QueryPolicy, ShardKey};
use qontract_telemetry::log::Level;

use crate::clusters;
use crate::pinned_data::PinnedData;
use crate::process_slot::ProcessSlot;

/// A run that is about to start.
pub struct Announcement<'a> {
    /// The data, if it is named.
    pub data: Option<&'a str>,
    /// The sandbox directory, if one is named.
    pub sandbox: Option<&'a Path>,
    /// The shard slot of this process.
    pub slot: ProcessSlot,
    /// The configuration.
    pub config: &'a Config,
    /// The integration.
    pub integration: &'a Integration,
    /// Whether the run may change target systems.
    pub mode: Mode,
}

impl Announcement<'_> {
    /// Reports the data and the targets of a real run, and warns about configured clusters that are not
    /// in the data.
    pub fn print(&self, flags: &Options, head: &PinnedData, level: Level, messages: &dyn MessageSink) {
        if level <= Level::Warning {
            for warning in self.unknown_clusters(head) {
                messages.note(&format!("warning: {}", sanitize(&warning)));
            }
        }
        if self.mode == Mode::Real && level <= Level::Info {
            messages.note(&self.line(flags, head));
        }
    }

    /// Warnings about configured clusters that are not in the data.
    fn unknown_clusters(&self, head: &PinnedData) -> Vec<String> {
        let is_real =
            self.sandbox().is_none() && clusters::permissions_of(&self.integration.meta().name).is_some();
        let Some(table) = self.config.kubernetes.as_ref().filter(|_| is_real) else { return Vec::new() };
        let names = clusters::names(&*head.source);
        if names.is_empty() {
            names
        } else {
            clusters::unknown_cluster_warnings(table.clusters.keys(), &names)
        }
    }

    /// The data and the targets, in one line.
    pub fn line(&self, flags: &Options, head: &PinnedData) -> String {
        let configured = self.config.graphql.as_ref().map(|graphql| graphql.server.as_str());
        let data = self.data.or(configured).unwrap_or(".");
        let commit = head.commit().map(|commit| format!(" @ {commit}")).unwrap_or_default();
        let targets = self.targets(flags, head);
        let targets = if targets.is_empty() { targets } else { format!(" · {targets}") };
        sanitize(&format!("{} · data {data}{commit}{targets}", self.mode.as_str())).into_owned()
    }

    /// The data and the targets, without clusters: the data is on a server, which is not contacted.
    pub fn line_without_data(&self, server: &str) -> String {
        let parts = [self.mode.as_str().to_owned(), format!("data {server}")];
        let targets = self.program().into_iter().chain(self.sandbox_target());
        sanitize(&parts.into_iter().chain(targets).collect::<Vec<_>>().join(" · ")).into_owned()
    }

    fn sandbox(&self) -> Option<&Path> {
        self.config.sandbox_folder(self.sandbox)
    }

    /// The targets of the run: the sandbox, the program of a process integration, or the clusters of the
    /// selected shards.
    fn targets(&self, flags: &Options, head: &PinnedData) -> String {
        let has_clusters = clusters::permissions_of(&self.integration.meta().name).is_some();
        let place = self.sandbox_target().or_else(|| has_clusters.then(|| self.clusters(flags, head)));
        self.program().into_iter().chain(place).collect::<Vec<_>>().join(" · ")
    }

    /// The program of a process integration.
    fn program(&self) -> Option<String> {
        let program = self.config.integrations.get(&self.integration.meta().name)?;
        program.command.first().map(|program| format!("program {program}"))
    }

    fn sandbox_target(&self) -> Option<String> {
        self.sandbox().map(|folder| format!("sandbox {}", folder.display()))
    }

    fn clusters(&self, flags: &Options, head: &PinnedData) -> String {
        let all = || clusters::names(&*head.source);
        let names = if head.source.engine().is_some() {
            let slot = self.slot.validate();
            let data = Data::new(Arc::clone(&head.source), QueryPolicy::of(self.integration.meta()));
            match (slot, self.integration.declare(&data, flags)) {
                (Ok(slot), Ok(Some(declared))) => selected(self.integration, flags, slot, &*declared),
                // The run reports why it cannot declare.
                _ => all(),
            }
        } else {
            // On a server, querying all data twice only for this line would be too expensive.
            let accepted = &self.integration.meta().flags;
            let is_selected =
                |name: &String| flags.select(accepted, &ShardKey::new([("cluster", name.as_str())]));
            let chosen: Vec<String> = all().into_iter().filter(is_selected).collect();
            // No cluster is left if the flags select by something other than the cluster.
            if chosen.is_empty() { all() } else { chosen }
        };
        if names.is_empty() { "no cluster selected".to_owned() } else { clusters::format_list(&names) }
    }
}

/// The clusters of the shards that flags and slot select and the data does not disable.
fn selected(
    integration: &Integration,
    flags: &Options,
    slot: Slot,
    declared: &dyn AnyDeclaredState,
) -> Vec<String> {
    let accepted = &integration.meta().flags;
    let is_selected = |key: &ShardKey| {
        flags.select(accepted, key)
            && flags.select_labelled(accepted, |label| declared.has_label(label, key))
            && slot.contains(&integration.meta().slot_value(key))
            && declared.disabled(key).is_none()
    };
    let keys = declared.keys().into_iter().filter(|key| is_selected(key));
    let names: BTreeSet<String> = keys.filter_map(|key| Some(key.get("cluster")?.to_owned())).collect();
    names.into_iter().collect()
}

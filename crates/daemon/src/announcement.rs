//! The line before a run: which data goes to which targets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use qontract_access::Mode;
use qontract_config::Config;
use qontract_diagnostics::{MessageSink, shown};
use qontract_runtime::slot::Slot;
use qontract_runtime::{AnyDeclared, Data, Options, Room, ShardKey, Terms};
use qontract_telemetry::log::Level;

use crate::clusters;
use crate::pinned::PinnedData;
use crate::run_loop::Part;

/// A run that is about to start.
pub struct Announcement<'a> {
    /// The data, if it is named.
    pub data: Option<&'a str>,
    /// The folder in place of every target system, if one is named.
    pub sandbox: Option<&'a Path>,
    /// Which part of the work is done here.
    pub part: Part,
    /// The configuration.
    pub config: &'a Config,
    /// The integration.
    pub room: &'a Room,
    /// Whether the run may change the world.
    pub mode: Mode,
}

impl Announcement<'_> {
    /// Names the data and the targets of a real run, and reports clusters of the configuration that the data does not have.
    pub fn print(&self, flags: &Options, head: &PinnedData, level: Level, messages: &dyn MessageSink) {
        if level <= Level::Warning {
            for warning in self.unknown_clusters(head) {
                messages.note(&format!("warning: {}", shown(&warning)));
            }
        }
        if self.mode == Mode::Real && level <= Level::Info {
            messages.note(&self.line(flags, head));
        }
    }

    /// Clusters of the configuration that the data does not have.
    fn unknown_clusters(&self, head: &PinnedData) -> Vec<String> {
        let is_real = self.sandbox().is_none() && clusters::need(&self.room.about().name).is_some();
        let Some(table) = self.config.kubernetes.as_ref().filter(|_| is_real) else { return Vec::new() };
        let names = clusters::names(&*head.source);
        if names.is_empty() { names } else { clusters::unknown(table.clusters.keys(), &names) }
    }

    /// The data and the targets, in one line.
    pub fn line(&self, flags: &Options, head: &PinnedData) -> String {
        let configured = self.config.graphql.as_ref().map(|graphql| graphql.server.as_str());
        let data = self.data.or(configured).unwrap_or(".");
        let commit = head.commit().map(|commit| format!(" @ {commit}")).unwrap_or_default();
        let targets = self.targets(flags, head);
        let targets = if targets.is_empty() { targets } else { format!(" · {targets}") };
        shown(&format!("{} · data {data}{commit}{targets}", self.mode.as_str())).into_owned()
    }

    fn sandbox(&self) -> Option<&Path> {
        self.config.sandbox_folder(self.sandbox)
    }

    /// What the run can touch: the sandbox, the program of a process integration, or the clusters of the selected shards.
    fn targets(&self, flags: &Options, head: &PinnedData) -> String {
        let name = &self.room.about().name;
        let program = self.config.integrations.get(name).and_then(|program| program.command.first());
        let program = program.map(|program| format!("program {program}"));
        let place = match self.sandbox() {
            Some(folder) => Some(format!("sandbox {}", folder.display())),
            None if clusters::need(name).is_some() => Some(self.clusters(flags, head)),
            None => None,
        };
        program.into_iter().chain(place).collect::<Vec<_>>().join(" · ")
    }

    fn clusters(&self, flags: &Options, head: &PinnedData) -> String {
        let all = || clusters::names(&*head.source);
        let names = if head.source.engine().is_some() {
            let slot = Slot::new(self.part.id, self.part.count);
            let data = Data::new(Arc::clone(&head.source), Terms::of(self.room.about()));
            match (slot, self.room.declare(&data, flags)) {
                (Ok(slot), Ok(Some(declared))) => selected(self.room, flags, slot, &*declared),
                // What cannot be declared is reported by the run.
                _ => all(),
            }
        } else {
            // To ask a server for everything twice would cost more than the line is worth.
            let known = &self.room.about().flags;
            let is_selected =
                |name: &String| flags.select(known, &ShardKey::new([("cluster", name.as_str())]));
            let chosen: Vec<String> = all().into_iter().filter(is_selected).collect();
            // A flag that selects something within clusters says nothing about them.
            if chosen.is_empty() { all() } else { chosen }
        };
        if names.is_empty() { "no cluster selected".to_owned() } else { clusters::listed(&names) }
    }
}

/// The clusters of the shards that flags and slot select and the data does not disable.
fn selected(room: &Room, flags: &Options, slot: Slot, declared: &dyn AnyDeclared) -> Vec<String> {
    let known = &room.about().flags;
    let is_selected = |key: &ShardKey| {
        flags.select(known, key)
            && flags.select_labelled(known, |label| declared.has_label(label, key))
            && slot.has(&key.slot_value())
            && declared.disabled(key).is_none()
    };
    let keys = declared.keys().into_iter().filter(|key| is_selected(key));
    let names: BTreeSet<String> = keys.filter_map(|key| Some(key.get("cluster")?.to_owned())).collect();
    names.into_iter().collect()
}

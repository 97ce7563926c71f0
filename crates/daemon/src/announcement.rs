//! The log line about a real run, with the data and the targets of the run.
//!
//! For a run on clusters, the line is printed after the runner has selected the shards, because it names only the
//! clusters of the selected shards.

use std::collections::BTreeSet;
use std::path::Path;

use parking_lot::Mutex;
use qontract_access::Mode;
use qontract_config::Config;
use qontract_diagnostics::{MessageSink, sanitize};
use qontract_runtime::{Integration, SelectionObserver, ShardKey};
use qontract_telemetry::log::Level;

use crate::clusters;
use crate::pinned_data::PinnedData;

/// A run that is about to start.
pub struct Announcement<'a> {
    /// The data, if the command line names it.
    pub data: Option<&'a str>,
    /// The sandbox directory, if one is used.
    pub sandbox: Option<&'a Path>,
    /// The configuration of the process.
    pub config: &'a Config,
    /// The integration that will run.
    pub integration: &'a Integration,
    /// Whether the run may change target systems.
    pub mode: Mode,
}

/// The log line about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnouncementLine {
    /// The whole line.
    Complete(String),
    /// The part of the line before the clusters. The clusters are known when the runner has selected the shards.
    UpToClusters(String),
}

impl AnnouncementLine {
    /// Prints the line: immediately if it is complete, and otherwise when the returned observer is first called.
    pub fn print(self, print: impl Fn(&str) + Send + Sync + 'static) -> Option<SelectionObserver> {
        let start = match self {
            Self::Complete(line) => {
                print(&line);
                return None;
            }
            Self::UpToClusters(start) => Mutex::new(Some(start)),
        };
        Some(SelectionObserver::new(move |keys| {
            if let Some(start) = start.lock().take() {
                print(&sanitize(&format!("{start} · {}", clusters_of(keys))));
            }
        }))
    }
}

impl Announcement<'_> {
    /// Warns about configured clusters that are not in the data and returns the log line if the run is a real run.
    pub fn prepare(
        &self,
        head: &PinnedData,
        level: Level,
        messages: &dyn MessageSink,
    ) -> Option<AnnouncementLine> {
        if level <= Level::Warning {
            for warning in self.unknown_clusters(head) {
                messages.note(&format!("warning: {}", sanitize(&warning)));
            }
        }
        (self.mode == Mode::Real && level <= Level::Info).then(|| self.line(head))
    }

    /// Warnings about configured clusters that are not in the data.
    fn unknown_clusters(&self, head: &PinnedData) -> Vec<String> {
        let is_real = self.sandbox().is_none() && self.has_clusters();
        let Some(table) = self.config.kubernetes.as_ref().filter(|_| is_real) else { return Vec::new() };
        let names = clusters::names(&*head.source);
        if names.is_empty() {
            names
        } else {
            clusters::unknown_cluster_warnings(table.clusters.keys(), &names)
        }
    }

    /// The line: the mode, the data and the targets. The targets are the sandbox, the program of a process
    /// integration, or the clusters.
    pub fn line(&self, head: &PinnedData) -> AnnouncementLine {
        let configured = self.config.graphql.as_ref().map(|graphql| graphql.server.as_str());
        let data = self.data.or(configured).unwrap_or(".");
        let commit = head.commit().map(|commit| format!(" @ {commit}")).unwrap_or_default();
        let line = self.line_with(&format!("{data}{commit}"));
        if self.sandbox().is_none() && self.has_clusters() {
            AnnouncementLine::UpToClusters(line)
        } else {
            AnnouncementLine::Complete(line)
        }
    }

    /// The line without clusters, for data on a server. The server is not contacted.
    pub fn line_without_data(&self, server: &str) -> AnnouncementLine {
        AnnouncementLine::Complete(self.line_with(server))
    }

    fn line_with(&self, data: &str) -> String {
        let parts = [self.mode.as_str().to_owned(), format!("data {data}")];
        let targets = self.program().into_iter().chain(self.sandbox_target());
        sanitize(&parts.into_iter().chain(targets).collect::<Vec<_>>().join(" · ")).into_owned()
    }

    fn has_clusters(&self) -> bool {
        self.integration.meta().permissions.is_some()
    }

    fn sandbox(&self) -> Option<&Path> {
        self.config.sandbox_folder(self.sandbox)
    }

    /// The program of a process integration.
    fn program(&self) -> Option<String> {
        let program = self.config.integrations.get(&self.integration.meta().name)?;
        program.command.first().map(|program| format!("program {program}"))
    }

    fn sandbox_target(&self) -> Option<String> {
        self.sandbox().map(|folder| format!("sandbox {}", folder.display()))
    }
}

/// The clusters of these shards.
fn clusters_of(keys: &[&ShardKey]) -> String {
    let names: BTreeSet<&str> = keys.iter().filter_map(|key| key.get("cluster")).collect();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if names.is_empty() { "no cluster selected".to_owned() } else { clusters::format_list(&names) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_line_with_clusters_is_printed_once_when_the_shards_are_selected() {
        let printed = Arc::new(Mutex::new(Vec::new()));
        let print = |line: AnnouncementLine| {
            let printed = Arc::clone(&printed);
            line.print(move |text| printed.lock().push(text.to_owned()))
        };
        assert!(print(AnnouncementLine::Complete("real run · data .".to_owned())).is_none());
        let start = || AnnouncementLine::UpToClusters("real run · data .".to_owned());
        let (some, none) = (print(start()).expect("an observer"), print(start()).expect("an observer"));
        let keys = ["b", "a", "b"].map(|name| ShardKey::new([("cluster", name)]));
        for _ in 0..2 {
            some.selected(&keys.iter().collect::<Vec<_>>());
        }
        none.selected(&[]);
        let printed = printed.lock();
        let expect = [
            "real run · data .",
            "real run · data . · clusters a, b",
            "real run · data . · no cluster selected",
        ];
        assert_eq!(*printed, expect);
    }
}

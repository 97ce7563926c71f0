//! The command line that runs an integration, which is that of `qontract` or of the peer, and the
//! configuration that it reads.

use std::path::Path;

use super::RunOptions;
use qontract_config::{Config, ConfigLocation, LocatedConfig};

/// The command line that the process was started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CliFlavor {
    /// `qontract`: with a base, only affected shards run; real clusters need a table in the configuration.
    #[default]
    Qontract,
    /// qontract-reconcile: all shards run by default; the data lists the clusters.
    QontractReconcile,
}

impl CliFlavor {
    /// Reads the configuration of a command line; `file` is the file that `--config` names. The peer's
    /// command line does not search the default locations.
    pub fn read_config(self, file: Option<&Path>) -> LocatedConfig {
        LocatedConfig::read(match self {
            Self::Qontract => ConfigLocation::find(file),
            Self::QontractReconcile => ConfigLocation::named(file),
        })
    }
}

impl RunOptions {
    /// The configuration of the run. The peer's command line requires one unless `--data` replaces its
    /// server, and uses the data's clusters without further settings.
    pub fn configuration(&self, located: LocatedConfig) -> anyhow::Result<Config> {
        let is_named = located.location.file().is_some();
        let config = located.content?;
        match self.flavor {
            CliFlavor::Qontract => Ok(config),
            CliFlavor::QontractReconcile if is_named => Ok(config.with_data_clusters()),
            CliFlavor::QontractReconcile if self.data.is_some() => Ok(config),
            CliFlavor::QontractReconcile => {
                anyhow::bail!("no configuration: pass `--config FILE`, or set `QONTRACT_CONFIG`")
            }
        }
    }
}

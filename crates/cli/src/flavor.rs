//! The command line that runs an integration, `qontract` or the peer's, and the configuration it reads.

use super::RunOptions;
use qontract_config::Config;

/// The command line that the process was started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CliFlavor {
    /// `qontract`: with a base, only affected shards run; real clusters need a table in the configuration.
    #[default]
    Qontract,
    /// qontract-reconcile: all shards run by default; the data lists the clusters.
    QontractReconcile,
}

impl RunOptions {
    /// Reads the configuration. The peer's command line requires one unless `--data` replaces its server, and
    /// uses the data's clusters without further settings.
    pub fn configuration(&self) -> anyhow::Result<Config> {
        let config = Config::read(self.config.as_deref())?;
        match self.flavor {
            CliFlavor::Qontract => Ok(config),
            CliFlavor::QontractReconcile if self.config.is_some() => Ok(config.with_data_clusters()),
            CliFlavor::QontractReconcile if self.data.is_some() => Ok(config),
            CliFlavor::QontractReconcile => {
                anyhow::bail!("no configuration: pass `--config FILE`, or set `QONTRACT_CONFIG`")
            }
        }
    }
}

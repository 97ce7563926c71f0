//! The command line that runs an integration, `qontract` or the peer's, and the configuration it reads.

use super::RunOptions;
use qontract_config::Config;

/// The command line that the process was started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandLine {
    /// `qontract`: with a base, only affected shards run; real clusters need a table in the configuration.
    #[default]
    Own,
    /// qontract-reconcile: all shards run by default; the data lists the clusters.
    Peer,
}

impl RunOptions {
    /// Reads the configuration. The peer's command line requires one unless `--data` replaces its server, and
    /// uses the data's clusters without further settings.
    pub fn configuration(&self) -> anyhow::Result<Config> {
        let config = Config::read(self.config.as_deref())?;
        match self.command_line {
            CommandLine::Own => Ok(config),
            CommandLine::Peer if self.config.is_some() => Ok(config.with_data_clusters()),
            CommandLine::Peer if self.data.is_some() => Ok(config),
            CommandLine::Peer => {
                anyhow::bail!("no configuration: pass `--config FILE`, or set `QONTRACT_CONFIG`")
            }
        }
    }
}

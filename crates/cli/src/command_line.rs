//! The command line by which the program runs integrations, ours or the peer's, and how it reads the
//! configuration.

use super::RunOptions;
use qontract_config::Config;

/// The command line that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandLine {
    /// Ours: with a base, only affected shards run, and real clusters need a table in the configuration.
    #[default]
    Own,
    /// The peer's: all shards run by default, and clusters are those of the data.
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

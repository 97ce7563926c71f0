//! By whose name the program runs integrations, and what that means for its configuration.

use super::RunOptions;
use qontract_config::Config;

/// Whose command line it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandLine {
    /// Ours: with a base, only what is affected runs, and real clusters need a table in the configuration.
    #[default]
    Own,
    /// The established runtime's: everything runs unless asked otherwise, and clusters are those of the data.
    Peer,
}

impl RunOptions {
    /// The configuration as this command line reads it: by the established runtime's name, one is needed unless `--data` replaces its server, and
    /// the data's clusters are used without further settings.
    pub fn configuration(&self) -> anyhow::Result<Config> {
        let config = Config::read(self.config.as_deref())?;
        match self.line {
            CommandLine::Own => Ok(config),
            CommandLine::Peer if self.config.is_some() => Ok(config.with_data_clusters()),
            CommandLine::Peer if self.data.is_some() => Ok(config),
            CommandLine::Peer => {
                anyhow::bail!("no configuration: pass `--config FILE`, or set `QONTRACT_CONFIG`")
            }
        }
    }
}

//! A configuration together with its location, so that a command locates and reads the file once.

use crate::{Config, ConfigError, ConfigLocation};

/// The configuration of a command line.
#[derive(Debug)]
pub struct LocatedConfig {
    /// The location.
    pub location: ConfigLocation,
    /// The content, or the reason why it cannot be read.
    pub content: Result<Config, ConfigError>,
}

impl LocatedConfig {
    /// Reads the file at a location; without a file, the configuration is empty.
    pub fn read(location: ConfigLocation) -> Self {
        let content = Config::load(&location);
        Self { location, content }
    }
}

//! Logs the stderr of process integrations.

use std::fmt;
use std::sync::Arc;

use qontract_runtime::process::StderrLog;
use qontract_telemetry::log::{Level, Log, LogLine};

/// Writes each line of stderr to the log at `DEBUG`, with the name of the integration.
pub struct ProgramLog(pub Arc<Log>);

impl fmt::Debug for ProgramLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramLog")
    }
}

impl StderrLog for ProgramLog {
    fn line(&self, integration: &str, line: &str) {
        self.0.write(&LogLine::new(Level::Debug, format!("stderr: {line}")).with("integration", integration));
    }
}

//! The gauges of invalid data, in place of which an older bundle is used, for loops and for the data server.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The gauges of invalid data. All clones share the values.
#[derive(Clone, Debug, Default)]
pub struct DataValidityGauges {
    invalid: Gauge,
    since: Gauge,
}

impl DataValidityGauges {
    /// Adds the gauges to a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "data_invalid",
            "1 while the data is invalid and the last valid bundle is used, else 0",
            self.invalid.clone(),
        );
        registry.register(
            "data_invalid_since_timestamp_seconds",
            "When the data became invalid, in seconds since 1970; 0 while it is valid",
            self.since.clone(),
        );
    }

    /// Sets the time at which the data became invalid, in seconds since 1970; `None` if the data is valid.
    pub fn set(&self, since: Option<i64>) {
        self.invalid.set(i64::from(since.is_some()));
        self.since.set(since.unwrap_or_default());
    }
}

//! Limits on the resources that one file may use. Input is treated as hostile until it has passed these
//! limits.

/// Limits of one YAML file.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of the file, in bytes.
    pub bytes: usize,
    /// Maximum nesting depth of lists and maps, with aliases expanded.
    pub depth: u16,
    /// Maximum number of values, with aliases expanded.
    pub values: u64,
    /// Maximum total bytes of strings, with aliases expanded.
    pub text: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 8 << 20, depth: 200, values: 1_000_000, text: 64 << 20 }
    }
}

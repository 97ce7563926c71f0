//! How much one file may ask for. Input is hostile until it has passed these.

/// Limits of one YAML file.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most bytes of the file.
    pub bytes: usize,
    /// Deepest nesting of lists and maps, aliases expanded.
    pub depth: u16,
    /// Most values after every alias is expanded.
    pub values: u64,
    /// Most bytes of text after every alias is expanded.
    pub text: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 8 << 20, depth: 200, values: 1_000_000, text: 64 << 20 }
    }
}

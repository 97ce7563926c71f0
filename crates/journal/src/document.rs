//! Encodes the documents of the journal as JSON. A ledger has a checksum, because a damaged number could raise a
//! removal budget.

use std::collections::BTreeSet;

use qontract_bundle::Sha256;
use qontract_runtime::guard::LedgerState;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The format version that this program reads and writes.
const FORMAT_VERSION: u32 = 1;

/// The index of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalIndex {
    /// The version of the journal's format.
    format: u32,
    /// The integrations that have a ledger.
    pub ledgers: BTreeSet<String>,
}

impl Default for JournalIndex {
    fn default() -> Self {
        Self { format: FORMAT_VERSION, ledgers: BTreeSet::new() }
    }
}

impl JournalIndex {
    /// Creates the index of these ledgers.
    pub fn of(ledgers: BTreeSet<String>) -> Self {
        Self { ledgers, ..Self::default() }
    }

    /// Encodes the index.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("an index can be written as JSON")
    }

    /// Decodes an index.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexError> {
        // The version is decoded first, because another version may have other fields.
        let FormatVersion { format } = serde_json::from_slice(bytes).map_err(|_| IndexError::Damaged)?;
        if format != FORMAT_VERSION {
            return Err(IndexError::Unsupported(format));
        }
        serde_json::from_slice(bytes).map_err(|_| IndexError::Damaged)
    }
}

#[derive(Deserialize)]
struct FormatVersion {
    format: u32,
}

/// The reason why the index of a journal cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The blob is not an index.
    #[error("has a damaged index")]
    Damaged,
    /// Another version of this program wrote it.
    #[error("has format {0}; this version reads only format {FORMAT_VERSION}")]
    Unsupported(u32),
}

/// A ledger with the checksum of its text.
#[derive(Serialize, Deserialize)]
struct SealedLedger<'a> {
    sha256: String,
    #[serde(borrow)]
    ledger: &'a RawValue,
}

/// Encodes a ledger.
pub fn encode(state: &LedgerState) -> Vec<u8> {
    let ledger = serde_json::value::to_raw_value(state).expect("a ledger can be written as JSON");
    let sealed = SealedLedger { sha256: Sha256::of(ledger.get().as_bytes()).to_string(), ledger: &ledger };
    serde_json::to_vec(&sealed).expect("a ledger can be written as JSON")
}

/// Decodes a ledger; the error is the reason why the bytes are invalid.
pub fn decode(bytes: &[u8]) -> Result<LedgerState, String> {
    let sealed: SealedLedger<'_> =
        serde_json::from_slice(bytes).map_err(|_| "it is not a ledger".to_owned())?;
    if Sha256::of(sealed.ledger.get().as_bytes()).to_string() != sealed.sha256 {
        return Err("its checksum is wrong".to_owned());
    }
    serde_json::from_str(sealed.ledger.get()).map_err(|_| "it is a ledger of another format".to_owned())
}

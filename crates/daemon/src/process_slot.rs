//! The shard slot of a process, as specified on its command line.

use qontract_runtime::slot::{InvalidSlot, Slot};

/// The shard slot of one of several processes that share the work.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSlot {
    /// The index, counted from 0.
    pub id: u32,
    /// Number of processes.
    pub count: u32,
}

impl ProcessSlot {
    /// Converts the values to a slot; fails if the slot does not exist.
    pub fn validate(self) -> Result<Slot, InvalidSlot> {
        Slot::new(self.id, self.count)
    }
}

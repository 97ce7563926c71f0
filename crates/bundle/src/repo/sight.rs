//! How files look from outside: what tells that they did not change without reading them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::packed::{Packer, Unpacker};

/// How a file looks from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Its device.
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
    /// How many bytes it has.
    pub size: u64,
    /// When its content changed, in nanoseconds since 1970.
    pub modified: i64,
    /// When anything about it changed, in nanoseconds since 1970.
    pub changed: i64,
}

impl Sight {
    /// How coarse the times of files may be, and by how much the clock that writes them may be slow.
    const COARSE: Duration = Duration::from_secs(2);

    /// The looks of a file; nothing where looks tell too little.
    #[cfg(unix)]
    pub fn of(about: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let time = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            size: about.size(),
            modified: time(about.mtime(), about.mtime_nsec()),
            changed: time(about.ctime(), about.ctime_nsec()),
        })
    }

    /// The looks of a file: none.
    #[cfg(not(unix))]
    pub fn of(_about: &std::fs::Metadata) -> Option<Self> {
        None
    }

    /// Packs it.
    pub(crate) fn pack(self, packer: &mut Packer) {
        let Self { device, inode, size, modified, changed } = self;
        for number in [device, inode, size, modified.cast_unsigned(), changed.cast_unsigned()] {
            packer.number(number);
        }
    }

    /// One that was packed.
    pub(crate) fn unpack(unpacker: &mut Unpacker<'_>) -> Option<Self> {
        let mut number = || unpacker.number();
        Some(Self {
            device: number()?,
            inode: number()?,
            size: number()?,
            modified: number()?.cast_signed(),
            changed: number()?.cast_signed(),
        })
    }

    /// Whether a file that looked so when it was read after `begun` is the same as long as it looks so: if it was
    /// written shortly before, it can be written again and look the same.
    pub fn is_settled(&self, begun: SystemTime) -> bool {
        let Some(late) =
            begun.checked_sub(Self::COARSE).and_then(|late| late.duration_since(UNIX_EPOCH).ok())
        else {
            return false;
        };
        let late = i64::try_from(late.as_nanos()).unwrap_or(0);
        self.modified < late && self.changed < late
    }
}

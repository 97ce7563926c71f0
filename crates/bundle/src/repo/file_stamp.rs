//! File stamp: the metadata that shows, without reading a file, that it is unchanged.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::codec::{Decoder, Encoder};

/// The stat signature of a file. Equal trustworthy stamps mean equal content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// The device.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The modification time of the file's content (mtime), in nanoseconds since 1970.
    pub modified: i64,
    /// The change time of the file's metadata (ctime), in nanoseconds since 1970.
    pub changed: i64,
}

impl FileStamp {
    /// Upper bound for the granularity of file timestamps and for the clock skew of the file system.
    const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

    /// The stamp of a file. `None` on platforms whose metadata is not sufficient.
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

    /// No stamp on this platform.
    #[cfg(not(unix))]
    pub fn of(_about: &std::fs::Metadata) -> Option<Self> {
        None
    }

    /// Encodes the stamp.
    pub(crate) fn encode(self, packer: &mut Encoder) {
        let Self { device, inode, size, modified, changed } = self;
        for number in [device, inode, size, modified.cast_unsigned(), changed.cast_unsigned()] {
            packer.number(number);
        }
    }

    /// Decodes a stamp.
    pub(crate) fn decode(unpacker: &mut Decoder<'_>) -> Option<Self> {
        let mut number = || unpacker.number();
        Some(Self {
            device: number()?,
            inode: number()?,
            size: number()?,
            modified: number()?.cast_signed(),
            changed: number()?.cast_signed(),
        })
    }

    /// Whether an equal stamp later proves that the file is unchanged, if it was read after `begun`.
    ///
    /// A file that was modified within the timestamp granularity before `begun` can be modified again without
    /// a new stamp ("racily clean" in Git), so its stamp proves nothing.
    pub fn is_trustworthy(&self, begun: SystemTime) -> bool {
        let Some(late) = begun
            .checked_sub(Self::TIMESTAMP_GRANULARITY)
            .and_then(|late| late.duration_since(UNIX_EPOCH).ok())
        else {
            return false;
        };
        let late = i64::try_from(late.as_nanos()).unwrap_or(0);
        self.modified < late && self.changed < late
    }
}

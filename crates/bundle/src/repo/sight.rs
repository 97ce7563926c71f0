//! How files look from outside: what tells that they did not change without reading them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::packed::{Packer, Unpacker};

/// How a file looks from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Its device and its number there.
    pub place: (u64, u64),
    /// How many bytes it has.
    pub size: u64,
    /// When its content and when anything about it changed, in nanoseconds since 1970.
    pub times: (i64, i64),
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
            place: (about.dev(), about.ino()),
            size: about.size(),
            times: (time(about.mtime(), about.mtime_nsec()), time(about.ctime(), about.ctime_nsec())),
        })
    }

    /// The looks of a file: none.
    #[cfg(not(unix))]
    pub fn of(_about: &std::fs::Metadata) -> Option<Self> {
        None
    }

    /// Packs it.
    pub(crate) fn pack(self, packer: &mut Packer) {
        let Self { place, size, times } = self;
        for number in [place.0, place.1, size, times.0.cast_unsigned(), times.1.cast_unsigned()] {
            packer.number(number);
        }
    }

    /// One that was packed.
    pub(crate) fn unpack(unpacker: &mut Unpacker<'_>) -> Option<Self> {
        let mut number = || unpacker.number();
        let (place, size) = ((number()?, number()?), number()?);
        Some(Self { place, size, times: (number()?.cast_signed(), number()?.cast_signed()) })
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
        self.times.0 < late && self.times.1 < late
    }
}

//! Reads small files of a Git directory without following links or blocking.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Maximum size in bytes of a file of a Git directory.
pub const MAX_BYTES: u64 = 1 << 20;

/// The bytes of a regular file; a link, a FIFO, a device or a file that is too large is an error.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

/// The first line of a regular file, which must be UTF-8.
pub fn first_line(path: &Path) -> io::Result<String> {
    let bytes = read(path)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = str::from_utf8(line).map_err(|_| io::Error::other("it is not UTF-8"))?;
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, first_line, read};
    use qontract_testkit::Scratch;

    #[test]
    fn only_small_regular_files_are_read() {
        let scratch = Scratch::new();
        let size = usize::try_from(MAX_BYTES).unwrap();
        let file = scratch.write("file", vec![b'x'; size]);
        assert_eq!(read(&file).unwrap().len(), size);
        let large = scratch.write("large", vec![b'x'; size + 1]);
        assert!(read(&large).is_err());
        scratch.link("link", "file");
        assert!(read(&scratch.path().join("link")).is_err());
        let fifo = scratch.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        assert!(read(&fifo).is_err());
        assert!(read(scratch.path()).is_err());
        assert_eq!(first_line(&scratch.write("lines", "one \ntwo\n")).unwrap(), "one");
    }
}

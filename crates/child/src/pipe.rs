//! Reads the pipe of a child until a deadline.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A pipe whose reads fail with [`io::ErrorKind::TimedOut`] once the deadline has passed.
#[derive(Debug)]
pub struct DeadlineReader<P> {
    pipe: P,
    deadline: Instant,
}

impl<P: Read + AsFd> DeadlineReader<P> {
    /// Reads from `pipe` until `deadline`.
    pub fn new(pipe: P, deadline: Instant) -> Self {
        Self { pipe, deadline }
    }

    /// Waits until a read would not block.
    fn wait(&self) -> io::Result<()> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let timeout = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
            let mut polled = [PollFd::new(&self.pipe, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<P: Read + AsFd> Read for DeadlineReader<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.pipe.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::DeadlineReader;
    use std::io::{self, Read as _, Write as _};
    use std::time::{Duration, Instant};

    #[test]
    fn a_pipe_is_read_until_it_is_closed() {
        let (pipe, mut writer) = io::pipe().unwrap();
        writer.write_all(b"abc").unwrap();
        drop(writer);
        let mut text = String::new();
        let mut reader = DeadlineReader::new(pipe, Instant::now() + Duration::from_mins(1));
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }

    #[test]
    fn a_pipe_that_stays_silent_ends_with_the_deadline() {
        let (pipe, mut writer) = io::pipe().unwrap();
        writer.write_all(b"abc").unwrap();
        let mut reader = DeadlineReader::new(pipe, Instant::now() + Duration::from_millis(50));
        let mut bytes = Vec::new();
        let error = reader.read_to_end(&mut bytes).unwrap_err();
        assert_eq!((error.kind(), bytes.as_slice()), (io::ErrorKind::TimedOut, &b"abc"[..]));
    }
}

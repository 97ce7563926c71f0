//! Limits the memory for the responses of one program, regardless of the number of concurrent shards.
//!
//! | what | limit |
//! |---|---|
//! | one response | [`MAX_RESPONSE_BYTES`] bytes, [`MAX_VALUES`] JSON values |
//! | responses that are being read | [`SMALL_RESPONSE_BYTES`] each; a longer one waits for one of [`MAX_LARGE_READERS`] permits before the rest is read |
//! | responses that are held for planning | [`MAX_HELD_BYTES`] bytes and [`MAX_HELD_VALUES`] JSON values together |
//!
//! A response with many small values takes more memory than its JSON. Therefore, values are counted before parsing.

use std::io::{self, Read};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Maximum size of one response, in bytes.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// Maximum number of JSON values in one response, including keys.
pub const MAX_VALUES: usize = 500_000;
/// Maximum number of bytes of a response that is read without a permit.
pub const SMALL_RESPONSE_BYTES: usize = 1 << 20;
/// Maximum number of responses beyond this size that are read concurrently.
pub const MAX_LARGE_READERS: usize = 2;
/// Maximum size of all responses that are held for planning, in bytes.
pub const MAX_HELD_BYTES: usize = 128 << 20;
/// Maximum number of JSON values in all responses that are held for planning.
pub const MAX_HELD_VALUES: usize = 1_000_000;

/// The memory limits of one program, shared by all of its requests.
#[derive(Debug, Default)]
pub struct ResponseMemory {
    state: Mutex<MemoryUsage>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct MemoryUsage {
    /// Number of long responses that are being read.
    readers: usize,
    held: ResponseSize,
}

/// The size of responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ResponseSize {
    bytes: usize,
    values: usize,
}

/// The bytes of a response. The bytes of a long response hold a reader permit until they are dropped.
#[derive(Debug)]
pub struct ResponseBytes {
    bytes: Vec<u8>,
    _permit: Option<ReaderPermit>,
}

impl ResponseBytes {
    /// The bytes of the JSON document.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The permit to read a long response. The permit is released when it is dropped.
#[derive(Debug)]
struct ReaderPermit(Arc<ResponseMemory>);

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        self.0.lock().readers -= 1;
        self.0.changed.notify_one();
    }
}

/// The memory reservation of a response that is held for planning. The reservation is released when it is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    memory: Arc<ResponseMemory>,
    size: ResponseSize,
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        let held = &mut self.memory.lock().held;
        held.bytes -= self.size.bytes;
        held.values -= self.size.values;
    }
}

impl ResponseMemory {
    /// Reads a response completely. Blocks while too many large responses are being read.
    pub fn read(self: &Arc<Self>, mut stream: impl Read) -> io::Result<ResponseBytes> {
        let mut bytes = Vec::new();
        stream.by_ref().take(SMALL_RESPONSE_BYTES as u64).read_to_end(&mut bytes)?;
        if bytes.len() < SMALL_RESPONSE_BYTES {
            return Ok(ResponseBytes { bytes, _permit: None });
        }
        let permit = self.acquire_reader();
        stream.take((MAX_RESPONSE_BYTES - SMALL_RESPONSE_BYTES) as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_RESPONSE_BYTES {
            return Err(io::Error::other(format!(
                "the response is longer than {} MiB",
                MAX_RESPONSE_BYTES >> 20
            )));
        }
        Ok(ResponseBytes { bytes, _permit: Some(permit) })
    }

    /// Reserves memory for a response that is held for planning; fails if the limits are exceeded.
    pub fn reserve(self: &Arc<Self>, response: &ResponseBytes) -> Result<MemoryReservation, String> {
        let size = ResponseSize { bytes: response.bytes.len(), values: count_values(&response.bytes) };
        let mut state = self.lock();
        let held =
            ResponseSize { bytes: state.held.bytes + size.bytes, values: state.held.values + size.values };
        if held.bytes > MAX_HELD_BYTES {
            return Err(format!("the responses of all shards exceed {} MiB in total", MAX_HELD_BYTES >> 20));
        }
        if held.values > MAX_HELD_VALUES {
            return Err(format!("the responses of all shards exceed {MAX_HELD_VALUES} JSON values in total"));
        }
        state.held = held;
        drop(state);
        Ok(MemoryReservation { memory: Arc::clone(self), size })
    }

    fn acquire_reader(self: &Arc<Self>) -> ReaderPermit {
        let mut state = self.lock();
        self.changed.wait_while(&mut state, |state| state.readers >= MAX_LARGE_READERS);
        state.readers += 1;
        drop(state);
        ReaderPermit(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, MemoryUsage> {
        self.state.lock()
    }
}

/// Refuses a response that has too many JSON values.
pub fn check_values(response: &ResponseBytes) -> Result<(), String> {
    if count_values(&response.bytes) > MAX_VALUES {
        return Err(format!("it has more than {MAX_VALUES} JSON values"));
    }
    Ok(())
}

/// An upper bound of the number of values and keys in a JSON document: each value except the first follows
/// one of `[{,:`. An empty list or map counts as if it had one element.
fn count_values(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' | b':' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Arc<ResponseMemory> {
        Arc::default()
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        let check = |json: &str, expect: usize| assert_eq!(count_values(json.as_bytes()), expect, "{json}");
        check("1", 1);
        check("[]", 2);
        check(r#"{"a": 1}"#, 3);
        check(r#"{"a": [1, 2], "b": {}}"#, 8);
        check(r#"["[{,:", "\"[,"]"#, 3);
        check(r#"["\\", ","]"#, 3);
        check("", 1);
    }

    #[test]
    fn a_response_has_limits() {
        let memory = memory();
        let read = |length: usize| memory.read(io::repeat(b' ').take(length as u64));
        for (length, readers) in [(10, 0), (SMALL_RESPONSE_BYTES - 1, 0), (SMALL_RESPONSE_BYTES, 1)] {
            let response = read(length).unwrap();
            assert_eq!((response.bytes().len(), memory.lock().readers), (length, readers));
        }
        assert_eq!(read(MAX_RESPONSE_BYTES).unwrap().bytes().len(), MAX_RESPONSE_BYTES);
        assert_eq!(
            read(MAX_RESPONSE_BYTES + 1).unwrap_err().to_string(),
            "the response is longer than 64 MiB"
        );
    }

    #[test]
    fn values_of_one_response_are_limited() {
        let response = |values: usize| ResponseBytes { bytes: vec![b','; values - 1], _permit: None };
        assert_eq!(check_values(&response(MAX_VALUES)), Ok(()));
        assert_eq!(
            check_values(&response(MAX_VALUES + 1)),
            Err("it has more than 500000 JSON values".to_owned())
        );
    }

    #[test]
    fn a_third_large_response_waits_for_one_of_the_first_two() {
        let memory = memory();
        let long = || memory.read(io::repeat(b' ').take(SMALL_RESPONSE_BYTES as u64)).unwrap();
        let (first, second) = (long(), long());
        assert_eq!(memory.lock().readers, 2);
        std::thread::scope(|scope| {
            let third = scope.spawn(long);
            // Small responses do not wait.
            assert_eq!(memory.read(&b"{}"[..]).unwrap().bytes(), b"{}");
            assert!(!third.is_finished());
            drop(first);
            drop(third.join().unwrap());
        });
        drop(second);
        assert_eq!(memory.lock().readers, 0);
    }

    #[test]
    fn responses_that_are_held_for_planning_share_a_limit() {
        let memory = memory();
        let response = |bytes: usize, values: usize| {
            let mut text = vec![b' '; bytes];
            text[..values - 1].fill(b',');
            ResponseBytes { bytes: text, _permit: None }
        };
        let half = response(MAX_HELD_BYTES / 2, 1);
        let (first, _second) = (memory.reserve(&half).unwrap(), memory.reserve(&half).unwrap());
        let error = memory.reserve(&response(1, 1)).unwrap_err();
        assert_eq!(error, "the responses of all shards exceed 128 MiB in total");
        drop(first);
        let _many = memory.reserve(&response(MAX_HELD_VALUES, MAX_HELD_VALUES - 1)).unwrap();
        let error = memory.reserve(&response(1, 1)).unwrap_err();
        assert_eq!(error, "the responses of all shards exceed 1000000 JSON values in total");
    }

    #[test]
    fn a_dropped_reservation_is_released() {
        let memory = memory();
        let response = ResponseBytes { bytes: b"[1,2]".to_vec(), _permit: None };
        drop(memory.reserve(&response).unwrap());
        assert_eq!(memory.lock().held, ResponseSize::default());
    }
}

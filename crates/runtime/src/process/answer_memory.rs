//! Limits the memory of the answers of one program, however many shards are processed concurrently.
//!
//! | what | limit |
//! |---|---|
//! | one answer | [`MAX_ANSWER_BYTES`] bytes, [`MAX_VALUES`] JSON values |
//! | answers that are being read | [`SMALL_ANSWER_BYTES`] each; a longer one waits for one of [`MAX_LARGE_READERS`] permits before the rest is read |
//! | answers that are held for planning | [`MAX_HELD_BYTES`] bytes and [`MAX_HELD_VALUES`] JSON values together |
//!
//! An answer of many small values takes more memory than its text. Therefore values are counted before
//! parsing.

use std::io::{self, Read};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Maximum size of one answer, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Maximum number of JSON values in one answer, including keys.
pub const MAX_VALUES: usize = 500_000;
/// An answer up to this many bytes is read without a permit.
pub const SMALL_ANSWER_BYTES: usize = 1 << 20;
/// Maximum number of longer answers that are read concurrently.
pub const MAX_LARGE_READERS: usize = 2;
/// Maximum size of all answers that are held for planning, in bytes.
pub const MAX_HELD_BYTES: usize = 128 << 20;
/// Maximum number of JSON values in all answers that are held for planning.
pub const MAX_HELD_VALUES: usize = 1_000_000;

/// The memory limits of one program, shared by all of its requests.
#[derive(Debug, Default)]
pub struct AnswerMemory {
    state: Mutex<MemoryUsage>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct MemoryUsage {
    /// Number of long answers that are being read.
    readers: usize,
    held: AnswerSize,
}

/// The size of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AnswerSize {
    bytes: usize,
    values: usize,
}

/// The bytes of an answer. A long answer holds a reader permit until it is dropped.
#[derive(Debug)]
pub struct AnswerBytes {
    bytes: Vec<u8>,
    _permit: Option<ReaderPermit>,
}

impl AnswerBytes {
    /// Its text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The permit to read a long answer. It is released when dropped.
#[derive(Debug)]
struct ReaderPermit(Arc<AnswerMemory>);

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        self.0.lock().readers -= 1;
        self.0.changed.notify_one();
    }
}

/// The memory reservation of an answer that is held for planning. It is released when dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    memory: Arc<AnswerMemory>,
    size: AnswerSize,
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        let held = &mut self.memory.lock().held;
        held.bytes -= self.size.bytes;
        held.values -= self.size.values;
    }
}

impl AnswerMemory {
    /// Reads an answer to its end. Blocks while too many long ones are being read.
    pub fn read(self: &Arc<Self>, mut stream: impl Read) -> io::Result<AnswerBytes> {
        let mut bytes = Vec::new();
        stream.by_ref().take(SMALL_ANSWER_BYTES as u64).read_to_end(&mut bytes)?;
        if bytes.len() < SMALL_ANSWER_BYTES {
            return Ok(AnswerBytes { bytes, _permit: None });
        }
        let permit = self.acquire_reader();
        stream.take((MAX_ANSWER_BYTES - SMALL_ANSWER_BYTES) as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::other(format!(
                "the answer is longer than {} MiB",
                MAX_ANSWER_BYTES >> 20
            )));
        }
        Ok(AnswerBytes { bytes, _permit: Some(permit) })
    }

    /// Reserves memory for an answer that is held for planning; fails if the limits are exceeded.
    pub fn reserve(self: &Arc<Self>, answer: &AnswerBytes) -> Result<MemoryReservation, String> {
        let size = AnswerSize { bytes: answer.bytes.len(), values: count_values(&answer.bytes) };
        let mut state = self.lock();
        let held =
            AnswerSize { bytes: state.held.bytes + size.bytes, values: state.held.values + size.values };
        if held.bytes > MAX_HELD_BYTES {
            return Err(format!("the answers of all shards exceed {} MiB in total", MAX_HELD_BYTES >> 20));
        }
        if held.values > MAX_HELD_VALUES {
            return Err(format!("the answers of all shards exceed {MAX_HELD_VALUES} JSON values in total"));
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

/// Refuses an answer that has too many JSON values.
pub fn check_values(answer: &AnswerBytes) -> Result<(), String> {
    if count_values(&answer.bytes) > MAX_VALUES {
        return Err(format!("it has more than {MAX_VALUES} JSON values"));
    }
    Ok(())
}

/// Upper bound of the number of values and keys in a JSON text: each but the first follows one of `[{,:`. An
/// empty list or map counts as if it had one.
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

    fn memory() -> Arc<AnswerMemory> {
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
    fn an_answer_has_its_limits() {
        let memory = memory();
        let read = |length: usize| memory.read(io::repeat(b' ').take(length as u64));
        for (length, readers) in [(10, 0), (SMALL_ANSWER_BYTES - 1, 0), (SMALL_ANSWER_BYTES, 1)] {
            let answer = read(length).unwrap();
            assert_eq!((answer.bytes().len(), memory.lock().readers), (length, readers));
        }
        assert_eq!(read(MAX_ANSWER_BYTES).unwrap().bytes().len(), MAX_ANSWER_BYTES);
        assert_eq!(read(MAX_ANSWER_BYTES + 1).unwrap_err().to_string(), "the answer is longer than 64 MiB");
    }

    #[test]
    fn values_of_one_answer_are_limited() {
        let answer = |values: usize| AnswerBytes { bytes: vec![b','; values - 1], _permit: None };
        assert_eq!(check_values(&answer(MAX_VALUES)), Ok(()));
        assert_eq!(
            check_values(&answer(MAX_VALUES + 1)),
            Err("it has more than 500000 JSON values".to_owned())
        );
    }

    #[test]
    fn a_third_long_answer_waits_for_one_of_the_first_two() {
        let memory = memory();
        let long = || memory.read(io::repeat(b' ').take(SMALL_ANSWER_BYTES as u64)).unwrap();
        let (first, second) = (long(), long());
        assert_eq!(memory.lock().readers, 2);
        std::thread::scope(|scope| {
            let third = scope.spawn(long);
            // Short ones do not wait.
            assert_eq!(memory.read(&b"{}"[..]).unwrap().bytes(), b"{}");
            assert!(!third.is_finished());
            drop(first);
            drop(third.join().unwrap());
        });
        drop(second);
        assert_eq!(memory.lock().readers, 0);
    }

    #[test]
    fn answers_that_are_held_for_planning_are_limited_together() {
        let memory = memory();
        let answer = |bytes: usize, values: usize| {
            let mut text = vec![b' '; bytes];
            text[..values - 1].fill(b',');
            AnswerBytes { bytes: text, _permit: None }
        };
        let half = answer(MAX_HELD_BYTES / 2, 1);
        let (first, _second) = (memory.reserve(&half).unwrap(), memory.reserve(&half).unwrap());
        let error = memory.reserve(&answer(1, 1)).unwrap_err();
        assert_eq!(error, "the answers of all shards exceed 128 MiB in total");
        drop(first);
        let _many = memory.reserve(&answer(MAX_HELD_VALUES, MAX_HELD_VALUES - 1)).unwrap();
        let error = memory.reserve(&answer(1, 1)).unwrap_err();
        assert_eq!(error, "the answers of all shards exceed 1000000 JSON values in total");
    }

    #[test]
    fn a_dropped_reservation_is_released() {
        let memory = memory();
        let answer = AnswerBytes { bytes: b"[1,2]".to_vec(), _permit: None };
        drop(memory.reserve(&answer).unwrap());
        assert_eq!(memory.lock().held, AnswerSize::default());
    }
}

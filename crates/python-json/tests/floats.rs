//! Floats are printed like `CPython` prints them. Python is the real one, started as a process
//! (`QONTRACT_PYTHON`, set by `cargo xtask test`).
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use qontract_python_json::float_repr;

/// Prints the `repr` of each number, given as the decimal value of its bits.
const PRINT: &str = "import struct, sys
for line in sys.stdin:
    print(repr(struct.unpack('<d', struct.pack('<Q', int(line)))[0]))
";

/// Number of random floats to compare, and again as many with few digits after the point, where ties occur.
const CASES: usize = 25_000;

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn random_numbers_are_printed_as_python_prints_them() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut bits: Vec<u64> = (0..CASES).map(|_| random.u64(..)).collect();
    // Between 2^46 and 2^53: sixteen or seventeen digits, some of them halfway between two.
    bits.extend((0..CASES).map(|_| (random.u64(..) >> 12) | ((1023 + random.u64(46..53)) << 52)));
    let python =
        std::env::var("QONTRACT_PYTHON").expect("`QONTRACT_PYTHON` names Python; `cargo xtask test` sets it");
    let mut child = Command::new(python)
        .args(["-c", PRINT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = bits.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n";
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<&str> = text.lines().collect();
    assert_eq!(theirs.len(), bits.len());
    for (bits, theirs) in bits.iter().zip(theirs) {
        assert_eq!(float_repr(f64::from_bits(*bits)), theirs, "{bits:#x}");
    }
}

//! Reads which loader and which shared libraries a program needs (64-bit ELF, little-endian).

use anyhow::{Context as _, Result, bail};

const PROGRAM_DYNAMIC: u32 = 2;
const PROGRAM_LOAD: u32 = 1;
const PROGRAM_INTERPRETER: u32 = 3;
const TAG_END: u64 = 0;
const TAG_NEEDED: u64 = 1;
const TAG_STRINGS: u64 = 5;

/// The loader and the libraries that a file needs. A static program needs neither.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The absolute path of the loader.
    pub loader: Option<String>,
    /// The file names of the libraries.
    pub libraries: Vec<String>,
}

/// One entry of the program header.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// Reads the needs of a file; `None` if the file is not an ELF file, such as a script.
pub fn needs(bytes: &[u8]) -> Result<Option<Needs>> {
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    if bytes.get(4..6) != Some(&[2, 1]) {
        bail!("neither 64-bit nor little-endian");
    }
    let segments = segments(bytes)?;
    let mut needs = Needs::default();
    for segment in &segments {
        match segment.kind {
            PROGRAM_INTERPRETER => needs.loader = Some(text(bytes, segment.offset)?),
            PROGRAM_DYNAMIC => needs.libraries = libraries(bytes, segment, &segments)?,
            _ => {}
        }
    }
    Ok(Some(needs))
}

fn segments(bytes: &[u8]) -> Result<Vec<Segment>> {
    let (start, size, count) = (long(bytes, 32)?, short(bytes, 54)?, short(bytes, 56)?);
    let segment = |index: u16| {
        let at = start + u64::from(index) * u64::from(size);
        Ok(Segment {
            kind: u32::try_from(long(bytes, at)? & 0xffff_ffff)?,
            offset: long(bytes, at + 8)?,
            address: long(bytes, at + 16)?,
            size: long(bytes, at + 32)?,
        })
    };
    (0..count).map(segment).collect()
}

/// The libraries in the dynamic section, whose names are in a table of strings.
fn libraries(bytes: &[u8], dynamic: &Segment, segments: &[Segment]) -> Result<Vec<String>> {
    let (mut names, mut strings) = (Vec::new(), None);
    for entry in (dynamic.offset..dynamic.offset + dynamic.size).step_by(16) {
        match (long(bytes, entry)?, long(bytes, entry + 8)?) {
            (TAG_END, _) => break,
            (TAG_NEEDED, name) => names.push(name),
            (TAG_STRINGS, address) => strings = Some(address),
            _ => {}
        }
    }
    let Some(address) = strings else { return Ok(Vec::new()) };
    let holds = |segment: &&Segment| {
        segment.kind == PROGRAM_LOAD && (segment.address..segment.address + segment.size).contains(&address)
    };
    let segment = segments.iter().find(holds).context("the table of strings is not loaded")?;
    let table = segment.offset + (address - segment.address);
    names.into_iter().map(|name| text(bytes, table + name)).collect()
}

fn slice(bytes: &[u8], at: u64, size: usize) -> Result<&[u8]> {
    let at = usize::try_from(at)?;
    bytes.get(at..at.saturating_add(size)).context("the file is truncated")
}

fn long(bytes: &[u8], at: u64) -> Result<u64> {
    Ok(u64::from_le_bytes(slice(bytes, at, 8)?.try_into()?))
}

fn short(bytes: &[u8], at: u64) -> Result<u16> {
    Ok(u16::from_le_bytes(slice(bytes, at, 2)?.try_into()?))
}

/// The string that ends with a zero byte.
fn text(bytes: &[u8], at: u64) -> Result<String> {
    let rest = bytes.get(usize::try_from(at)?..).context("the file is truncated")?;
    let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8(name.to_vec())?)
}

#[cfg(test)]
mod tests {
    use super::{Needs, needs};

    #[test]
    fn this_program_needs_a_loader_and_the_c_library() {
        let bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("the program is readable");
        let Needs { loader, libraries } = needs(&bytes).expect("an ELF file").expect("an ELF file");
        assert!(loader.is_some_and(|path| path.contains("ld-")));
        assert!(libraries.iter().any(|name| name.starts_with("libc.so")), "{libraries:?}");
    }

    #[test]
    fn other_and_truncated_files_are_detected() {
        assert_eq!(needs(b"#!/bin/sh\n").expect("a script"), None);
        let bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("the program is readable");
        needs(&bytes[..60]).expect_err("a truncated header");
        needs(b"\x7fELF\x01\x01").expect_err("a 32-bit file");
    }
}

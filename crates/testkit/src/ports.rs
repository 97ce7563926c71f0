//! Free ports of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port of the search. The ports are below the ephemeral ports of outgoing connections, so that the
/// port of a stopped server is still free when the server is started again.
const FIRST_PORT: u32 = 11_000;
const PORT_COUNT: u32 = 20_000;

/// `N` different free ports.
///
/// Each call in each process starts the search at a different port, so that servers that start concurrently do
/// not collide.
pub fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97).wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed) * 31);
    let mut candidates = (0..PORT_COUNT).map(|step| FIRST_PORT + start.wrapping_add(step) % PORT_COUNT);
    // The ports stay bound until all are found.
    let mut held: Vec<TcpListener> = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = candidates
            .by_ref()
            .filter_map(|candidate| u16::try_from(candidate).ok())
            .find_map(|candidate| TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)).ok())
            .ok_or_else(|| io::Error::from(io::ErrorKind::AddrInUse))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// A port that is not in use.
///
/// # Panics
///
/// If no port is free.
pub fn free_port() -> u16 {
    let [port] = free_ports().expect("a free port");
    port
}

#[cfg(test)]
mod tests {
    use super::free_ports;
    use std::net::TcpListener;

    #[test]
    fn ports_differ_and_are_free() {
        let [first, second] = free_ports().expect("two ports are free");
        assert_ne!(first, second);
        TcpListener::bind(("127.0.0.1", first)).expect("it is free");
    }

    #[test]
    fn a_port_in_use_is_skipped() {
        let [port] = free_ports().expect("a port is free");
        let _taken = TcpListener::bind(("127.0.0.1", port)).expect("it is free");
        for _ in 0..3 {
            let [next] = free_ports().expect("a port is free");
            assert_ne!(next, port);
        }
    }
}

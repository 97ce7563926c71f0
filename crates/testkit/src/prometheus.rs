//! A Prometheus server that scrapes servers of a test.

use crate::{Process, Scratch, eventually, free_port, tool};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

/// The variable with the path of the program.
const PROGRAM_VARIABLE: &str = "QONTRACT_PROMETHEUS";

/// The interval between two scrapes of a target.
const SCRAPE_INTERVAL: &str = "200ms";

/// A Prometheus server with an empty database. It ends when this value is dropped.
pub struct TestPrometheus {
    port: u16,
    // The process ends before its directory is removed.
    process: Process,
    _folder: Scratch,
}

impl TestPrometheus {
    /// Starts a server that scrapes `/metrics` of these addresses (`127.0.0.1:8080`).
    ///
    /// # Panics
    ///
    /// If `QONTRACT_PROMETHEUS` does not name the program, or if the server does not start.
    pub fn start(targets: &[String]) -> Self {
        let (folder, port) = (Scratch::new(), free_port());
        folder.write("prometheus.yml", configuration(targets));
        let path = |name: &str| folder.path().join(name).display().to_string();
        let arguments = [
            format!("--config.file={}", path("prometheus.yml")),
            format!("--storage.tsdb.path={}", path("database")),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        let mut process = Process::start(&tool(PROGRAM_VARIABLE), &arguments, folder.path());
        process.wait_for(port);
        let server = Self { port, process, _folder: folder };
        eventually("Prometheus is ready", || server.is_ready().then_some(()));
        server
    }

    /// The URL, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The end of the log of the server.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// The server listens before it responds to queries.
    fn is_ready(&self) -> bool {
        let ready = || -> std::io::Result<bool> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
            stream.write_all(b"GET /-/ready HTTP/1.0\r\n\r\n")?;
            let mut response = String::new();
            stream.read_to_string(&mut response)?;
            Ok(response.lines().next().is_some_and(|line| line.contains(" 200 ")))
        };
        ready().unwrap_or_default()
    }
}

fn configuration(targets: &[String]) -> String {
    let targets: Vec<String> = targets.iter().map(|target| format!("{target:?}")).collect();
    format!(
        "scrape_configs:\n  - job_name: test\n    scrape_interval: {SCRAPE_INTERVAL}\n    scrape_timeout: {SCRAPE_INTERVAL}\n    \
         static_configs:\n      - targets: [{}]\n",
        targets.join(", ")
    )
}

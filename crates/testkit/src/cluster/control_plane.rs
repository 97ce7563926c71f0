//! A test cluster: three servers and a directory.

mod arguments;
mod files;

use crate::cluster::{Api, Binaries, Error, User};
use crate::wait::POLL_INTERVAL;
use crate::{Leftover, Process, free_ports};
use arguments::Ports;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout until the servers are ready. The timeout is long, because the machine may be busy.
const READY_TIMEOUT: Duration = Duration::from_mins(2);

/// A running cluster. **Invariant:** its processes end and its directory is removed on drop, even if this
/// process is killed.
#[derive(Debug)]
pub struct TestCluster {
    // The servers are dropped in this order.
    controller_manager: Option<Process>,
    api_server: Option<Process>,
    etcd: Process,
    folder: TempDir,
    binaries: Binaries,
    ports: Ports,
    /// The API server and its users.
    pub api: Api,
}

impl TestCluster {
    /// Starts a cluster with the programs from the environment, for a test that cannot use the shared cluster.
    ///
    /// # Panics
    ///
    /// If the cluster cannot be started; the message names the remedy, or contains the end of the log of the
    /// failed server.
    #[track_caller]
    pub fn start() -> Self {
        match Binaries::from_environment().and_then(|binaries| Self::launch(&binaries)) {
            Ok(cluster) => cluster,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts a cluster with these programs and waits until it is ready.
    pub fn launch(binaries: &Binaries) -> Result<Self, Error> {
        let folder = files::folder()?;
        let [etcd, peer, api] = free_ports().map_err(Error::Port)?;
        let ports = Ports { etcd, peer, api };
        let api = files::write(folder.path(), binaries, &ports)?;
        let program = binaries.folder.join("etcd");
        let arguments = arguments::etcd(folder.path(), &ports);
        let etcd = start(&program, &arguments, folder.path(), Leftover::Nothing)?;
        let binaries = binaries.clone();
        let mut cluster =
            Self { controller_manager: None, api_server: None, etcd, folder, binaries, ports, api };
        cluster.bring_up_api_server()?;
        cluster.bring_up_controller_manager()?;
        Ok(cluster)
    }

    /// Restarts the API server with the same URL, the same certificate and the same objects.
    pub fn restart_api_server(&mut self) {
        self.stop_api_server();
        self.start_api_server();
    }

    /// Kills the API server; the objects remain.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server, unless it runs, and waits until it is ready.
    ///
    /// # Panics
    ///
    /// If the server does not become ready; the message contains the end of its log.
    pub fn start_api_server(&mut self) {
        self.bring_up_api_server().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Stops the API server with `SIGSTOP`: its connections stay open, and nothing responds.
    pub fn suspend_api_server(&self) {
        self.api_server.iter().for_each(Process::suspend);
    }

    /// Continues the API server and waits until it is ready.
    ///
    /// # Panics
    ///
    /// If the server does not become ready; the message contains the end of its log.
    pub fn resume_api_server(&mut self) {
        self.api_server.iter().for_each(Process::resume);
        self.wait_until_ready().unwrap_or_else(|error| panic!("{error}"));
    }

    fn bring_up_api_server(&mut self) -> Result<(), Error> {
        if self.api_server.is_none() {
            let program = self.binaries.folder.join("kube-apiserver");
            let arguments = arguments::api_server(self.folder.path(), &self.ports);
            self.api_server = Some(start(&program, &arguments, self.folder.path(), Leftover::Folder)?);
        }
        self.wait_until_ready()
    }

    fn bring_up_controller_manager(&mut self) -> Result<(), Error> {
        let program = self.binaries.folder.join("kube-controller-manager");
        let minor = arguments::minor_version(&program)?;
        let arguments = arguments::controller_manager(self.folder.path(), &self.api, minor);
        let process = start(&program, &arguments, self.folder.path(), Leftover::Folder)?;
        check_running(self.controller_manager.insert(process))
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            check_running(&mut self.etcd)?;
            let Some(api_server) = &mut self.api_server else { return Ok(()) };
            check_running(api_server)?;
            // The server creates its certificate at its first start.
            let ready = self.api.ca.exists() && {
                let arguments = ["get", "--raw", "/readyz", "--request-timeout=10s"];
                let answer = self.api.run_kubectl(User::Admin, &arguments, "");
                let program = &self.api.kubectl;
                answer.map_err(|source| Error::Start { program: program.clone(), source })?.ok
            };
            if ready {
                return Ok(());
            }
            if start.elapsed() > READY_TIMEOUT {
                let (program, log) = (api_server.name(), api_server.log_tail());
                return Err(Error::NotReady { program, seconds: READY_TIMEOUT.as_secs(), log });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn start(program: &Path, arguments: &[String], folder: &Path, leftover: Leftover) -> Result<Process, Error> {
    Process::try_start(program, arguments, folder, leftover)
        .map_err(|source| Error::Start { program: program.to_owned(), source })
}

/// Fails if a process has ended.
fn check_running(process: &mut Process) -> Result<(), Error> {
    if process.is_running() {
        return Ok(());
    }
    Err(Error::Ended { program: process.name(), log: process.log_tail() })
}

//! Starts the programs of a root file system as a container runtime would: below this root, which is read-only
//! except `/tmp`, as the user of the image, and as process 1 of a process namespace.
//!
//! No container engine is needed: `unshare` makes the namespaces. Without root permissions, it also makes user
//! namespaces.

use super::{Programs, USER};
use crate::cli::ImageName;
use crate::command::CommandLine;
use crate::dist::release::Release;
use crate::dist::staging::PEERS;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time in which the server must end after `SIGTERM`.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(15);
/// The script that mounts the root.
const SCRIPT: &str = include_str!("enter.sh");
/// An address at which no server listens.
const NOWHERE: &str = "https://127.0.0.1:1/";

/// A root file system whose programs are started.
struct ImageRoot<'a> {
    root: &'a Path,
    /// Whether this process has root permissions.
    is_root: bool,
}

/// Checks the files and the programs of an image. Returns a line for each check, with what was started.
pub fn run(
    workspace: &Workspace,
    name: ImageName,
    programs: Programs<'_>,
    root: &Path,
) -> Result<Vec<String>> {
    let is_root = fs::metadata("/proc/self").context("no /proc")?.uid() == 0;
    let image = ImageRoot { root, is_root };
    let _temporary = TemporaryFiles(root.join("tmp"));
    let mut lines = vec![check_files(root)?];
    let version = image.output(&["/bin/qontract", "--version"])?;
    ensure!(version.starts_with(&format!("qontract {}", Release::VERSION)), "unexpected version `{version}`");
    lines.push(format!("`{}` printed `{}`", image.line(&["/bin/qontract", "--version"]), version.trim()));
    for (link, peer) in PEERS {
        let help = image.output(&[&format!("/bin/{link}"), "--help"])?;
        ensure!(help.starts_with(&format!("{link}: ")), "/bin/{link} is not `qontract peer {peer}`");
    }
    let refused = image.refused(&["/bin/run-integration"])?;
    ensure!(refused.contains("INTEGRATION_NAME"), "unexpected error of run-integration: {refused}");
    lines.push("the links to the binary work; `run-integration` requires INTEGRATION_NAME".to_owned());
    let certificates = fs::read_to_string(root.join("etc/ssl/certs/ca-certificates.crt"))?;
    let count = certificates.matches("-----BEGIN CERTIFICATE-----").count();
    ensure!(count > 50, "only {count} certificates of public authorities");
    lines.push(format!("{count} certificates of public authorities"));
    lines.push(image.check_server(workspace)?);
    match name {
        ImageName::Minimal => {
            ensure!(!root.join("bin/sh").exists(), "the image has a shell");
        }
        ImageName::Tools => lines.extend(image.check_tools(programs.tools)?),
    }
    Ok(lines)
}

/// Checks the permissions of all files: only `/tmp` can be written, and no program gets the rights of its owner.
fn check_files(root: &Path) -> Result<String> {
    let (mut pending, mut count, mut size) = (vec![root.to_owned()], 0, 0);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let about = fs::symlink_metadata(&path)?;
            if about.is_symlink() {
                let target = path.canonicalize();
                let is_inside = target.is_ok_and(|target| target.starts_with(root));
                ensure!(is_inside, "{} is a link to a missing file", path.display());
                continue;
            }
            let (mode, is_tmp) = (about.permissions().mode() & 0o7777, path == root.join("tmp"));
            ensure!(is_tmp || mode & 0o6022 == 0, "the mode of {} is {mode:o}", path.display());
            ensure!(!is_tmp || mode == 0o1777, "the mode of /tmp is {mode:o}");
            if about.is_dir() {
                pending.push(path);
            } else {
                (count, size) = (count + 1, size + about.len());
            }
        }
    }
    Ok(format!("{count} files, {} MB; only /tmp can be written", size / 1_000_000))
}

impl ImageRoot<'_> {
    /// The words of a command line that runs a program of the image, without the environment of this process.
    fn words(&self, program: &[&str]) -> Vec<String> {
        let (outer, user) = if self.is_root {
            ("", format!("--setuid={USER} --setgid={USER}"))
        } else {
            ("--user --map-root-user", format!("--user --map-user={USER} --map-group={USER}"))
        };
        let start = "env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp NO_COLOR=1 unshare \
                     --fork --kill-child --pid --mount";
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let shell = ["sh", "-c", SCRIPT, "enter.sh"].map(str::to_owned);
        let root = self.root.display().to_string();
        let program = program.iter().map(|word| (*word).to_owned());
        split(start)
            .into_iter()
            .chain(split(outer))
            .chain(shell)
            .chain([root])
            .chain(split(&user))
            .chain(program)
            .collect()
    }

    /// The command line for reports, in which the script has its name.
    fn line(&self, program: &[&str]) -> String {
        let words = self.words(program).into_iter();
        let words: Vec<String> = words.filter(|word| word != "-c" && word != SCRIPT).collect();
        words.join(" ")
    }

    fn command(&self, program: &[&str]) -> Command {
        let words = self.words(program);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The stdout of a program that succeeds.
    fn output(&self, program: &[&str]) -> Result<String> {
        let output = self.command(program).output().context("cannot start `env`")?;
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "`{}` failed ({}): {stderr}", self.line(program), output.status);
        Ok(stdout.into_owned())
    }

    /// The stderr of a program that fails.
    fn refused(&self, program: &[&str]) -> Result<String> {
        let output = self.command(program).output().context("cannot start `env`")?;
        ensure!(!output.status.success(), "`{}` did not fail", self.line(program));
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Serves a bundle that the image builds from the example, and ends the server by `SIGTERM` as process 1.
    fn check_server(&self, workspace: &Workspace) -> Result<String> {
        let example = workspace.root.join("examples/app-interface");
        CommandLine::new("cp -r").args([example, self.root.join("tmp/data")]).output()?;
        self.output(&["/bin/qontract", "bundle", "/tmp/data", "-o", "/tmp/bundle.json"])?;
        let words = ["/bin/qontract", "serve", "--bundle", "/tmp/bundle.json", "--listen", "127.0.0.1:0"];
        let mut server = Server(self.command(&words).spawn().context("cannot start `env`")?);
        let address = server.address()?;
        let mut stream = TcpStream::connect(&address)?;
        write!(stream, "GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status)?;
        ensure!(status.contains(" 200 "), "/healthz: {status}");
        server.terminate()?;
        Ok(format!("`{}` answered /healthz, and ended after SIGTERM as process 1", self.line(&words)))
    }

    /// Runs the tools, and Git through the binary.
    fn check_tools(&self, tools: &[PathBuf]) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for words in [&["git", "--version"][..], &["promtool", "--version"], &["sh", "-c", "echo a shell"]] {
            let printed = self.output(words)?;
            lines.push(format!("{}: {}", words.join(" "), printed.lines().next().unwrap_or_default()));
        }
        let refused = self.refused(&["git", "ls-remote", NOWHERE])?;
        ensure!(refused.contains("onnect to"), "Git has no HTTPS: {refused}");
        lines.push(
            "git ls-remote with HTTPS: the certificates were loaded, and the connection was refused"
                .to_owned(),
        );
        for tool in tools {
            let name = tool.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let printed = self.output(&[&name, "version"]).or_else(|_| self.output(&[&name, "--version"]))?;
            lines.push(format!("{name}: {}", printed.lines().next().unwrap_or_default()));
        }
        Ok(lines)
    }
}

/// The files in `/tmp` of the image, which are removed when this is dropped.
struct TemporaryFiles(PathBuf);

impl Drop for TemporaryFiles {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            // A file that could not be removed is found when the directory is replaced.
            let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
        }
    }
}

/// A running server, which is killed when this is dropped.
struct Server(Child);

impl Server {
    /// Reads the log until the server listens, and returns its address.
    fn address(&mut self) -> Result<String> {
        let log = self.0.stderr.take().context("the log is read once")?;
        let mut printed = String::new();
        for line in BufReader::new(log).lines() {
            let line = line?;
            if let Some((_, url)) = line.split_once("Running at http://") {
                return Ok(url.split('/').next().unwrap_or_default().to_owned());
            }
            printed = printed + &line + "\n";
        }
        bail!("the server ended: {printed}")
    }

    /// Sends `SIGTERM` to process 1 of the namespace, which is the child of `unshare`, and waits until it ends.
    fn terminate(&mut self) -> Result<()> {
        let id = self.0.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let [process] = children.split_whitespace().collect::<Vec<_>>()[..] else {
            bail!("`unshare` has the children {children}");
        };
        CommandLine::new("kill -TERM").args([process]).output()?;
        let start = Instant::now();
        while start.elapsed() < SHUTDOWN_LIMIT {
            if let Some(status) = self.0.try_wait()? {
                ensure!(status.success(), "after SIGTERM, the server ended with {status}");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the server did not end within {} s after SIGTERM", SHUTDOWN_LIMIT.as_secs())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, unless the check failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

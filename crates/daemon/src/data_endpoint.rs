//! Serves the data of one run to a foreign command: base and head on one loopback port, with a token.
//!
//! The command gets a copy of its configuration that contains the address and the token of this endpoint. The copy is
//! an in-memory file, which disappears when this process ends, even if the process is killed. If the data is on a
//! server, the command uses that server, on which the run holds leases for the bundles.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_config::GraphqlTable;
use qontract_graphql::Engine;
use qontract_runtime::foreign::{DataEndpoint, OpenEndpoint};
use qontract_runtime::{BundleReader, Fault};
use qontract_server::{BundleRegistry, Bundles, HostPolicy, Server, Settings, Token};
use qontract_telemetry::server_metrics::ServerMetrics;
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use toml::{Table, Value};

/// Time in milliseconds for which an unused bundle stays loaded. Bundles must stay loaded as long as the endpoint
/// exists.
const TTL: u64 = u64::MAX / 2;

/// Number of random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Keys whose values are addresses, not secrets.
const ADDRESSES: [[&str; 2]; 2] = [["graphql", "server"], ["vault", "server"]];

/// Serves data to commands.
#[derive(Debug)]
pub struct LoopbackEndpoint {
    /// The configuration file of the command.
    pub config: Option<PathBuf>,
    /// The server of the configuration, for data that is not in this process.
    pub server: Option<GraphqlTable>,
}

impl DataEndpoint for LoopbackEndpoint {
    fn open<'a>(
        &'a self,
        head: &'a dyn BundleReader,
        base: Option<&'a dyn BundleReader>,
    ) -> BoxFuture<'a, Result<OpenEndpoint, Fault>> {
        async move {
            let mut config = self.configuration()?;
            let (address, service) = match head.engine() {
                Some(engine) => {
                    let (address, service) = serve(engine, base.and_then(BundleReader::engine)).await?;
                    (address, Some(service))
                }
                None => (self.server.clone().ok_or_else(no_server)?, None),
            };
            let mut graphql = Table::new();
            graphql.insert("server".to_owned(), address.server.into());
            if let Some(token) = address.token {
                graphql.insert("token".to_owned(), token.into());
            }
            config.insert("graphql".to_owned(), graphql.into());
            let file = memory_file(config.to_string().as_bytes())
                .map_err(|error| Fault::internal(format!("cannot write a configuration: {error}")))?;
            Ok(OpenEndpoint {
                config: format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()),
                secrets: secrets(&config),
                guard: Box::new((service, file)),
            })
        }
        .boxed()
    }
}

fn no_server() -> Fault {
    Fault::operator("the data is on a server that the configuration does not name")
        .hint("set `graphql.server`, so that the command can query it, too")
}

impl LoopbackEndpoint {
    /// The configuration of the command.
    fn configuration(&self) -> Result<Table, Fault> {
        let Some(file) = &self.config else { return Ok(Table::new()) };
        let wrong = |why: String| Fault::operator(format!("`{}`: {why}", file.display()));
        let text =
            std::fs::read_to_string(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        // The error of the parser is not used, because it quotes the file, which contains secrets.
        text.parse().map_err(|_: toml::de::Error| wrong("is not a TOML file".to_owned()))
    }
}

/// A running server, which stops when this value is dropped.
struct Service(JoinHandle<()>);

impl Drop for Service {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Serves base and head, with head as the latest bundle. Returns the address of the server.
async fn serve(head: &Arc<Engine>, base: Option<&Arc<Engine>>) -> Result<(GraphqlTable, Service), Fault> {
    let failed = |error: io::Error| Fault::internal(format!("cannot serve data to a command: {error}"));
    let token = random_token().map_err(failed)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut registry = BundleRegistry::new(TTL, 0);
    // The bundles do not expire, so both are available as long as the endpoint exists.
    for engine in base.into_iter().chain([head]) {
        registry.put_latest(Arc::clone(engine), 0);
    }
    let bundles = Arc::new(Bundles::new(registry, None, None, Arc::new(|_| {})));
    let settings = Settings {
        token: Some(Token::new(&token)),
        hosts: HostPolicy::Loopback(Vec::new()),
        ..Settings::default()
    };
    let server = Server::new(settings, bundles, Arc::<ServerMetrics>::default(), || 0);
    let serving = tokio::spawn(server.serve(listener, std::future::pending()));
    let server = format!("http://{address}/graphql");
    Ok((GraphqlTable { server, token: Some(token) }, Service(serving)))
}

/// Generates a token that other users of this machine cannot guess.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |token, byte| token + &format!("{byte:02x}")))
}

/// Creates a file in memory that only this user can open, through its path below `/proc`.
fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("config.toml", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    Ok(file)
}

/// All strings of a configuration except addresses, because any of them may be secret.
fn secrets(config: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (table, value) in config {
        let Value::Table(entries) = value else {
            collect(value, &mut found);
            continue;
        };
        let is_address = |key: &str| ADDRESSES.contains(&[table.as_str(), key]);
        entries.iter().filter(|(key, _)| !is_address(key)).for_each(|(_, value)| collect(value, &mut found));
    }
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Table(entries) => entries.values().for_each(|value| collect(value, found)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_a_configuration_are_secrets_except_addresses() {
        let config = "
            [graphql]\nserver = 'http://s/graphql'\ntoken = 'Basic abc'
            [vault]\nserver = 'https://v'\nrole_id = 'role'\n
            [creds.aws]\nkeys = ['one', 'two']\nretries = 3\n";
        assert_eq!(secrets(&config.parse().unwrap()), ["one", "two", "Basic abc", "role"]);
    }

    #[test]
    fn a_file_in_memory_is_read_by_its_path() {
        let file = memory_file(b"a = 1\n").unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        for _ in 0..2 {
            assert_eq!(std::fs::read(&path).unwrap(), b"a = 1\n", "each reader starts at the beginning");
        }
        drop(file);
        assert!(std::fs::read(&path).is_err());
    }

    #[test]
    fn tokens_are_random() {
        let token = random_token().unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_ne!(token, random_token().unwrap());
    }

    #[test]
    fn a_configuration_that_cannot_be_read_is_an_error_without_its_content() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("broken.toml", "token = 'hidden\n");
        let check = |name: &str, expect: &str| {
            let endpoint = LoopbackEndpoint { config: Some(scratch.path().join(name)), server: None };
            let fault = endpoint.configuration().expect_err("it is not readable");
            assert!(fault.text.contains(expect) && !fault.text.contains("hidden"), "{}", fault.text);
        };
        check("broken.toml", "is not a TOML file");
        check("missing.toml", "cannot be read");
    }
}

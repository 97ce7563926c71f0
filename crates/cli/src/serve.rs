//! Arguments of the commands that serve bundles: `serve` and `peer server`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::LayoutOptions;
use super::run::{LogOptions, duration, listen_address};

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Directory of the data repo to bundle, validate and serve; by default the working directory, unless
    /// `--bundle` is given
    #[arg(conflicts_with = "bundle")]
    pub repo: Option<PathBuf>,
    /// A bundle: a file, `fs://PATH` or `s3://BUCKET/KEY`; can be repeated, and the last one is the latest
    #[arg(long, value_name = "WHERE")]
    pub bundle: Vec<String>,
    /// Watch the data repo and serve each new version
    #[arg(long, conflicts_with = "bundle")]
    pub watch: bool,
    /// Store of bundles, each named `SHA.json`: a directory, or `s3://BUCKET/PREFIX`
    #[arg(long, value_name = "WHERE")]
    pub store: Option<String>,
    /// How long an older bundle stays loaded after its last request
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = duration)]
    pub ttl: Duration,
    /// File with the required value of the `Authorization` header; by default `$QONTRACT_SERVER_TOKEN`, else
    /// requests are not authenticated
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Address to listen on: `HOST:PORT`, or a port on the loopback interface
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4000", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// Host name to accept besides loopback names, when listening on the loopback interface without a token;
    /// can be repeated
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Limits of the server.
    #[command(flatten)]
    pub limits: ServeLimits,
    /// Log options.
    #[command(flatten)]
    pub log: LogOptions,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Limits of a server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub struct ServeLimits {
    /// Size of the response cache in megabytes; 0 disables it
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub answer_cache: usize,
    /// Maximum number of large responses computed concurrently; by default the number of cores
    #[arg(long, value_name = "N")]
    pub concurrency: Option<usize>,
    /// Maximum number of open connections
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub connections: usize,
    /// Close connections whose client reads nothing for this long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub write_timeout: Duration,
    /// Time limit for a query
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub query_time: Duration,
}

/// Arguments of `qontract-server`, which is configured by environment variables.
#[derive(Args, Debug)]
pub struct PeerServerArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:4000", value_parser = listen_address)]
    pub listen: SocketAddr,
}

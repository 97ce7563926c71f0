//! The part of the command line that serves bundles.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::LayoutOptions;
use super::run::{LogOptions, duration, listen_address};

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// Folder of the data repo to bundle, check and serve; by default the current one, unless there are bundles
    #[arg(conflicts_with = "bundle")]
    pub repo: Option<PathBuf>,
    /// A bundle: a file, `fs://PATH` or `s3://BUCKET/KEY`; may be repeated, and the last one is the latest
    #[arg(long, value_name = "WHERE")]
    pub bundle: Vec<String>,
    /// Serve the data repo as it changes
    #[arg(long, conflicts_with = "bundle")]
    pub watch: bool,
    /// Where bundles are found by their shas, as `SHA.json`: a folder, or `s3://BUCKET/PREFIX`
    #[arg(long, value_name = "WHERE")]
    pub store: Option<String>,
    /// How long a bundle that is not the latest stays after it was asked
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = duration)]
    pub ttl: Duration,
    /// File with what `Authorization` must be; by default `$QONTRACT_SERVER_TOKEN`, else anybody may ask
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Where to listen: `HOST:PORT`, or a port on the loopback interface
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4000", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// A name that is answered to beside loopback names, if it listens on the loopback interface without a token; may be repeated
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// How it serves.
    #[command(flatten)]
    pub limits: ServeLimits,
    /// What is said, and how.
    #[command(flatten)]
    pub talk: LogOptions,
    /// Where the parts are.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// What a server allows.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub struct ServeLimits {
    /// Megabytes of answers that are remembered; 0 remembers none
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub answer_cache: usize,
    /// How many large answers are made at a time; by default as many as there are cores
    #[arg(long, value_name = "N")]
    pub concurrency: Option<usize>,
    /// How many connections are open at a time
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub connections: usize,
    /// How long a client may read nothing of an answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub write_timeout: Duration,
    /// How long a query may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub query_time: Duration,
}

/// Arguments of `qontract-server`, which is set up by its environment.
#[derive(Args, Debug)]
pub struct PeerServer {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:4000", value_parser = listen_address)]
    pub listen: SocketAddr,
}

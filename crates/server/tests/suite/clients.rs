//! Clients that send heavy queries, are slow or hostile, or disconnect.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use qontract_server::{Settings, Token};
use serde_json::{Value, json};

use crate::support::running::{HttpAnswer, RunningServer, Setup, request};

/// A bundle with this many teams, each of which refers to all of them.
pub fn bundle(teams: usize) -> Vec<u8> {
    let friends: Vec<Value> = (0..teams).map(|number| json!({ "$ref": format!("/{number}.yml") })).collect();
    let data: serde_json::Map<String, Value> = (0..teams)
        .map(|number| {
            let team =
                json!({ "$schema": "/team.yml", "name": format!("team {number}"), "friends": friends });
            (format!("/{number}.yml"), team)
        })
        .collect();
    json!({
        "git_commit": "c", "git_commit_timestamp": "1", "schemas": {}, "resources": {}, "data": data,
        "graphql": [
            { "name": "Query", "fields": [{ "name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml" }] },
            { "name": "Team", "fields": [
                { "name": "name", "type": "string" },
                { "name": "friends", "type": "Team", "isList": true },
            ] },
        ],
    })
    .to_string()
    .into_bytes()
}

/// A hundred teams have a hundred friends each, who have a hundred friends each: a million names.
pub const HEAVY: &str = "{ teams { friends { friends { name } } } }";

fn heavy() -> Vec<u8> {
    let body = json!({ "query": HEAVY }).to_string();
    request("POST", "/graphql", &[("content-type", "application/json")], body.as_bytes())
}

/// The same request with another text: identical requests would share one evaluation.
fn distinct_heavy(number: usize) -> Vec<u8> {
    let body = json!({ "query": format!("{HEAVY} # {number}") }).to_string();
    request("POST", "/graphql", &[("content-type", "application/json")], body.as_bytes())
}

fn settings() -> Settings {
    Settings { cache_bytes: 0, max_concurrent_queries: 1, ..Settings::default() }
}

#[test]
fn heavy_queries_do_not_delay_small_ones() {
    let server = RunningServer::start(Setup { settings: settings(), ..Setup::default() }, &[&bundle(100)]);
    std::thread::scope(|scope| {
        let heavy: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn({
                    let server = &server;
                    move || server.send("POST", &distinct_heavy(number))
                })
            })
            .collect();
        // While they run or wait for a permit, all other requests are answered.
        let mut small = 0;
        while !heavy.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            assert_eq!(server.get("/healthz").status, 200);
            assert_eq!(server.query("/graphql", "{ __typename }").status, 200);
            small += 1;
        }
        assert!(small > 4, "only {small} small requests were answered during four heavy ones");
        for one in heavy {
            let answer = one.join().unwrap();
            assert_eq!(answer.status, 200);
            assert!(answer.body.len() > 10_000_000);
        }
    });
}

#[test]
fn too_many_heavy_queries_get_a_retry_after() {
    let settings = Settings { max_queued_queries: 0, ..settings() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle(100)]);
    let answers: Vec<HttpAnswer> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..6)
            .map(|number| {
                scope.spawn({
                    let server = &server;
                    move || server.send("POST", &distinct_heavy(number))
                })
            })
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(answers.iter().any(|answer| answer.status == 200));
    let refused: Vec<&HttpAnswer> = answers.iter().filter(|answer| answer.status == 503).collect();
    assert!(!refused.is_empty() && refused.iter().all(|answer| answer.header("retry-after") == Some("1")));
}

#[test]
fn a_query_that_takes_too_long_is_aborted() {
    let settings = Settings { query_timeout: Duration::from_millis(1), ..settings() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle(100)]);
    let answer = server.send("POST", &heavy());
    assert_eq!((answer.status, answer.text().as_str()), (503, "the query took too long"));
}

#[test]
fn work_for_a_client_that_is_gone_is_cancelled() {
    let server = RunningServer::start(Setup { settings: settings(), ..Setup::default() }, &[&bundle(100)]);
    let took = |count: usize| {
        let begun = Instant::now();
        for _ in 0..count {
            assert_eq!(server.send("POST", &heavy()).status, 200);
        }
        begun.elapsed()
    };
    let one = took(1);
    // Without cancellation, the queries of twenty clients would run one after the other.
    for _ in 0..20 {
        let mut stream = server.connect();
        stream.write_all(&heavy()).unwrap();
        crate::support::running::leave(&stream);
    }
    let next = took(1);
    assert!(next < one * 10, "one took {one:?}, one after twenty that left {next:?}");
}

#[test]
fn a_client_that_reads_nothing_times_out() {
    let settings = Settings { write_timeout: Duration::from_secs(2), max_in_flight_bytes: 1, ..settings() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle(100)]);
    let mut stream = server.connect();
    stream.write_all(&heavy()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    // While its response is in flight, there is no capacity for another one; afterwards there is.
    let begun = Instant::now();
    loop {
        match server.send("POST", &distinct_heavy(1)).status {
            200 => break,
            503 => assert!(begun.elapsed() < Duration::from_secs(30), "the answer is still in flight"),
            other => panic!("{other}"),
        }
    }
    let mut rest = Vec::new();
    // The bytes that were sent before the timeout can be read; then the connection is closed.
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < 20_000_000);
}

#[test]
fn long_strings_of_few_objects_count_as_large_responses() {
    let bundle = String::from_utf8(bundle(1)).unwrap().replace("team 0", &"x".repeat(12 << 20));
    let settings = Settings { max_in_flight_bytes: 1, ..settings() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[bundle.as_bytes()]);
    let mut stream = server.connect();
    let body = json!({ "query": "{ teams { name } }" }).to_string();
    let headers = [("content-type", "application/json")];
    stream.write_all(&request("POST", "/graphql", &headers, body.as_bytes())).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    // An identical request shares the response that is being sent.
    assert_eq!(server.query("/graphql", "{ teams { name } }").status, 200);
    assert_eq!(server.query("/graphql", "{ teams { name } } # another").status, 503);
    assert_eq!(server.query("/graphql", "{ __typename }").status, 200);
}

#[test]
fn a_body_that_trickles_times_out_early() {
    let settings = Settings { body_grace: Duration::from_millis(200), ..Settings::default() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[bundle(1).as_slice()]);
    let mut stream = server.connect();
    let head = b"POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n";
    stream.write_all(head).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (begun, mut first) = (Instant::now(), [0; 12]);
    // Sends a byte now and then, until the server responds.
    while stream.read_exact(&mut first).is_err() {
        stream.write_all(b"{").unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "each byte gave it more time");
    }
    assert_eq!(&first, b"HTTP/1.1 408");
}

#[test]
fn clients_that_send_slowly_time_out() {
    let settings = Settings {
        head_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        ..Settings::default()
    };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle(1)]);
    let mut head = server.connect();
    head.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = head.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    let mut body = server.connect();
    body.write_all(
        b"POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
    )
    .unwrap();
    assert_eq!(HttpAnswer::read(&mut body, "POST").status, 408);
}

#[test]
fn idle_connections_are_closed_for_new_ones() {
    let settings = Settings { max_connections: 4, ..Settings::default() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle(1)]);
    let mut idle: Vec<_> = (0..20).map(|_| server.connect()).collect();
    assert_eq!(server.get("/healthz").status, 200);
    // The first ones were closed without a response.
    let mut byte = [0];
    assert_eq!(idle[0].read(&mut byte).unwrap_or(0), 0);
}

#[test]
fn large_bodies_are_refused() {
    let server = RunningServer::start(Setup::default(), &[&bundle(1)]);
    let body =
        json!({ "query": "{ teams { name } }", "variables": { "x": "y".repeat(2 << 20) } }).to_string();
    assert_eq!(server.post("/graphql", &body).status, 413);
    let body =
        json!({ "query": "{ teams { name } }", "variables": { "x": "y".repeat(900 << 10) } }).to_string();
    assert_eq!(server.post("/graphql", &body).status, 200);
}

#[test]
fn query_limits_hold_over_http() {
    let server = RunningServer::start(Setup::default(), &[&bundle(100)]);
    let deep = format!("{{ teams {} {{ name }} {} }}", "{ friends ".repeat(60), "}".repeat(60));
    let aliases = (0..300).map(|number| format!("a{number}: name")).collect::<Vec<_>>().join(" ");
    for query in [
        deep,
        format!("{{ teams {{ {aliases} }} }}"),
        format!("{{ teams {{ name }} }}{}", " ".repeat(200_000)),
    ] {
        let answer = server.query("/graphql", &query);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("LIMIT_EXCEEDED"), "{}", answer.text());
    }
}

#[test]
fn a_token_is_required_except_for_health() {
    let settings = Settings { token: Some(Token::new("Basic abc")), ..Settings::default() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle(1)]);
    let status = |target: &str, token: Option<&str>| {
        let headers: Vec<(&str, &str)> = token.into_iter().map(|token| ("authorization", token)).collect();
        server.request("GET", target, &headers, b"").status
    };
    for target in ["/sha256", "/graphql?query=%7B__typename%7D", "/metrics", "/cache", "/diff/a/b", "/nope"] {
        assert_eq!((status(target, None), status(target, Some("Basic abd"))), (401, 401), "{target}");
        assert_ne!(status(target, Some("Basic abc")), 401, "{target}");
    }
    assert_eq!((status("/healthz", None), status("/page/query.js", None)), (200, 200));
    let reload = server.post("/reload", "");
    assert_eq!(reload.status, 401);
}

#[test]
fn responses_are_compressed_for_clients_that_accept_it() {
    let server = RunningServer::start(Setup::default(), &[&bundle(100)]);
    let body = json!({ "query": "{ teams { name } }" }).to_string();
    let ask = |accepted: &str| {
        let headers = [("content-type", "application/json"), ("accept-encoding", accepted)];
        server.request("POST", "/graphql", &headers, body.as_bytes())
    };
    let plain = ask("identity");
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"));
    let mut gzip = Vec::new();
    flate2::read::GzDecoder::new(&ask("gzip, deflate").body[..]).read_to_end(&mut gzip).unwrap();
    let zstd = ask("gzip, zstd");
    assert_eq!(zstd.header("content-encoding"), Some("zstd"));
    assert_eq!((gzip, zstd::decode_all(&zstd.body[..]).unwrap()), (plain.body.clone(), plain.body.clone()));
    assert_eq!(zstd.header("etag"), plain.header("etag"));
}

#[test]
fn requests_in_progress_finish_at_shutdown() {
    let mut server =
        RunningServer::start(Setup { settings: settings(), ..Setup::default() }, &[&bundle(100)]);
    let mut stream = server.connect();
    stream.write_all(&heavy()).unwrap();
    // The request is running, or waits for a permit.
    while !server.get("/metrics").text().contains("qontract_server_connections 2") {}
    server.signal_stop();
    let answer = HttpAnswer::read(&mut stream, "POST");
    assert!(answer.status == 200 && answer.body.len() > 10_000_000);
    let address = server.address;
    server.stop();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_query_that_only_seems_small_is_queued_like_any_other() {
    let server = RunningServer::start(Setup { settings: settings(), ..Setup::default() }, &[&bundle(150)]);
    // The estimate assumes short lists in datafiles; these are long.
    let query = "{ teams(path: null) { friends { friends { name } } } }";
    std::thread::scope(|scope| {
        let heavy: Vec<_> = (0..2).map(|_| scope.spawn(|| server.query("/graphql", query))).collect();
        let mut small = 0;
        while !heavy.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            assert_eq!(server.get("/healthz").status, 200);
            small += 1;
        }
        assert!(small > 4, "only {small} small requests were answered during two heavy ones");
    });
}

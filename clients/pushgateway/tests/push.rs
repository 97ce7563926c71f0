//! Pushes to a gateway, and errors without secrets.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, StatusCode, Uri};
use qontract_access::{Mode, ReadPermit};
use qontract_client_http::{Http, Secret, Settings, Url};
use qontract_client_pushgateway::Pushgateway;

type ReceivedPushes = Arc<Mutex<Vec<(String, String, String)>>>;

/// A gateway that accepts one user.
async fn gateway() -> (Url, ReceivedPushes) {
    let received = ReceivedPushes::default();
    let known = Arc::clone(&received);
    let router = axum::Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: String| async move {
        let header = |name| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        // ann:pa55
        if header("authorization") != "Basic YW5uOnBhNTU=" {
            return StatusCode::UNAUTHORIZED;
        }
        known.lock().unwrap().push((uri.path().to_owned(), header("content-type"), body));
        StatusCode::OK
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

#[tokio::test]
async fn metrics_reach_their_group_even_in_a_dry_run() {
    let (url, received) = gateway().await;
    let permit = ReadPermit::for_targets(Mode::DryRun);
    let http = Http::new(&permit, Settings::default()).unwrap();
    let labels = [("integration", "a"), ("shards", "1"), ("shard_id", "0-1")];
    let known = Pushgateway::new(&http, url.clone(), "ann", &Secret::new("pa55"));
    known.push(&permit, &labels, "x 1\n").await.unwrap();
    let path = "/metrics/job/qontract-reconcile/integration/a/shards/1/shard_id/0-1";
    let expect = (path.to_owned(), "text/plain; version=0.0.4".to_owned(), "x 1\n".to_owned());
    assert_eq!(*received.lock().unwrap(), [expect]);
    let stranger = Pushgateway::new(&http, url, "ann", &Secret::new("wrong-pa55"));
    let error = stranger.push(&permit, &labels, "x 1\n").await.unwrap_err();
    assert!(!format!("{error:?}").contains("wrong-pa55") && !format!("{stranger:?}").contains("wrong-pa55"));
}

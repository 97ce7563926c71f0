//! What is remembered, seen from outside.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::desk::{Desk, pass, root};
use qontract_testkit::vault::TestVault;

const READS: &str = "GET /v1/secret/data/";

#[tokio::test]
async fn those_who_ask_at_once_are_one_request() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value", "y": "other"}));
    let desk = Desk::new(&server.url(), root());
    let fields = ["x", "y"].into_iter().cycle().take(100);
    let reads = join_all(fields.map(|field| desk.read("secret/a", field))).await;
    assert!(reads.iter().all(Result::is_ok), "{reads:?}");
    assert_eq!(server.requests(READS), 1);
}

#[tokio::test]
async fn a_rotated_latest_is_seen_after_a_bounded_time() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "old"}));
    let desk = Desk::new(&server.url(), root());
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "old");
    server.put("a", &json!({"x": "new"}));
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "old");
    pass(&server, Duration::from_mins(1)).await;
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "new");
}

#[tokio::test]
async fn what_we_write_is_seen_at_once() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "old"}));
    let desk = Desk::new(&server.url(), root());
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "old");
    desk.write("secret/a", &[("x", "new")]).await.unwrap();
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "new");
}

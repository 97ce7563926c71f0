//! The cache, tested through the public API.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::fixture::{VaultFixture, advance_clocks, root};
use qontract_testkit::vault::TestVault;

const READS: &str = "GET /v1/secret/data/";

#[tokio::test]
async fn concurrent_reads_are_one_request() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value", "y": "other"}));
    let desk = VaultFixture::new(&server.url(), root());
    let fields = ["x", "y"].into_iter().cycle().take(100);
    let reads = join_all(fields.map(|field| desk.read("secret/a", field))).await;
    assert!(reads.iter().all(Result::is_ok), "{reads:?}");
    assert_eq!(server.requests(READS), 1);
}

#[tokio::test]
async fn a_rotated_secret_is_read_after_a_bounded_time() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "old"}));
    let desk = VaultFixture::new(&server.url(), root());
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "old");
    server.put("a", &json!({"x": "new"}));
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "old");
    advance_clocks(&server, Duration::from_mins(1)).await;
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "new");
}

#[tokio::test]
async fn our_own_write_is_visible_immediately() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "old"}));
    let desk = VaultFixture::new(&server.url(), root());
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "old");
    desk.write("secret/a", &[("x", "new")]).await.unwrap();
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "new");
}

//! The cache, tested through the public API.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::fixture::{VaultFixture, advance_clocks, app_role, root};
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
async fn concurrent_first_reads_of_a_mount_share_one_query() {
    let server = TestVault::start();
    let names = ["a", "b", "c"];
    for name in names {
        server.put(name, &json!({"x": "value"}));
    }
    let desk = VaultFixture::new(&server.url(), root());
    let reads = join_all(names.map(async |name| desk.read(&format!("secret/{name}"), "x").await)).await;
    assert!(reads.iter().all(Result::is_ok), "{reads:?}");
    assert_eq!(server.requests("GET /v1/sys/internal/ui/mounts/"), 1);
}

#[tokio::test]
async fn concurrent_failed_queries_of_a_mount_name_their_own_paths() {
    let server = TestVault::start();
    for path in ["sys/internal/", "secret/config"] {
        server.deny(path);
    }
    let desk = VaultFixture::new(&server.url(), app_role(&server));
    let check = async |name: &str| {
        let expect = format!("access to secret `secret/{name}` of mount `secret/` denied");
        assert_eq!(desk.read(&format!("secret/{name}"), "x").await.unwrap_err(), expect);
    };
    tokio::join!(check("a"), check("b"));
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

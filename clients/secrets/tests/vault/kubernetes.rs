//! Logins with the service account token of a pod.

use qontract_access::Mode;
use qontract_client_secrets::Login;
use qontract_testkit::Scratch;
use qontract_testkit::vault::{LoginRole, TestVault};
use serde_json::json;

use crate::fixture::{TOKEN_TTLS, VaultFixture, no_caching};

fn role(jwt: &str) -> LoginRole {
    LoginRole::Kubernetes { role: "qontract".to_owned(), jwt: jwt.to_owned(), ttls: TOKEN_TTLS }
}

#[tokio::test]
async fn the_file_is_read_at_each_login() {
    let (server, scratch) = (TestVault::start(), Scratch::new());
    server.put("a", &json!({"x": "value"}));
    server.add(role("jwt-2"));
    let token_file = scratch.write("token", "jwt-1\n");
    let login = Login::Kubernetes { mount: "kubernetes".to_owned(), role: "qontract".to_owned(), token_file };
    let desk = VaultFixture::with(&server.url(), login, Mode::DryRun, no_caching());
    let expect = "Vault login as `qontract` at `auth/kubernetes` failed: 403 Forbidden";
    assert_eq!(desk.read("secret/a", "x").await.unwrap_err(), expect);
    scratch.write("token", "jwt-2\n");
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    scratch.remove("token");
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    server.revoke_all();
    let error = desk.read("secret/a", "x").await.unwrap_err();
    assert!(error.starts_with("cannot read the token file `") && error.contains("No such file"), "{error}");
}

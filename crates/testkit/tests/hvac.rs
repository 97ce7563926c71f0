//! Tests the emulator with a real client, hvac, in a Python process (`QONTRACT_PYTHON`, set by `cargo xtask
//! test`).

use std::process::Command;
use std::time::Duration;

use qontract_testkit::tool;
use qontract_testkit::vault::{LoginRole, ROOT, TestVault};

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn hvac_works_with_the_emulator() {
    let vault = TestVault::start();
    let lives = [Duration::from_mins(10), Duration::from_mins(25)];
    vault.add(LoginRole::AppRole {
        role_id: "role".to_owned(),
        secret_id: "password".to_owned(),
        ttls: lives,
    });
    vault.add(LoginRole::Kubernetes { role: "pod".to_owned(), jwt: "a.b.c".to_owned(), ttls: lives });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client.py");
    let output = Command::new(tool("QONTRACT_PYTHON"))
        .args([script, &vault.url(), ROOT])
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .expect("Python starts");
    let output_text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{output_text}");
    assert!(output_text.contains("10 checks"), "{output_text}");
}

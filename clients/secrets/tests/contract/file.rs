//! Secrets in a file: what other processes and people see of it.

use std::os::unix::fs::PermissionsExt as _;

use futures_util::future::join_all;
use qontract_access::Mode;
use qontract_client_secrets::{FileSecrets, SecretWriter as _, WriteOutcome};
use qontract_testkit::{Scratch, permits};

use super::{fields, file};

const FILE: &str = "sandbox/secrets.toml";

#[tokio::test]
async fn the_first_write_copies_the_seed() {
    let scratch = Scratch::new();
    let store = file(&scratch, "[creds.shop]\ntoken = 'a'\nport = 443\n[creds.other]\nx = 'y'\n");
    assert_eq!(store.read("creds/shop", "port").await.as_deref(), Ok("443"));
    assert!(!scratch.path().join("sandbox").exists(), "a read creates nothing");
    store.write("creds/shop", &[("token", "b")]).await.unwrap();
    assert_eq!(store.read("creds/shop", "token").await.as_deref(), Ok("b"));
    assert_eq!(store.read("creds/other", "x").await.as_deref(), Ok("y"));
    let mode = scratch.path().join(FILE).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn changes_of_others_are_seen_and_kept() {
    let scratch = Scratch::new();
    let store = file(&scratch, "");
    store.write("a", &[("x", "1")]).await.unwrap();
    scratch.write(FILE, "[b]\ny = \"2\"\n");
    assert!(store.read("a", "x").await.is_err());
    store.write("a", &[("x", "3")]).await.unwrap();
    assert_eq!(store.read("b", "y").await.as_deref(), Ok("2"));
}

#[tokio::test]
async fn no_concurrent_write_is_lost() {
    let scratch = Scratch::new();
    let store = file(&scratch, "");
    let other = file(&scratch, "");
    let names: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let writes = names.iter().enumerate().map(|(number, name)| {
        let store = if number % 2 == 0 { &store } else { &other };
        async move { store.write(name, &[("x", name)]).await }
    });
    assert!(join_all(writes).await.into_iter().all(|written| written == Ok(WriteOutcome::Changed)));
    for name in &names {
        assert_eq!(store.read(name, "x").await.as_deref(), Ok(&**name));
    }
}

#[tokio::test]
async fn a_field_and_a_secret_do_not_share_a_name() {
    let scratch = Scratch::new();
    let store = file(&scratch, "");
    store.write("a", &[("b", "1")]).await.unwrap();
    assert_eq!(
        store.write("a/b", &[("x", "1")]).await.unwrap_err(),
        "`a/b` is not a valid secret path: another secret has a field of this name"
    );
    store.write("c/d", &[("x", "1")]).await.unwrap();
    assert_eq!(
        store.write("c", &[("d", "1")]).await.unwrap_err(),
        "`c` is not a valid secret path: a field would have the name of another secret"
    );
}

#[tokio::test]
async fn an_invalid_file_is_an_error_without_its_content_and_is_not_replaced() {
    let scratch = Scratch::new();
    let store = file(&scratch, "[a]\nx = 'seed'\n");
    scratch.write(FILE, "[a]\nx = c4nary");
    for error in [store.read("a", "x").await.unwrap_err(), store.write("a", &[("x", "1")]).await.unwrap_err()]
    {
        assert!(error.starts_with("cannot read `"), "{error}");
        assert!(
            error.ends_with("secrets.toml`: it is not valid TOML") && !error.contains("c4nary"),
            "{error}"
        );
    }
    assert_eq!(scratch.read(FILE), "[a]\nx = c4nary");
}

#[tokio::test]
async fn a_killed_write_does_not_hinder_the_next_one() {
    let scratch = Scratch::new();
    let store = file(&scratch, "");
    store.write("a", &[("x", "1")]).await.unwrap();
    scratch.write("sandbox/.secrets.toml.draft", "[a]\nx =");
    store.write("a", &[("x", "2")]).await.unwrap();
    assert_eq!(store.read("a", "x").await.as_deref(), Ok("2"));
}

#[tokio::test]
async fn a_dry_run_writes_nothing_whichever_permit_is_passed() {
    let scratch = Scratch::new();
    let dry = permits(Mode::DryRun);
    let secrets = FileSecrets::new(&dry.read, scratch.path().join(FILE), toml::Table::new());
    let stolen = permits(Mode::Real).write.unwrap();
    let error = secrets.write(&stolen, "a", &fields(&[("x", "1")])).await.unwrap_err();
    assert_eq!(error.to_string(), "a dry run does not write secrets");
    assert!(!scratch.path().join("sandbox").exists());
}

#[test]
fn debug_omits_the_content() {
    let store =
        FileSecrets::new(&permits(Mode::Real).read, "secrets.toml", "[a]\nx = 'c4nary'\n".parse().unwrap());
    assert_eq!(format!("{store:?}"), "FileSecrets(`secrets.toml`)");
}

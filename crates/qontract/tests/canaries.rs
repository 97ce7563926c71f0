//! A thousand tokens in the configuration, at the most talkative level: none of them is in what is printed or kept.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    pub mod command;
}

use qontract_testkit::{Scratch, example};
use support::command::qontract;

const COUNT: usize = 1000;

#[test]
fn no_token_is_in_what_is_printed_or_kept() {
    let scratch = Scratch::new();
    for part in ["schemas", "graphql-schemas"] {
        scratch.copy(&example().join(part), &format!("repo/{part}"));
    }
    let own = "data/integrations/openshift-namespaces.yml";
    scratch.write(&format!("repo/{own}"), std::fs::read_to_string(example().join(own)).unwrap());
    let mut config = "[kubernetes]\nrequests_per_second = 50\n".to_owned();
    for number in 0..COUNT {
        let cluster = format!(
            "$schema: /openshift/cluster-1.yml\nname: c{number}\nserverUrl: https://127.0.0.1:{}\nautomationToken: {{path: creds/c{number}, field: token}}\n",
            1000 + number
        );
        scratch.write(&format!("repo/data/clusters/c{number}.yml"), cluster);
        let namespace = format!(
            "$schema: /openshift/namespace-1.yml\nname: n\ncluster: {{$ref: /clusters/c{number}.yml}}\n"
        );
        scratch.write(&format!("repo/data/n{number}.yml"), namespace);
        // Some tokens are for another server, some cannot be sent, some are no text.
        let token = match number % 3 {
            0 => format!("\"canary-{number}\"\nserver = \"https://other.example.com\""),
            1 => format!("\"canary-{number}\\nsecond line\""),
            _ => format!("[\"canary-{number}\"]"),
        };
        config.push_str(&format!("[creds.c{number}]\ntoken = {token}\n"));
    }
    scratch.write("config.toml", config);
    let words =
        ["reconcile", "openshift-namespaces", "--data", "repo", "--config", "config.toml", "--runs", "runs"];
    let mut told = String::new();
    for more in [&["--dry-run", "--log-level", "DEBUG"][..], &["--log-level", "DEBUG", "-o", "json"][..]] {
        let output = qontract(scratch.path(), &[&words, more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        told += &String::from_utf8_lossy(&output.stdout);
        told += &String::from_utf8_lossy(&output.stderr);
    }
    for entry in std::fs::read_dir(scratch.path().join("runs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            told += &std::fs::read_to_string(path).unwrap();
        }
    }
    assert!(
        told.matches("cannot log in to the cluster").count() > COUNT,
        "the test means something: {}",
        &told[..500]
    );
    assert_eq!(told.matches("canary-").count(), 0);
}

//! Tests of external lookups of templates: only sources on the operator's allow-list are read, and a failure
//! removes nothing.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use crate::support::loopback::{Loopback, Reply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, example, free_port};

const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: told}\ndata:\n";

/// The example, one namespace of which has one template, and a sandbox.
struct TemplateFixture {
    scratch: Scratch,
}

impl TemplateFixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        let own = "repo/data/integrations/openshift-resources.yml";
        scratch.write(own, scratch.read(own).replace("schemas:\n", "schemas:\n- /aws/account-1.yml\n"));
        let namespace = "repo/data/services/catalog/namespaces/catalog-stage.yml";
        let text = scratch.read(namespace);
        let (text, _) = text.split_once("sharedResources:").unwrap();
        let entries = "managedResourceTypes:\n- ConfigMap\n\nopenshiftResources:\n- provider: resource-template\n  path: /told.yaml.j2\n";
        scratch.write(namespace, format!("{text}{entries}"));
        scratch.init_journal("sandbox");
        scratch.write(
            "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: catalog-stage}\n",
        );
        Self { scratch }
    }

    /// The object has these fields, and the configuration these settings.
    fn reconcile(&self, fields: &str, settings: &str) -> (Option<i32>, String) {
        self.scratch.write("repo/resources/told.yaml.j2", format!("{OBJECT}{fields}"));
        let config = format!(
            "[templates]\n{settings}\n[sandbox]\ndirectory = \"sandbox\"\n[creds.forge]\ntoken = \"hush-token\"\n\
             [creds.path]\nword = \"hush-word\"\n\
             [platform.aws.shop-stage]\naws_access_key_id = \"AKIATEST\"\naws_secret_access_key = \"hush-key\"\n"
        );
        self.scratch.write("config.toml", config);
        let words = [
            "reconcile",
            "openshift-resources",
            "--data",
            "repo",
            "--config",
            "config.toml",
            "--runs",
            "runs",
            "--namespace-name",
            "catalog-stage",
        ];
        let output = qontract(self.scratch.path(), &words);
        let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        assert!(!printed.contains("hush"), "no secret is printed: {printed}");
        (output.status.code(), printed)
    }

    /// The object that was written.
    fn written_object(&self) -> String {
        self.scratch.read("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap/told.yaml")
    }

    /// Adds an undeclared object: it is removed once it is known that nothing declares it.
    fn leave_another(&self) {
        let text = self.written_object().replace("name: told", "name: other");
        self.scratch.write("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap/other.yaml", text);
    }

    fn has_another(&self) -> bool {
        self.scratch.path().join("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap/other.yaml").exists()
    }
}

/// A file in the format of the GitHub API.
fn file(text: &str) -> Reply {
    let encoded = STANDARD.encode(text);
    Reply::Full(
        "200 OK",
        String::new(),
        format!(r#"{{"type":"file","encoding":"base64","content":"{encoded}\n"}}"#),
    )
}

fn server() -> Loopback {
    Loopback::start(|line| match line.split(' ').nth(1).unwrap_or_default() {
        "/docs/page" | "/docs/query?x=1" => Reply::Full("200 OK", String::new(), "hello".to_owned()),
        "/docs/locked" => Reply::Full("401 Unauthorized", String::new(), String::new()),
        "/docs/near" => Reply::Full("302 Found", "location: /docs/page\r\n".to_owned(), String::new()),
        "/docs/out" => Reply::Full("302 Found", "location: /private/page\r\n".to_owned(), String::new()),
        "/docs/circle" => Reply::Full("302 Found", "location: /docs/circle\r\n".to_owned(), String::new()),
        "/docs/broken" => Reply::Full("500 Internal Server Error", String::new(), "hush".to_owned()),
        "/docs/large" => Reply::Full("200 OK", String::new(), "x".repeat(5000)),
        "/docs/slow" => Reply::Never,
        "/api/repos/shop/manifests/contents/a%20b/c.txt?ref=v1%26x" => file("from the forge"),
        "/api/repos/shop/manifests/contents/folder?ref=v1" => {
            Reply::Full("200 OK", String::new(), "[]".to_owned())
        }
        "/api/repos/shop/manifests/contents/moved?ref=v1" => Reply::Full(
            "301 Moved Permanently",
            "location: /api/repositories/1/contents/moved?ref=v1\r\n".to_owned(),
            String::new(),
        ),
        "/api/repos/shop/manifests/contents/denied?ref=v1" => {
            Reply::Full("403 Forbidden", String::new(), "hush".to_owned())
        }
        _ => Reply::Full("404 Not Found", String::new(), "hush".to_owned()),
    })
}

/// The settings that allow the sources of a server.
fn settings(server: &Loopback) -> String {
    format!(
        "allow_urls = [\"{0}/docs/\"]\nallow_github = [\"shop/manifests\"]\ngithub_api = \"{0}/api\"\n\
         github_token = {{ path = \"creds/forge\", field = \"token\" }}\ndeadline_seconds = 3\nlargest_bytes = 4000\n",
        server.url()
    )
}

#[test]
fn allowed_sources_are_looked_up() {
    let (stage, server) = (TemplateFixture::new(), server());
    let url = server.url();
    let fields = format!(
        "  page: \"{{{{ url('{url}/docs/page') }}}}\"\n  query: \"{{{{ url(' {url}/docs/query?x=1') }}}}\"\n  \
         locked: \"{{{{ url('{url}/docs/locked') }}}}\"\n  missing: \"{{{{ url('{url}/docs/missing') }}}}\"\n  \
         near: \"{{{{ url('{url}/docs/near') }}}}\"\n  empty: \"{{{{ url('') }}}}\"\n  \
         file: \"{{{{ github('shop/manifests', '/a b/c.txt', 'v1&x') }}}}\"\n  \
         again: \"{{{{ github('shop/manifests', '/a b/c.txt', 'v1&x') | upper }}}}\"\n"
    );
    let (code, printed) = stage.reconcile(&fields, &settings(&server));
    assert_eq!(code, Some(0), "{printed}");
    let made = stage.written_object();
    for line in [
        "page: 'True'",
        "query: 'True'",
        "locked: 'True'",
        "missing: 'False'",
        "near: 'True'",
        "empty: 'False'",
        "file: from the forge",
        "again: FROM THE FORGE",
    ] {
        let other = line.replace('\'', "\"");
        assert!(made.contains(line) || made.contains(&other), "{line}: {made}");
    }
    let heads = server.seen();
    let (forge, pages): (Vec<&String>, Vec<&String>) = heads.iter().partition(|head| head.contains(" /api/"));
    assert_eq!(forge.len(), 1, "one address is asked once in a round");
    assert!(forge[0].to_lowercase().contains("authorization: bearer hush-token"), "{forge:?}");
    assert!(pages.iter().all(|head| !head.to_lowercase().contains("authorization")), "{pages:?}");
    assert!(heads.iter().all(|head| head.starts_with("GET ")), "{heads:?}");
    // The declared state has the address: the second time there is nothing to do.
    let (code, printed) = stage.reconcile(&fields, &settings(&server));
    assert_eq!(code, Some(0), "{printed}");
    assert!(!printed.contains("told`"), "{printed}");
}

#[test]
fn sources_outside_of_the_allow_list_are_not_contacted() {
    let (stage, server) = (TemplateFixture::new(), server());
    let url = server.url();
    let check = |call: &str, settings: &str, expect: &str| {
        let (code, printed) = stage.reconcile(&format!("  x: \"{{{{ {call} }}}}\"\n"), settings);
        assert_eq!(code, Some(1), "{call}: {printed}");
        assert!(printed.contains(expect), "{call}: {printed}");
        assert!(printed.contains("told.yaml.j2"), "{call}: {printed}");
    };
    let not_named = |setting: &str| format!("`templates.{setting}` in the configuration does not allow it");
    let (page, s3) = (format!("url('{url}/docs/page')"), "s3('shop-stage', 'images', 'a')");
    let github = "github('shop/manifests', 'a', 'v1')";
    for (call, setting) in [
        (page.as_str(), "allow_urls"),
        (github, "allow_github"),
        (s3, "allow_s3"),
        ("s3_ls('shop-stage', 'images', 'a')", "allow_s3"),
    ] {
        check(call, "", &not_named(setting));
    }
    let some = settings(&server);
    for call in [
        format!("url('{url}/private/page')"),
        format!("url('{url}/docs/../private/page')"),
        "url('http://169.254.169.254/latest/meta-data/')".to_owned(),
        "url('file:///etc/passwd')".to_owned(),
    ] {
        check(&call, &some, &not_named("allow_urls"));
    }
    check("github('shop/other', 'a', 'v1')", &some, &not_named("allow_github"));
    check("github('shop/manifests', '../../other/contents/a', 'v1')", &some, "its path is not a file path");
    check(s3, &some, &not_named("allow_s3"));
    assert_eq!(server.seen(), [""; 0]);
    // It is also reported next to a secret.
    check(
        &format!("vault('creds/path', 'word') ~ url('{url}/private/page')"),
        &some,
        &not_named("allow_urls"),
    );
    assert_eq!(server.seen(), [""; 0]);
}

#[test]
fn a_redirect_does_not_leave_the_allow_list() {
    let (stage, server) = (TemplateFixture::new(), server());
    let url = server.url();
    for (call, expect) in [
        (format!("url('{url}/docs/out')"), "`templates.allow_urls` in the configuration does not allow it"),
        (format!("url('{url}/docs/circle')"), "it redirects more than 5 times"),
        ("github('shop/manifests', 'moved', 'v1')".to_owned(), "it has moved"),
    ] {
        let (code, printed) = stage.reconcile(&format!("  x: \"{{{{ {call} }}}}\"\n"), &settings(&server));
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(expect), "{printed}");
    }
    let seen = server.seen();
    assert!(!seen.iter().any(|head| head.contains("/private") || head.contains("/repositories")), "{seen:?}");
}

#[test]
fn a_failed_lookup_removes_nothing() {
    let (stage, server) = (TemplateFixture::new(), server());
    let (url, settings) = (server.url(), settings(&server));
    let good = "  x: plain\n";
    assert_eq!(stage.reconcile(good, &settings).0, Some(0));
    stage.leave_another();
    let made = stage.written_object();
    // No server listens there.
    let dead = format!("http://127.0.0.1:{}/docs/", free_port());
    let with_dead = settings.replace("allow_urls = [", &format!("allow_urls = [\"{dead}\", "));
    for (call, code, expect) in [
        (format!("url('{url}/docs/slow')"), 75, "gave up after 3 s"),
        (format!("url('{url}/docs/large')"), 1, "the response has more than 4000 bytes"),
        (format!("url('{url}/docs/broken')"), 75, "500 Internal Server Error"),
        (format!("url('{dead}page')"), 75, "connection refused"),
        ("github('shop/manifests', 'denied', 'v1')".to_owned(), 1, "403 Forbidden"),
        (
            "github('shop/manifests', 'missing', 'v1')".to_owned(),
            1,
            "it does not exist, or the token has no access to it",
        ),
        ("github('shop/manifests', 'folder', 'v1')".to_owned(), 1, "it is not a file"),
    ] {
        let (ended, printed) = stage.reconcile(&format!("  x: \"{{{{ {call} }}}}\"\n"), &with_dead);
        assert_eq!(ended, Some(code), "{call}: {printed}");
        assert!(printed.contains(expect), "{call}: {printed}");
        assert!(stage.has_another(), "{call}: nothing is removed: {printed}");
        assert_eq!(stage.written_object(), made, "{call}: and nothing is changed");
    }
    assert_eq!(stage.reconcile(good, &settings).0, Some(0));
    assert!(!stage.has_another(), "once it is known that nothing names it, it goes");
}

#[test]
fn no_secret_is_part_of_an_address() {
    let (stage, server) = (TemplateFixture::new(), server());
    let (url, settings) = (server.url(), settings(&server));
    for fields in [
        format!("  x: \"{{{{ url('{url}/docs/' ~ vault('creds/path', 'word')) }}}}\"\n"),
        "  x: \"{{ github('shop/manifests', vault('creds/path', 'word'), 'v1') }}\"\n".to_owned(),
        format!(
            "  x: \"{{% if vault('creds/path', 'word') == 'hush-word' %}}{{{{ url('{url}/docs/page') }}}}{{% endif %}}\"\n"
        ),
    ] {
        let (code, printed) = stage.reconcile(&fields, &settings);
        assert_eq!(code, Some(1), "{printed}");
        assert!(
            printed.contains("makes an external lookup that depends on a secret: the request is not sent"),
            "{printed}"
        );
    }
    assert_eq!(server.seen(), [""; 0]);
    // Lookups that do not depend on the secret are allowed, whatever the template did with it before.
    let fields = format!(
        "  x: \"{{{{ vault('creds/path', 'word') | upper | length }}}}\"\n  y: \"{{{{ url('{url}/docs/page') }}}}\"\n"
    );
    let (code, printed) = stage.reconcile(&fields, &settings);
    assert_eq!(code, Some(0), "{printed}");
    assert!(stage.written_object().contains("True"), "{}", stage.written_object());
}

#[test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
fn buckets_on_the_list_are_read_with_the_key_of_their_account() {
    let (stage, aws) = (TemplateFixture::new(), TestAws::start());
    aws.bucket("images");
    aws.put("images", "builds/1", "first");
    aws.put("images", "builds/2", "second");
    let settings = format!(
        "allow_s3 = [\"shop-stage/images\", \"shop-stage/gone\", \"nobody/images\"]\ns3_endpoint = \"{}\"\n",
        aws.url()
    );
    let fields = "  all: \"{{ s3_ls('shop-stage', 'images', 'builds/') | join(' ') }}\"\n  \
                  latest: \"{{ s3('shop-stage', 'images', s3_ls('shop-stage', 'images', 'builds/') | last, region_name='us-east-1') }}\"\n";
    let (code, printed) = stage.reconcile(fields, &settings);
    assert_eq!(code, Some(0), "{printed}");
    let made = stage.written_object();
    assert!(made.contains("all: builds/1 builds/2") && made.contains("latest: second"), "{made}");
    stage.leave_another();
    for (call, code, expect) in [
        ("s3('shop-stage', 'images', 'builds/3')", 1, "it does not exist"),
        ("s3('shop-stage', 'gone', 'builds/1')", 1, "bucket `gone` not found"),
        ("s3('nobody', 'images', 'builds/1')", 1, "the data has no account `nobody`"),
        ("s3('shop-stage', 'images', 'a/../b')", 1, "it contains a `.` or `..` segment"),
    ] {
        let (ended, printed) = stage.reconcile(&format!("  x: \"{{{{ {call} }}}}\"\n"), &settings);
        assert_eq!(ended, Some(code), "{call}: {printed}");
        assert!(printed.contains(expect), "{call}: {printed}");
        assert!(stage.has_another(), "{call}: {printed}");
    }
    drop(aws);
    let (ended, printed) = stage.reconcile(fields, &settings);
    assert_eq!(ended, Some(75), "{printed}");
    assert!(stage.has_another(), "{printed}");
}

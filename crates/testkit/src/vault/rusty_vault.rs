//! `RustyVault`, a real server with KV 1 and logins by token and role, without KV 2 and policies.

use crate::{Process, Scratch, free_port, tool};
use serde_json::{Value, json};

use super::http::HttpClient;

/// The variable that names the program.
const PROGRAM: &str = "QONTRACT_RVAULT";

/// A running `RustyVault`, unsealed, with KV 1 at `secret/`; stopped on drop.
pub struct RealVault {
    port: u16,
    root: String,
    key: String,
    // Fields are dropped in this order: the directory is removed after the process has ended.
    _process: Process,
    _folder: Scratch,
}

impl RealVault {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If the variable `QONTRACT_RVAULT` does not name a program; `cargo xtask test` sets it.
    pub fn start() -> Self {
        let (program, folder, port) = (tool(PROGRAM), Scratch::new(), free_port());
        let here = folder.path().display();
        let config = format!(
            "storage \"file\" {{\n  path = \"{here}/data\"\n}}\n\
             listener \"tcp\" {{\n  address = \"127.0.0.1:{port}\"\n  tls_disable = \"true\"\n}}\n\
             api_addr = \"http://127.0.0.1:{port}\"\nlog_level = \"warn\"\nwork_dir = \"{here}\"\n"
        );
        let config = folder.write("config.hcl", config);
        let arguments = ["server".to_owned(), "--config".to_owned(), config.display().to_string()];
        let mut process = Process::start(&program, &arguments, folder.path());
        process.wait_for(port);
        let anonymous = HttpClient { port, token: "" };
        let made = anonymous.call_ok("PUT", "sys/init", &json!({"secret_shares": 1, "secret_threshold": 1}));
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let (root, key) = (text(&made["root_token"]), text(&made["keys"][0]));
        let vault = Self { port, root, key, _process: process, _folder: folder };
        vault.unseal();
        vault
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The root token.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Writes a secret.
    pub fn put(&self, path: &str, fields: &Value) {
        self.client().call_ok("PUT", path, fields);
    }

    /// Seals the Vault: it no longer serves requests.
    pub fn seal(&self) {
        self.client().call_ok("PUT", "sys/seal", &Value::Null);
    }

    /// Unseals the Vault.
    pub fn unseal(&self) {
        self.client().call_ok("PUT", "sys/unseal", &json!({"key": self.key}));
    }

    /// Creates a role at `auth/approle`; returns its role id and secret id.
    pub fn app_role(&self) -> (String, String) {
        let client = self.client();
        client.call_ok("POST", "sys/auth/approle", &json!({"type": "approle"}));
        let role = json!({"token_ttl": "20m", "token_max_ttl": "30m", "token_policies": "default"});
        client.call_ok("POST", "auth/approle/role/test", &role);
        let role = client.call_ok("GET", "auth/approle/role/test/role-id", &Value::Null);
        let secret = client.call_ok("POST", "auth/approle/role/test/secret-id", &json!({}));
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        (text(&role["data"]["role_id"]), text(&secret["data"]["secret_id"]))
    }

    fn client(&self) -> HttpClient<'_> {
        HttpClient { port: self.port, token: &self.root }
    }
}

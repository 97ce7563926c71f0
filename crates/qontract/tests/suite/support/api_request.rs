//! Raw requests to a real API server, as any user.

use qontract_access::Mode;
use qontract_client_http::{Http, Method, Proxies, Request, Secret, Settings, StatusCode, Url};
use qontract_testkit::cluster::Api;
use qontract_testkit::permits;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// The statuses of refused requests.
const REFUSALS: [StatusCode; 6] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::CONFLICT,
    StatusCode::UNPROCESSABLE_ENTITY,
];

/// A user of an API server.
pub struct ApiUser {
    http: Http,
    url: String,
    token: Secret,
    runtime: Runtime,
}

impl ApiUser {
    /// The user with all permissions.
    pub fn admin(api: &Api) -> Self {
        Self::with_token(api, &api.token)
    }

    /// The user of a token.
    pub fn with_token(api: &Api, token: &str) -> Self {
        let roots = vec![std::fs::read(&api.ca).unwrap()];
        let settings = Settings { roots, proxies: Proxies::Never, retries: 0, ..Settings::default() };
        let http = Http::new(&permits(Mode::Real).read, settings).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { http, url: api.url.clone(), token: Secret::new(format!("Bearer {token}")), runtime }
    }

    /// A `ServiceAccount`, with a token that the API server issues.
    pub fn service_account(api: &Api, namespace: &str, name: &str) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let (status, answer) = Self::admin(api).send(&Method::POST, &path, Some(&request));
        assert_eq!(status, 201, "{answer}");
        Self::with_token(api, answer["status"]["token"].as_str().unwrap())
    }

    /// Sends a request; a `PATCH` is a server-side apply.
    pub fn send(&self, method: &Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut request = Request::new(method.clone(), Url::parse(&format!("{}{path}", self.url)).unwrap())
            .secret_header("authorization", &self.token);
        if let Some(body) = body {
            let is_patch = *method == Method::PATCH;
            let media = if is_patch { "application/apply-patch+yaml" } else { "application/json" };
            request = request.body(media, body.to_string().into_bytes());
        }
        request = REFUSALS.into_iter().fold(request, Request::accept_status);
        let permit = permits(Mode::Real).write.expect("a real run");
        let response = self.runtime.block_on(self.http.write(&permit, request)).unwrap();
        (response.status.as_u16(), serde_json::from_slice(&response.body).unwrap_or_default())
    }
}

/// The path of the collection of an object's kind.
pub fn collection(object: &Value) -> String {
    let plural = match object["kind"].as_str().unwrap() {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { "apis" } else { "api" };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{version}/{plural}"),
    }
}

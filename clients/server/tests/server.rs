//! The client against a data server on the loopback interface.

use std::time::Duration;

use qontract_access::{Mode, Permits};
use qontract_client_http::{Http, HttpError, Proxies, Secret, Settings, Url};
use qontract_client_server::{
    BundleSelector, CommitInfo, GraphqlQuery, QueryAnswer, ServerClient, ServerError, ServerExtensions, Sha,
};
use qontract_testserver::DataServer;
use serde_json::json;
use tokio::net::TcpSocket;

const TEAMS: GraphqlQuery<'_> =
    GraphqlQuery { text: "{ teams { name } }", variables: None, operation: None, extension: None };

/// A bundle with one team, from a commit with the name of the team.
fn bundle(team: &str) -> Vec<u8> {
    let types = json!([
        {"name": "Query", "fields": [
            {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
        {"name": "Team", "fields": [{"name": "name", "type": "string", "isSearchable": true}]},
    ]);
    let data = json!({"/a.yml": {"$schema": "/team.yml", "name": team}});
    let bundle = json!({"git_commit": team, "git_commit_timestamp": "1700000000", "schemas": {}, "resources": {},
        "graphql": types, "data": data});
    bundle.to_string().into_bytes()
}

/// A client in a dry run, with its permits.
struct ClientFixture {
    permits: Permits,
    server: ServerClient,
}

impl ClientFixture {
    fn of(url: &str, token: Option<&str>) -> Self {
        let permits = qontract_testkit::permits(Mode::DryRun);
        let pause = Duration::from_millis(1);
        let settings =
            Settings { proxies: Proxies::Never, retries: 1, initial_backoff: pause, ..Settings::default() };
        let http = Http::new(&permits.read, settings).expect("a stack");
        let url = Url::parse(url).expect("a URL");
        Self { permits, server: ServerClient::new(&http, url, token.map(Secret::new)) }
    }

    async fn query(
        &self,
        address: &BundleSelector,
        query: GraphqlQuery<'_>,
    ) -> Result<QueryAnswer, ServerError> {
        self.server.query(&self.permits.read, address, query).await
    }

    async fn teams(&self, address: &BundleSelector) -> String {
        self.query(address, TEAMS).await.expect("an answer").data().to_owned()
    }

    async fn latest(&self) -> Result<Sha, ServerError> {
        self.server.latest_sha(&self.permits.read).await
    }
}

fn pinned(sha: &str) -> BundleSelector {
    BundleSelector::Sha(Sha::parse(sha).expect("a sha"))
}

#[tokio::test]
async fn a_query_returns_the_data_of_the_bundle() {
    let data = DataServer::start();
    data.load(&bundle("core"));
    let run = ClientFixture::of(&data.url(), None);
    let answer = run.query(&BundleSelector::Latest, TEAMS).await.unwrap();
    assert_eq!(answer.data(), r#"{"teams":[{"name":"core"}]}"#);
    assert_eq!(answer.schemas(), ["/team.yml"]);
    let body = "{\"data\":{\"teams\":[{\"name\":\"core\"}]},\"extensions\":{\"schemas\":[\"/team.yml\"]}}\n";
    assert_eq!(answer.body(), body.as_bytes());
}

#[tokio::test]
async fn a_pinned_bundle_gives_the_same_answer_after_a_reload() {
    let data = DataServer::start();
    let before = data.load(&bundle("core"));
    let run = ClientFixture::of(&data.url(), None);
    let head = run.latest().await.unwrap();
    assert_eq!(head.as_str(), before);
    let address = BundleSelector::Sha(head);
    let first = run.teams(&address).await;
    let after = data.load(&bundle("edge"));
    assert_eq!(run.teams(&address).await, first);
    assert_eq!(run.teams(&BundleSelector::Latest).await, r#"{"teams":[{"name":"edge"}]}"#);
    assert_eq!(run.latest().await.unwrap().as_str(), after);
    data.make_latest(&before);
    assert_eq!(run.teams(&BundleSelector::Latest).await, first);
    assert_eq!(data.requests(&format!("/graphqlsha/{before}")), 2);
}

#[tokio::test]
async fn base_and_head_can_both_be_queried() {
    let data = DataServer::start();
    let (base, head) = (data.load(&bundle("old")), data.load(&bundle("new")));
    let run = ClientFixture::of(&data.url(), None);
    assert_eq!(run.teams(&pinned(&base)).await, r#"{"teams":[{"name":"old"}]}"#);
    assert_eq!(run.teams(&pinned(&head)).await, r#"{"teams":[{"name":"new"}]}"#);
    for (sha, commit) in [(base, "old"), (head, "new")] {
        let info = run.server.commit_info(&run.permits.read, &Sha::parse(&sha).unwrap()).await.unwrap();
        let (commit, timestamp) = (commit.to_owned(), "1700000000".to_owned());
        let extensions = ServerExtensions::parse("query batch");
        assert_eq!(info, CommitInfo { commit, timestamp, extensions });
    }
}

#[tokio::test]
async fn a_bundle_that_the_server_does_not_have_is_unknown() {
    let data = DataServer::start();
    let forgotten = data.load(&bundle("old"));
    data.load(&bundle("new"));
    data.forget(&forgotten);
    let run = ClientFixture::of(&data.url(), None);
    let sha = Sha::parse(&forgotten).unwrap();
    let answer = run.query(&BundleSelector::Sha(sha.clone()), TEAMS).await.unwrap_err();
    let commit = run.server.commit_info(&run.permits.read, &sha).await.unwrap_err();
    for error in [answer, commit] {
        assert!(matches!(&error, ServerError::UnknownSha(unknown) if *unknown == sha), "{error:?}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn variables_and_operations_are_sent() {
    let data = DataServer::start();
    data.load(&bundle("core"));
    let run = ClientFixture::of(&data.url(), None);
    let text = "query A($n: String) { teams(name: $n) { name } } query B { __typename }";
    let variables = json!({"n": "core"});
    let query =
        GraphqlQuery { text, variables: Some(&variables), operation: Some("A"), ..GraphqlQuery::default() };
    let answer = run.query(&BundleSelector::Latest, query).await.unwrap();
    assert_eq!(answer.data(), r#"{"teams":[{"name":"core"}]}"#);
    let answer =
        run.query(&BundleSelector::Latest, GraphqlQuery { operation: Some("B"), ..query }).await.unwrap();
    assert_eq!(answer.data(), r#"{"__typename":"Query"}"#);
}

#[tokio::test]
async fn an_invalid_query_returns_its_errors() {
    let data = DataServer::start();
    data.load(&bundle("core"));
    let run = ClientFixture::of(&data.url(), None);
    let query = GraphqlQuery { text: "{ nothing }", ..GraphqlQuery::default() };
    let error = run.query(&BundleSelector::Latest, query).await.unwrap_err();
    assert!(matches!(&error, ServerError::GraphqlErrors(complaints) if complaints.len() == 1), "{error:?}");
    assert!(error.to_string().contains("nothing"), "{error}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn the_right_token_is_accepted() {
    let data = DataServer::with_token("Basic right");
    let sha = data.load(&bundle("core"));
    let run = ClientFixture::of(&data.url(), Some("Basic right"));
    assert_eq!(run.latest().await.unwrap().as_str(), sha);
    assert_eq!(run.teams(&pinned(&sha)).await, r#"{"teams":[{"name":"core"}]}"#);
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_not_shown() {
    let data = DataServer::with_token("Basic right");
    data.load(&bundle("core"));
    let wrong = ClientFixture::of(&data.url(), Some("Basic wr0ng"));
    for error in [wrong.latest().await.err(), wrong.query(&BundleSelector::Latest, TEAMS).await.err()] {
        let error = error.unwrap();
        assert_eq!(error.to_string(), "the data server does not accept the token");
        assert!(!format!("{error:?} {:?}", wrong.server).contains("wr0ng"), "{error:?}");
        assert!(!error.is_transient());
    }
    let error = ClientFixture::of(&data.url(), None).latest().await.unwrap_err();
    assert_eq!(error.to_string(), "the data server requires a token, and none is configured");
    assert_eq!(data.all_requests(), 3);
}

#[tokio::test]
async fn an_unreachable_server_is_transient() {
    // The port is bound, and nothing listens on it.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let run = ClientFixture::of(&format!("http://{}/graphql", taken.local_addr().unwrap()), None);
    let error = run.latest().await.unwrap_err();
    assert!(matches!(error, ServerError::Latest(HttpError::Connect { .. })), "{error:?}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_server_without_a_bundle_is_transient() {
    let data = DataServer::start();
    let error = ClientFixture::of(&data.url(), None).latest().await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(data.requests("/sha256"), 2);
}

#[tokio::test]
async fn a_url_that_is_not_a_data_server_is_an_error() {
    let data = DataServer::start();
    data.load(&bundle("core"));
    let url = data.url().replace("/graphql", "/elsewhere");
    let error = ClientFixture::of(&url, None).query(&BundleSelector::Latest, TEAMS).await.unwrap_err();
    assert!(matches!(&error, ServerError::Request { source: HttpError::Status { .. }, .. }), "{error:?}");
}

#[tokio::test]
async fn a_lease_is_created_and_released() {
    let data = DataServer::with_token("Basic right");
    let sha = Sha::parse(&data.load(&bundle("core"))).unwrap();
    let run = ClientFixture::of(&data.url(), Some("Basic right"));
    let permit = &run.permits.read;
    let lease = run.server.lease(permit, &sha, Duration::from_mins(1)).await.unwrap().expect("a lease");
    assert_eq!(data.leases(), 1);
    run.server.release(permit, &sha, &lease).await.unwrap();
    assert_eq!(data.leases(), 0);
    // Releasing it again succeeds.
    run.server.release(permit, &sha, &lease).await.unwrap();
}

#[tokio::test]
async fn a_server_without_leases_returns_none() {
    let data = DataServer::start();
    let sha = Sha::parse(&data.load(&bundle("core"))).unwrap();
    let run = ClientFixture::of(&data.url(), None);
    assert_eq!(run.server.lease(&run.permits.read, &sha, Duration::from_mins(1)).await.unwrap(), None);
}

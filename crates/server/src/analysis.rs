//! Comparisons of two bundles, and lookups of lines in the files of a bundle, for clients of qontract. The server
//! only routes, limits and caches these requests; the program that embeds the server defines their meaning.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use qontract_bundle::Sha256;
use qontract_graphql::Engine;

use crate::bundles::now;
use crate::graphql::{self, EvaluatedResponse, EvaluationFailure};
use crate::reply::{JSON, Reply, error_response};
use crate::response_cache::{CachedResponse, ResponseKey};
use crate::route::RequestedBundle;
use crate::server::{ServerState, find, not_found};

/// Answers requests about bundles that need more than a GraphQL engine. Request and response are JSON.
pub trait BundleAnalysis: Send + Sync {
    /// Compares two bundles. The response is cached, because it depends only on the bundles and the request.
    fn compare(
        &self,
        base: &Arc<Engine>,
        head: &Arc<Engine>,
        request: &[u8],
    ) -> Result<Vec<u8>, AnalysisError>;

    /// Finds the lines of source locations in a bundle. The response is not cached, because the files may change.
    fn locate(&self, engine: &Arc<Engine>, request: &[u8]) -> Result<Vec<u8>, AnalysisError>;
}

/// The reason why a request about bundles is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AnalysisError(pub String);

/// Responds to a request that compares two bundles, which are named by their shas.
pub async fn compare(shared: &ServerState, method: &Method, shas: [&String; 2], body: Bytes) -> Reply {
    if method != Method::POST {
        return use_post();
    }
    let (base, head) = match (bundle(shared, shas[0]).await, bundle(shared, shas[1]).await) {
        (Ok(base), Ok(head)) => (base, head),
        (Err(missing), _) | (_, Err(missing)) => return missing,
    };
    let digest = Sha256::of(&body).to_string();
    let key = ResponseKey::of(base.bundle().sha(), &["compare", &head.bundle().sha().to_string(), &digest]);
    let evaluated = graphql::evaluate_once(shared, key, || {
        in_background(shared, move |analysis| analysis.compare(&base, &head, &body))
    });
    reply(evaluated.await)
}

/// Responds with the lines of source locations in a bundle.
pub async fn locate(shared: &ServerState, method: &Method, sha: &str, body: Bytes) -> Reply {
    if method != Method::POST {
        return use_post();
    }
    let engine = match bundle(shared, sha).await {
        Ok(engine) => engine,
        Err(missing) => return missing,
    };
    reply(in_background(shared, move |analysis| analysis.locate(&engine, &body)).await)
}

fn use_post() -> Reply {
    Reply::text(StatusCode::METHOD_NOT_ALLOWED, "use POST").allowing("POST")
}

async fn bundle(shared: &ServerState, sha: &str) -> Result<Arc<Engine>, Reply> {
    let which = RequestedBundle::Named(sha.to_owned());
    let engine = find(shared, &which).await.map_err(|missing| not_found(&which, missing))?;
    shared.bundles.registry().touch_or_insert(&engine, now());
    Ok(engine)
}

/// Runs an analysis on a blocking thread, within the concurrency limit for large responses.
async fn in_background(
    shared: &ServerState,
    work: impl FnOnce(&dyn BundleAnalysis) -> Result<Vec<u8>, AnalysisError> + Send + 'static,
) -> Result<EvaluatedResponse, EvaluationFailure> {
    let Some(analysis) = shared.settings.analysis.clone() else { return Err(EvaluationFailure::Panic) };
    let permit = graphql::acquire(shared).await?;
    let task = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work(&*analysis)
    });
    match task.await.map_err(|_| EvaluationFailure::Panic)? {
        Ok(body) => {
            let flight = shared.in_flight.begin(body.len());
            Ok(EvaluatedResponse::new(CachedResponse::new(200, body), Some(flight)))
        }
        Err(AnalysisError(message)) => {
            Ok(EvaluatedResponse::new(error_response(StatusCode::BAD_REQUEST, &message), None))
        }
    }
}

fn reply(evaluated: Result<EvaluatedResponse, EvaluationFailure>) -> Reply {
    match evaluated {
        Ok(evaluated) => evaluated.reply(JSON),
        Err(failure) => failure.reply(),
    }
}

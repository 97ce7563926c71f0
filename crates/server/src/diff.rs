//! Renders `/diff`: the diff of two bundles.

use std::sync::Arc;

use hyper::StatusCode;
use qontract_bundle::Bundle;
use qontract_bundle::diff::{Change, DatafileChange, Diff, ResourceChange};
use qontract_bundle::json::JavaScriptWriter;

use crate::graphql::{self, EvaluatedResponse, EvaluationFailure};
use crate::reply::{JSON, Reply, escape};
use crate::response_cache::{CachedResponse, ResponseKey};
use crate::route::{FileRef, RequestedBundle};
use crate::server::{ServerState, find, not_found};

/// Responds with the diff of two bundles, or with the diff of one file in them.
pub async fn answer(shared: &ServerState, base: &str, head: &str, file: Option<&FileRef>) -> Reply {
    let mut engines = Vec::new();
    for name in [base, head] {
        let which = RequestedBundle::Named(name.to_owned());
        match find(shared, &which).await {
            Ok(engine) => engines.push(engine),
            Err(missing) => return not_found(&which, missing),
        }
    }
    let [base, head] = engines.as_slice() else { unreachable!("two bundles were requested") };
    let (base, head) = (Arc::clone(base.bundle()), Arc::clone(head.bundle()));
    if let Some(FileRef { kind, path }) = file {
        return of_file(&base, &head, kind, path);
    }
    let key = ResponseKey::of(base.sha(), &["diff", &head.sha().to_string()]);
    let evaluated = graphql::evaluate_once(shared, key, || async {
        let permit = graphql::acquire(shared).await?;
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            Diff::between(&base, &head).to_json()
        });
        let json = task.await.map_err(|_| EvaluationFailure::Panic)?;
        let flight = shared.in_flight.begin(json.len());
        Ok(EvaluatedResponse::new(CachedResponse::new(200, json), Some(flight)))
    });
    match evaluated.await {
        Ok(evaluated) => evaluated.reply(JSON),
        Err(failure) => failure.reply(),
    }
}

fn of_file(base: &Bundle, head: &Bundle, kind: &str, path: &str) -> Reply {
    let mut body = Vec::new();
    let mut json = JavaScriptWriter(&mut body);
    let is_there = match kind {
        "datafile" => {
            let change = change(base.datafile(path), head.datafile(path));
            change.map(|change| DatafileChange { path: path.into(), change }.write(&mut json)).is_some()
        }
        "resourcefile" => {
            let change = change(base.resource(path), head.resource(path));
            change.map(|change| ResourceChange { path: path.into(), change }.write(&mut json)).is_some()
        }
        _ => return Reply::text(StatusCode::BAD_REQUEST, format!("unknown filetype {}", escape(kind))),
    };
    if is_there {
        Reply::new(StatusCode::OK, JSON, body)
    } else {
        Reply::text(StatusCode::NOT_FOUND, format!("{kind} not found"))
    }
}

/// Both versions of a file, even if they are equal.
fn change<T>(old: Option<&Arc<T>>, new: Option<&Arc<T>>) -> Option<Change<Arc<T>>> {
    match (old.cloned(), new.cloned()) {
        (Some(old), Some(new)) => Some(Change::Changed(old, new)),
        (Some(old), None) => Some(Change::Removed(old)),
        (None, Some(new)) => Some(Change::Added(new)),
        (None, None) => None,
    }
}

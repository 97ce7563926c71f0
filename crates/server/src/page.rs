//! The query page for browsers. The page loads no content from other origins.

use hyper::Method;

use crate::reply::Reply;

/// The HTML of the query page.
pub fn page() -> Reply {
    Reply::page("text/html; charset=utf-8", include_str!("page/query.html"))
}

/// A script or stylesheet of the query page.
pub fn part(name: &str, method: &Method, path: &str) -> Reply {
    match name {
        "query.js" => Reply::page("text/javascript; charset=utf-8", include_str!("page/query.js")),
        "query.css" => Reply::page("text/css; charset=utf-8", include_str!("page/query.css")),
        _ => Reply::no_such_path(method, path),
    }
}

//! Pages on this machine alone: a server on loopback for `explore` and `dedup --serve`.
//!
//! Whatever a browser can be made to send from another site is refused ([`guard`]), uploads go to disk and only so far
//! ([`upload`]), and what takes long is done by few at a time ([`workers`]); connections are few, too ([`limited`]).

mod guard;
mod limited;
pub(crate) mod upload;
pub(crate) mod workers;

use crate::failure::{Failure, Result};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use everbloom_lab::charts;
use std::future::Future;
use std::net::{Ipv4Addr, TcpListener};

/// Why a request is refused, in a line for people.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) problem: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, problem: impl ToString) -> Self {
        Refusal { status, problem: problem.to_string() }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Message(problem) | Failure::Gone(problem) | Failure::BrokenPromise(problem) => {
                Refusal::new(StatusCode::BAD_REQUEST, problem)
            }
            Failure::ClosedPipe => {
                Refusal::new(StatusCode::BAD_REQUEST, "what was sent ended too early; send it again")
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.problem }).to_string();
        (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// A file of a page, as it was built in.
pub(crate) fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// What pages are drawn with.
pub(crate) fn assets<S: Clone + Send + Sync + 'static>(css: &'static str, javascript: &'static str) -> Router<S> {
    Router::new()
        .route("/page.css", get(move || async move { asset(CSS, css) }))
        .route("/charts.css", get(|| async { asset(CSS, charts::STYLE) }))
        .route("/page.js", get(move || async move { asset(JAVASCRIPT, javascript) }))
}

pub(crate) const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// A JSON document.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<Response, Refusal> {
    let text = serde_json::to_string(document)
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no document: {error}")))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// A port on loopback that is ours.
pub(crate) struct Site {
    listener: TcpListener,
    port: u16,
}

impl Site {
    /// Takes a port, or a free one for 0.
    pub(crate) fn bind(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            Failure::io(format_args!("port {port}"), &error).with("leave the port out to take a free one")
        })?;
        let fail = |error: std::io::Error| Failure::io("the page", &error);
        listener.set_nonblocking(true).map_err(fail)?;
        let port = listener.local_addr().map_err(fail)?.port();
        Ok(Site { listener, port })
    }

    /// Where its pages are.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Serves pages until something else is done.
    pub(crate) fn serve(self, pages: Router, until: impl Future) -> Result<()> {
        let fail = |error: std::io::Error| Failure::io("the page", &error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let pages = pages.fallback(missing).layer(axum::middleware::from_fn(guard::guard));
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let serving = tokio::spawn(axum::serve(limited::Limited::new(listener), pages).into_future());
            until.await;
            serving.abort();
            Ok::<(), std::io::Error>(())
        });
        // Nobody waits for an answer any longer.
        runtime.shutdown_background();
        served.map_err(fail)
    }
}

async fn missing() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is no such page; the first one is at /")
}

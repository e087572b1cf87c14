//! What the page asks: an answer at once, the same by simulation, the curves, and what is in a file.

use super::settings::Settings;
use super::{Desk, MOST_SAMPLES, figures, learned};
use crate::commands::{info, plan::Asked};
use crate::failure::Failure;
use crate::progress::Screen;
use crate::report::thousands;
use crate::web::upload::{self, Received};
use crate::web::{CSS, HTML, JAVASCRIPT, Refusal, asset, json};
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use everbloom::filters::KINDS;
use everbloom::{Recommendation, Stream};
use everbloom_lab::charts;
use serde_json::{Value, json as object};
use std::sync::{Arc, PoisonError};

type Answer = Result<Response, Refusal>;
type Asks = Result<Query<Vec<(String, String)>>, QueryRejection>;
type At = State<Arc<Desk>>;

pub(super) fn pages(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/", get(page))
        .route(
            "/page.css",
            get(|| async { asset(CSS, concat!(include_str!("../../web/page.css"), include_str!("page.css"))) }),
        )
        .route("/charts.css", get(|| async { asset(CSS, charts::STYLE) }))
        .route("/page.js", get(|| async { asset(JAVASCRIPT, include_str!("page.js")) }))
        .route("/api/plan", get(at_once))
        .route("/api/simulate", get(simulate))
        .route("/api/curves", get(curves))
        .route("/api/filter", post(filter))
        .route("/api/sample", post(sample))
        .with_state(desk)
}

/// The page, with the kinds there are and the samples that are here.
async fn page(State(desk): At) -> Response {
    let option = |name: &str, more: &str| format!("<option value=\"{0}\"{more}>{0}</option>", escape(name));
    let kinds: String = KINDS.iter().map(|kind| option(kind.name, "")).collect();
    let samples = desk.samples.lock().unwrap_or_else(PoisonError::into_inner);
    let samples: String = samples.iter().map(|(name, _)| option(name, "")).collect();
    let first = if desk.first.is_some() { "sample" } else { "unknown" };
    let text = include_str!("page.html").replace("<!--kinds-->", &kinds).replace("<!--samples-->", &samples);
    ([(header::CONTENT_TYPE, HTML)], text.replace("<!--stream-->", first)).into_response()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn pairs(asks: Asks) -> Result<Vec<(String, String)>, Refusal> {
    asks.map(|Query(pairs)| pairs).map_err(|_| {
        let problem = "the address cannot be read; write it as ?memory=64KiB&fpr=1%25";
        Refusal::new(StatusCode::BAD_REQUEST, problem)
    })
}

/// What formulas tell.
async fn at_once(State(desk): At, asks: Asks) -> Answer {
    let pairs = pairs(asks)?;
    let own = Arc::clone(&desk);
    let found = desk.quick.run(None, move || {
        let asked = Settings(&pairs).asked(&own)?;
        let Some(answer) = asked.question.at_once().map_err(Failure::from)? else {
            return Ok(object!({ "told": null }));
        };
        let all: Vec<_> = std::iter::once(&answer.best).chain(&answer.runners_up).cloned().collect();
        let frontier = figures::frontier(&all, &answer.best, "formula")?;
        told(&asked, &answer, Some(frontier))
    });
    json(&found.await?)
}

/// What simulations tell.
async fn simulate(State(desk): At, asks: Asks) -> Answer {
    let pairs = pairs(asks)?;
    let (own, page) = (Arc::clone(&desk), Settings(&pairs).page().map(str::to_string));
    let found = desk.workers.run(page.as_deref(), move || {
        let asked = Settings(&pairs).asked(&own)?;
        let answer = answered(&own, &pairs, &asked)?;
        told(&asked, &answer, None)
    });
    json(&found.await?)
}

/// Whatever takes longest: all filters at this memory, and what more memory gains.
async fn curves(State(desk): At, asks: Asks) -> Answer {
    let pairs = pairs(asks)?;
    let (own, page) = (Arc::clone(&desk), Settings(&pairs).page().map(str::to_string));
    let found = desk.workers.run(page.as_deref(), move || {
        let asked = Settings(&pairs).asked(&own)?;
        let question = &asked.question;
        if question.window.is_some() {
            return Ok(object!({ "charts": [] }));
        }
        let mut all = Vec::new();
        if question.goal.memory_bits.is_some() {
            let tried = question.frontier().map_err(Failure::from)?;
            // What is recommended keeps the limits; where nothing does, nothing is.
            if let Ok(answer) = answered(&own, &pairs, &asked) {
                all.push(figures::frontier(&tried, &answer.best, "simulation")?);
            }
        }
        let curve = question.curve().map_err(Failure::from)?;
        all.extend(figures::by_memory(&curve, question.goal.cost.is_some())?);
        Ok(object!({ "charts": all }))
    });
    json(&found.await?)
}

/// Answers that are remembered.
const MOST_ANSWERS: usize = 8;

/// An answer, which may be known already.
fn answered(desk: &Desk, pairs: &[(String, String)], asked: &Asked) -> Result<Recommendation, Refusal> {
    let asks: Vec<_> = pairs.iter().filter(|(name, _)| name != "page").collect();
    let asks = format!("{asks:?}");
    let answers = || desk.answers.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, answer)) = answers().iter().find(|(known, _)| *known == asks) {
        return Ok(answer.clone());
    }
    let answer = asked.question.answer().map_err(Failure::from)?;
    let mut answers = answers();
    answers.truncate(MOST_ANSWERS - 1);
    answers.push_front((asks, answer.clone()));
    Ok(answer)
}

fn told(asked: &Asked, answer: &Recommendation, frontier: Option<figures::Chart>) -> Result<Value, Refusal> {
    let mut charts = figures::of_answer(answer, asked.question.goal.importance)?;
    charts.extend(frontier);
    charts.extend(figures::over_time(answer)?);
    let method = figures::method(&answer.best);
    Ok(object!({ "told": asked.told(answer), "method": method, "charts": charts }))
}

/// The name that a file was sent with.
async fn received(desk: &Desk, asks: Asks, request: Request) -> Result<Received, Refusal> {
    let pairs = pairs(asks)?;
    let name = pairs.iter().find(|(name, _)| name == "name").map_or("", |(_, value)| value);
    upload::receive(request, name, &desk.folder).await
}

/// What `info` shows of a filter file.
async fn filter(State(desk): At, asks: Asks, request: Request) -> Answer {
    let file = received(&desk, asks, request).await?;
    let found = desk.workers.run(None, move || {
        let read = info::Document::read(&file.path(), Some(upload::MOST_BYTES * 8), None);
        let (document, _) = read.map_err(|failure| file.refusal(failure))?;
        Ok(object!({ "name": file.name, "rows": document.rows(), "fill": document.fill }))
    });
    json(&found.await?)
}

/// Learns a stream from a file.
async fn sample(State(desk): At, asks: Asks, request: Request) -> Answer {
    let file = received(&desk, asks, request).await?;
    let own = Arc::clone(&desk);
    let found = desk.workers.run(None, move || {
        let stream = learned(&file.path(), &own.keys, Screen::Quiet).map_err(|failure| file.refusal(failure))?;
        let counts = described(&stream);
        let mut samples = own.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.retain(|(name, _)| *name != file.name);
        if samples.len() >= MOST_SAMPLES {
            samples.remove(0);
        }
        samples.push((file.name.clone(), stream));
        // A sample may have come in the place of another.
        own.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(object!({ "name": file.name, "described": counts }))
    });
    json(&found.await?)
}

fn described(stream: &Stream) -> String {
    format!("{} lines, {} of them different", thousands(stream.arrivals()), thousands(stream.distinct()))
}

//! What the page asks: an answer at a glance, the same by simulation, the curves, and what is in a file.

use super::settings::Settings;
use super::{Desk, MOST_SAMPLES, figures, learned};
use crate::args::KeyArgs;
use crate::commands::info;
use crate::commands::plan::{Asked, Sampled};
use crate::failure::Failure;
use crate::progress::Screen;
use crate::report::thousands;
use crate::web::upload::{self, Received};
use crate::web::{HTML, Refusal, assets, json};
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use everbloom_all::KINDS;
use everbloom_forecast::{Question, Recommendation, Stream};
use serde_json::{Value, json as object};
use std::sync::{Arc, PoisonError};

type Answer = Result<Response, Refusal>;
type Asks = Result<Query<Vec<(String, String)>>, QueryRejection>;
type At = State<Arc<Desk>>;

pub(super) fn pages(desk: Arc<Desk>) -> Router {
    let css = concat!(include_str!("../../web/page.css"), include_str!("page.css"));
    assets(css, include_str!("page.js"))
        .route("/", get(page))
        .route("/api/glance", get(glance))
        .route("/api/around", get(around_at_a_glance))
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
    let samples: String = samples.iter().map(|sample| option(&sample.name, "")).collect();
    let first = if desk.first.is_some() { "sample" } else { "unknown" };
    let text = include_str!("page.html").replace("<!--kinds-->", &kinds).replace("<!--samples-->", &samples);
    let keys = escape(&usual_keys(&desk.keys).to_string());
    let text = text.replace("<!--stream-->", first).replace("<!--keys-->", &keys);
    ([(header::CONTENT_TYPE, HTML)], text).into_response()
}

/// Where keys are by the command line, as the page's controls have it.
fn usual_keys(keys: &KeyArgs) -> Value {
    let form = match (keys.json, keys.csv, &keys.key) {
        (true, ..) => "json",
        (_, true, _) => "csv",
        (.., Some(_)) => "fields",
        _ => "lines",
    };
    let delimiter = keys.delimiter.map(|byte| if byte == b'\t' { "\\t".into() } else { char::from(byte).to_string() });
    object!({ "form": form, "key": keys.key, "delimiter": delimiter, "header": keys.header })
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

/// Lets a worker answer a question; at a glance those do who do nothing else.
async fn work(
    desk: Arc<Desk>,
    asks: Asks,
    quick: bool,
    work: impl FnOnce(&Desk, &[(String, String)], &Asked) -> Result<Value, Refusal> + Send + 'static,
) -> Answer {
    let pairs = pairs(asks)?;
    let (own, page) = (Arc::clone(&desk), Settings(&pairs).page().map(str::to_string));
    let workers = if quick { &desk.quick } else { &desk.workers };
    let found = workers.run(page.as_deref(), move |stopped| {
        let mut asked = Settings(&pairs).asked(&own)?;
        (asked.question.quick, asked.question.cancel) = (quick, Some(stopped));
        work(&own, &pairs, &asked)
    });
    json(&found.await?)
}

/// The recommended filter and what to expect of it.
async fn recommended(desk: Arc<Desk>, asks: Asks, quick: bool) -> Answer {
    work(desk, asks, quick, move |desk, pairs, asked| {
        let answer = answered(desk, pairs, asked)?;
        let charts = figures::of_answer(&answer, &asked.question, quick)?;
        told(asked, &answer, charts, quick)
    })
    .await
}

/// What can be said at once: by formula, or at a first glance.
async fn glance(State(desk): At, asks: Asks) -> Answer {
    recommended(desk, asks, true).await
}

/// What simulations tell.
async fn simulate(State(desk): At, asks: Asks) -> Answer {
    recommended(desk, asks, false).await
}

/// All filters at this memory and what other memories bring, at a glance, for whoever has that answer already.
async fn around_at_a_glance(State(desk): At, asks: Asks) -> Answer {
    work(desk, asks, true, |desk, pairs, asked| {
        let answer = answered(desk, pairs, asked)?;
        Ok(object!({ "charts": around(&asked.question, Some(&answer), figures::GLANCE)? }))
    })
    .await
}

/// The charts by simulation, which takes longest.
async fn curves(State(desk): At, asks: Asks) -> Answer {
    work(desk, asks, false, |desk, pairs, asked| {
        // What is recommended keeps the limits; where nothing does, nothing is.
        let answer = answered(desk, pairs, asked).ok();
        Ok(object!({ "charts": around(&asked.question, answer.as_ref(), figures::SIMULATION)? }))
    })
    .await
}

/// What other filters of this memory do, and what the best of other memories do.
fn around(question: &Question, answer: Option<&Recommendation>, how: &str) -> Result<Vec<figures::Chart>, Refusal> {
    let mut all = Vec::new();
    if question.window.is_some() {
        return Ok(all);
    }
    if let (Some(_), Some(answer)) = (question.goal.most_memory_bits(), answer) {
        let tried = question.frontier().map_err(Failure::from)?;
        all.push(figures::frontier(&tried, &answer.best, how)?);
    }
    let curve = match answer.and_then(|answer| answer.curve.clone()) {
        Some(curve) => curve,
        None => question.curve().map_err(Failure::from)?,
    };
    all.extend(figures::by_memory(&curve, question.cost.is_some(), how)?);
    Ok(all)
}

/// Answers that are remembered.
const MOST_ANSWERS: usize = 8;

/// An answer, which may be known already.
fn answered(desk: &Desk, pairs: &[(String, String)], asked: &Asked) -> Result<Recommendation, Refusal> {
    let asks: Vec<_> = pairs.iter().filter(|(name, _)| name != "page").collect();
    let asks = format!("{} {asks:?}", asked.question.quick);
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

fn told(
    asked: &Asked,
    answer: &Recommendation,
    charts: Vec<figures::Chart>,
    is_glance: bool,
) -> Result<Value, Refusal> {
    let how = figures::how(&answer.best, is_glance);
    Ok(object!({ "told": asked.told(answer), "how": how, "charts": charts }))
}

/// A file that was sent, by the name it was sent with.
async fn received(desk: &Desk, pairs: &[(String, String)], request: Request) -> Result<Received, Refusal> {
    let name = pairs.iter().find(|(name, _)| name == "name").map_or("", |(_, value)| value);
    upload::receive(request, name, &desk.folder).await
}

/// What `info` shows of a filter file.
async fn filter(State(desk): At, asks: Asks, request: Request) -> Answer {
    let file = received(&desk, &pairs(asks)?, request).await?;
    let found = desk.workers.run(None, move |_| {
        let read = info::Document::read(&file.path(), Some(upload::MOST_BYTES * 8), None);
        let (document, _) = read.map_err(|failure| file.refusal(failure))?;
        Ok(object!({ "name": file.name, "rows": document.rows(), "fill": document.fill }))
    });
    json(&found.await?)
}

/// Learns a stream from a file.
async fn sample(State(desk): At, asks: Asks, request: Request) -> Answer {
    let pairs = pairs(asks)?;
    // Before a long file has come.
    let keys = Settings(&pairs).keys(&desk.keys)?;
    let file = received(&desk, &pairs, request).await?;
    let own = Arc::clone(&desk);
    let found = desk.workers.run(None, move |_| {
        let stream = learned(&file.path(), &keys, Screen::Quiet).map_err(|failure| file.refusal(failure))?;
        let described = described(&stream, &keys);
        let mut samples = own.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.retain(|sample| sample.name != file.name);
        if samples.len() >= MOST_SAMPLES {
            samples.remove(0);
        }
        samples.push(Sampled { name: file.name.clone(), stream, keys });
        // A sample may have come in the place of another.
        own.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(object!({ "name": file.name, "described": described }))
    });
    json(&found.await?)
}

fn described(stream: &Stream, keys: &KeyArgs) -> String {
    let (lines, different) = (thousands(stream.arrivals()), thousands(stream.distinct()));
    match &keys.key {
        Some(key) => format!("{lines} lines, {different} different keys in {key}"),
        None => format!("{lines} lines, {different} of them different"),
    }
}

//! What takes long, done by few at a time. A page that asks anew lets go of what it asked before, be it under way or not.

use super::Refusal;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Requests that may wait.
const MOST_WAITING: usize = 32;
/// Pages whose last request is known.
const MOST_PAGES: usize = 256;
/// The longest name of a page.
const LONGEST_NAME: usize = 64;

/// A few workers, and a queue before them.
pub(crate) struct Workers {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    newest: Mutex<Newest>,
}

#[derive(Default)]
struct Newest {
    last: u64,
    of_page: HashMap<String, (u64, Arc<AtomicBool>)>,
}

/// Tells who works that nobody waits for it any longer, when it is dropped.
struct Asker(Arc<AtomicBool>);

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One of those who wait, until it is dropped.
struct Waiting<'w>(&'w AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Workers { free: Arc::new(Semaphore::new(cores.min(4))), waiting: AtomicUsize::new(0), newest: Mutex::default() }
    }

    /// Does some work when its turn comes. Of the requests of one page the newest is done and the others are told so; what is
    /// under way is told by its flag that nobody wants it any longer, also when whoever asked has gone.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        page: Option<&str>,
        work: impl FnOnce(Arc<AtomicBool>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let asker = Asker(Arc::default());
        let ticket = page.map(|page| self.ticket(page, &asker.0)).transpose()?;
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let problem = "too many questions at once; ask again in a moment";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem));
        }
        let waiting = Waiting(&self.waiting);
        let broken = |what: &str| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, what);
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| broken("the page is closing"))?;
        drop(waiting);
        if let (Some(page), Some(ticket)) = (page, ticket)
            && !self.is_newest(page, ticket)
        {
            return Err(outdated());
        }
        let stopped = Arc::clone(&asker.0);
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work is done, also if nobody waits for it any longer.
            let _permit = permit;
            work(stopped)
        });
        let done = done.await;
        let found =
            done.map_err(|_| broken("this question met a defect of everbloom; please report it with the address"))?;
        // What was broken off has nothing to say.
        if found.is_err() && asker.0.load(Ordering::Relaxed) { Err(outdated()) } else { found }
    }

    fn ticket(&self, page: &str, stopped: &Arc<AtomicBool>) -> Result<u64, Refusal> {
        if page.len() > LONGEST_NAME {
            let problem = format!("a page's name has at most {LONGEST_NAME} letters; load the page again");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, problem));
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.last += 1;
        let ticket = newest.last;
        if newest.of_page.len() >= MOST_PAGES && !newest.of_page.contains_key(page) {
            // Who is forgotten counts as the newest.
            newest.of_page.clear();
        }
        if let Some((_, before)) = newest.of_page.insert(page.to_string(), (ticket, Arc::clone(stopped))) {
            before.store(true, Ordering::Relaxed);
        }
        Ok(ticket)
    }

    fn is_newest(&self, page: &str, ticket: u64) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.of_page.get(page).is_none_or(|newest| newest.0 <= ticket)
    }
}

fn outdated() -> Refusal {
    Refusal::new(StatusCode::CONFLICT, "the page has asked something newer")
}

//! What takes long, done by few at a time: a page that is asked anew before its turn comes lets go of what it asked before.

use super::Refusal;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    of_page: HashMap<String, u64>,
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

    /// Does some work when its turn comes. Of requests that wait for one page, the newest is done and the others are told so.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        page: Option<&str>,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let ticket = page.map(|page| self.ticket(page)).transpose()?;
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
            return Err(Refusal::new(StatusCode::CONFLICT, "the page has asked something newer"));
        }
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work is done, also if nobody waits for it any longer.
            let _permit = permit;
            work()
        });
        done.await.map_err(|_| broken("this question met a defect of everbloom; please report it with the address"))?
    }

    fn ticket(&self, page: &str) -> Result<u64, Refusal> {
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
        newest.of_page.insert(page.to_string(), ticket);
        Ok(ticket)
    }

    fn is_newest(&self, page: &str, ticket: u64) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.of_page.get(page).is_none_or(|newest| *newest <= ticket)
    }
}

//! `everbloom explore`: a page to look at errors before a filter is chosen.

mod api;
mod figures;
mod settings;

use crate::args::{ImportanceArgs, KeyArgs, OnError, quantity};
use crate::commands::learn;
use crate::commands::plan::Sampled;
use crate::failure::{Ending, Failure, Result};
use crate::output;
use crate::progress::Screen;
use crate::record::Layout;
use crate::report::words;
use crate::web::Site;
use crate::web::workers::Workers;
use clap::Args;
use everbloom_forecast::{Recommendation, Stream};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Opens a page on this machine that shows which errors to expect, before you choose a filter.
///
/// Memory, rate, keys and what the stream is like on the left; on the right the filter to take, its errors by lag and by
/// importance, all filters at this memory, what more memory gains, and the lines to paste. A sample of your stream makes
/// the forecasts those of your own keys. Drop a filter file onto the page to see what it holds.
///
/// The page is for this machine alone, needs no network, and ends with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  A page for streams that you describe:
    everbloom explore --open
  For a stream like this one, by the first field:
    everbloom explore visits.tsv -k 1")]
pub(crate) struct Explore {
    /// A sample of your stream, .gz, .zst, .xz, .bz2 and .lz4 too
    sample: Option<PathBuf>,
    /// The port to take [default: a free one]
    #[arg(long, value_name = "NUMBER", value_parser = quantity::port)]
    port: Option<u16>,
    /// Start the browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    keys: KeyArgs,
}

/// Samples that are remembered: what was dropped first goes first.
const MOST_SAMPLES: usize = 4;

/// What all requests share.
pub(super) struct Desk {
    keys: KeyArgs,
    /// Samples, the newest last.
    samples: Mutex<Vec<Sampled>>,
    /// The sample of the command line.
    first: Option<String>,
    /// Those who want an answer at once do not wait behind simulations.
    quick: Workers,
    workers: Workers,
    /// The last answers by what was asked: the curves need them once more.
    answers: Mutex<VecDeque<(String, Recommendation)>>,
    /// Where files that are sent wait to be read.
    folder: PathBuf,
}

impl Explore {
    pub(crate) fn run(self) -> Result<Ending> {
        let site = Site::bind(self.port.unwrap_or(0))?;
        let mut samples = Vec::new();
        if let Some(path) = &self.sample {
            let stream = learned(path, &self.keys, Screen::Free)?;
            samples.push(Sampled { name: path.display().to_string(), stream, keys: self.keys.clone() });
        }
        let mut private = tempfile::Builder::new();
        #[cfg(unix)]
        private.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = private.tempdir().map_err(|error| Failure::io("a temporary folder", &error))?;
        let first = samples.first().map(|sample| sample.name.clone());
        let desk = Desk {
            keys: self.keys,
            samples: Mutex::new(samples),
            first,
            quick: Workers::new(),
            workers: Workers::new(),
            answers: Mutex::default(),
            folder: folder.path().into(),
        };
        let stopped = stopped()?;
        let address = site.address();
        output::print(&format!("{address}\n"))?;
        if self.open {
            open(&address);
        }
        site.serve(api::pages(Arc::new(desk)), stopped)?;
        // Somebody may still be reading there, and is not waited for.
        drop(folder);
        Ok(Ending::Done)
    }
}

/// Learns a stream from a file.
pub(super) fn learned(path: &Path, keys: &KeyArgs, screen: Screen) -> Result<Stream> {
    let layout = Layout::new(keys, &ImportanceArgs::default())?;
    let (sample, ..) = learn::from_files(&[path.to_path_buf()], layout, keys, OnError::Fail, None, screen)?;
    sample.finish().map_err(|error| Failure::at(path, error))
}

/// Comes when a signal does.
fn stopped() -> Result<impl Future> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|error| Failure::io("signals", &error))?;
    std::thread::spawn(move || {
        signals.forever().next();
        let _ = tell.send(());
    });
    Ok(told)
}

/// Starts the browser that the desktop names; without one the address on the screen has to do.
fn open(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = || Stdio::null();
    let started = Command::new(program).arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    match started {
        // Whoever waits for a browser to end waits long.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(_) => words::note(&format!("{program} is not there to start a browser; open {address} yourself")),
    }
}

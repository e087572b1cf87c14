//! Calls that contradict themselves, or in which one file would destroy another.

use super::Dedup;
use crate::args;
#[cfg(feature = "web")]
use crate::args::quantity;
use crate::failure::{Failure, Result};
use crate::output;
#[cfg(feature = "web")]
use crate::platform;
use std::path::PathBuf;

impl Dedup {
    /// Refuses calls that contradict themselves, or in which one file would destroy another.
    pub(super) fn refuse_clashes(&self) -> Result<()> {
        if self.time.is_some() && self.window_time().is_none() {
            return Err(Failure::new("--time needs a window of time; write --window 24h, or leave --time out"));
        }
        if self.checkpoint.is_some() && self.state.is_none() {
            return Err(Failure::new("--checkpoint saves a state, and none is named; add --state FILE"));
        }
        #[cfg(feature = "web")]
        self.refuse_port_as_input()?;
        self.refuse_with_servers()?;
        self.refuse_dashes()?;
        let outputs: Vec<&PathBuf> =
            [&self.output, &self.duplicates, &self.state, &self.stats].into_iter().flatten().collect();
        outputs.iter().try_for_each(|output| output::check(output, &self.files))?;
        // Others are locked as long as they are written; these take the place of what is there.
        let replaced = [self.output.as_ref().filter(|_| self.counts), self.stats.as_ref()];
        replaced.into_iter().flatten().try_for_each(|output| output::refuse_in_use(output))?;
        let tables = self.cost.tables();
        outputs.iter().try_for_each(|output| output::check_beside(output, &tables))?;
        if self.output.is_none() {
            output::refuse_stdout(&self.files, &outputs)?;
        }
        output::refuse_same(&outputs)
    }

    /// Refuses `--serve 8080`, where the port is taken for an input.
    #[cfg(feature = "web")]
    fn refuse_port_as_input(&self) -> Result<()> {
        let is_port = |path: &&PathBuf| {
            let is_missing = matches!(platform::stat(path), Ok(None));
            is_missing && path.to_str().is_some_and(|text| quantity::port(text).is_ok())
        };
        // Without one, any port that is free.
        match self.files.iter().find(is_port).filter(|_| self.serve == Some(0)) {
            Some(port) => {
                let port = port.display();
                Err(Failure::new(format!("there is no file '{port}'; if it is the page's port, write --serve={port}")))
            }
            None => Ok(()),
        }
    }

    /// Refuses what cannot be kept on servers.
    fn refuse_with_servers(&self) -> Result<()> {
        self.servers.check(self.state.is_some())?;
        if self.servers.redis.is_none() {
            return Ok(());
        }
        if self.counts {
            return Err(Failure::new("--counts counts on one machine; leave --redis out"));
        }
        if self.audit.is_some() {
            let problem = "--audit follows keys from their first arrival, which may have been somebody else's";
            return Err(Failure::new(format!("{problem}; leave --audit out, or --redis")));
        }
        if self.time.is_some() {
            let problem = "--time would turn one window by the lines of many machines, none of which knows how far the others are";
            let remedy = "leave --time out, and the window counts when lines reach the servers, or leave --redis out";
            return Err(Failure::new(format!("{problem}; {remedy}")));
        }
        args::refuse_split_window(self.window, self.servers.shards)?;
        if self.state.is_some() && !self.reads_only_files()? {
            let problem = "with --redis a state needs files, of which a batch that was on its way can be read again";
            let remedy = "write the lines to a file and follow it with -F, or leave --state out";
            return Err(Failure::new(format!("{problem}; {remedy}")));
        }
        Ok(())
    }

    /// Refuses `-` where stdout is taken.
    fn refuse_dashes(&self) -> Result<()> {
        let named = |path: &Option<PathBuf>| path.as_deref().is_some_and(output::is_dash);
        if named(&self.state) {
            return Err(Failure::new("--state - would be stdout, which cannot be read again; name a file"));
        }
        let is_taken = self.output.is_none();
        for (option, path) in [("--duplicates", &self.duplicates), ("--stats", &self.stats)] {
            let Some(path) = path.as_deref().filter(|_| is_taken) else { continue };
            let why = if self.count { "where the totals go" } else { "where the new lines go" };
            let remedy =
                if self.count { "name a file" } else { "send those to a file with -o FILE, or name another file" };
            output::refuse_dash(path, option, why, remedy)?;
        }
        if named(&self.duplicates) && self.state.is_some() {
            return Err(Failure::new(
                "--duplicates - cannot be gone on with by a later run; name a file, or leave --state out",
            ));
        }
        match named(&self.duplicates) && named(&self.stats) {
            true => {
                Err(Failure::new("--duplicates - and --stats - cannot both be stdout; name a file for one of them"))
            }
            false => Ok(()),
        }
    }
}

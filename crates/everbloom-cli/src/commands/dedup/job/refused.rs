//! Calls that contradict themselves, or in which one file would destroy another.

use super::{AuditSize, Job, Mode};
use crate::args;
use crate::args::quantity;
use crate::failure::{Failure, Result};
use crate::output;
use crate::platform;
use std::path::PathBuf;

impl Job {
    /// Refuses calls that contradict themselves, or in which one file would destroy another.
    pub(crate) fn refuse_clashes(&self) -> Result<()> {
        if self.rules.time.is_some() && self.rules.window_time().is_none() {
            return Err(Failure::new("--time needs a window of time; write --window 24h, or leave --time out"));
        }
        if self.checkpoint.is_some() && self.state.is_none() {
            return Err(Failure::new("--checkpoint saves a state, and none is named; add --state FILE"));
        }
        #[cfg(feature = "web")]
        self.refuse_port_as_input()?;
        self.refuse_size_as_input()?;
        self.refuse_with_servers()?;
        self.refuse_dashes()?;
        let outputs: Vec<&PathBuf> =
            [&self.output, &self.duplicates, &self.state, &self.stats].into_iter().flatten().collect();
        outputs.iter().try_for_each(|output| output::check(output, &self.files))?;
        // Others are locked as long as they are written; these take the place of what is there.
        let replaced = [self.output.as_ref().filter(|_| self.counts), self.stats.as_ref()];
        replaced.into_iter().flatten().try_for_each(|output| output::refuse_in_use(output))?;
        let tables = self.rules.cost.tables();
        outputs.iter().try_for_each(|output| output::check_beside(output, &tables))?;
        if self.output.is_none() {
            output::refuse_stdout(&self.files, &outputs)?;
        }
        output::refuse_same(&outputs)
    }

    /// Refuses `--audit 1MiB`, where the size is taken for an input.
    fn refuse_size_as_input(&self) -> Result<()> {
        let size = self.missing_file(|text| quantity::size_in_bits(text).is_ok());
        match size.filter(|_| self.rules.audit == Some(AuditSize::Usual)) {
            Some(size) => {
                Err(Failure::new(format!("there is no file '{size}'; if it is the audit's size, write --audit={size}")))
            }
            None => Ok(()),
        }
    }

    /// An input that is not there, and reads as something else.
    fn missing_file(&self, reads: impl Fn(&str) -> bool) -> Option<&str> {
        let texts = self.files.iter().filter_map(|path| path.to_str());
        texts.filter(|text| reads(text)).find(|text| matches!(platform::stat(text.as_ref()), Ok(None)))
    }

    /// Refuses `--serve 8080`, where the port is taken for an input.
    #[cfg(feature = "web")]
    fn refuse_port_as_input(&self) -> Result<()> {
        // Without one, any port that is free.
        match self.missing_file(|text| quantity::port(text).is_ok()).filter(|_| self.serve == Some(0)) {
            Some(port) => {
                Err(Failure::new(format!("there is no file '{port}'; if it is the page's port, write --serve={port}")))
            }
            None => Ok(()),
        }
    }

    /// Refuses half of what servers need; a state may know the name.
    pub(crate) fn check_servers(&self, has_state: bool) -> Result<()> {
        let others = [
            ("--name", self.rules.name.is_some()),
            ("--shards", self.rules.shards.is_some()),
            ("--replicas", self.servers.replicas.is_some()),
            ("--patience", self.servers.patience.is_some()),
        ];
        let needless = others.into_iter().find(|(_, is_given)| *is_given).filter(|_| self.servers.redis.is_none());
        match needless {
            _ if has_state => Ok(()),
            Some((option, _)) => {
                Err(Failure::new(format!("{option} is for a filter on servers; add --redis redis://HOST:PORT")))
            }
            None if self.servers.redis.is_some() && self.rules.name.is_none() => {
                Err(Failure::new("--redis needs the filter's name; add --name NAME"))
            }
            None => Ok(()),
        }
    }

    /// Refuses what cannot be kept on servers.
    fn refuse_with_servers(&self) -> Result<()> {
        self.check_servers(self.state.is_some())?;
        if self.servers.redis.is_none() {
            return Ok(());
        }
        if self.counts {
            return Err(Failure::new("--counts counts on one machine; leave --redis out"));
        }
        if self.rules.audit.is_some() {
            let problem = "--audit follows keys from their first arrival, which may have been somebody else's";
            return Err(Failure::new(format!("{problem}; leave --audit out, or --redis")));
        }
        if self.rules.time.is_some() {
            let problem = "--time would turn one window by the lines of many machines, none of which knows how far the others are";
            let remedy = "leave --time out, and the window counts when lines reach the servers, or leave --redis out";
            return Err(Failure::new(format!("{problem}; {remedy}")));
        }
        args::refuse_split_window(self.rules.window, self.rules.shards)?;
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
            let why = if self.mode == Mode::Count { "where the totals go" } else { "where the new lines go" };
            let remedy = if self.mode == Mode::Count {
                "name a file"
            } else {
                "send those to a file with -o FILE, or name another file"
            };
            output::refuse_dash(path, option, why, remedy)?;
        }
        if named(&self.duplicates) && self.state.is_some() {
            return Err(Failure::new(
                "--duplicates - cannot be resumed by a later run; name a file, or leave --state out",
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

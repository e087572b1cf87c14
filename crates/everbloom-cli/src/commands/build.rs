//! `everbloom build`: keys to a filter file.

use crate::args::{GoalArgs, ImportanceArgs, KeyArgs, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::input::BlockReader;
use crate::record::{Layout, Part, RecordReader, all_hashes, check_faults, for_each_batch};
use crate::{filter_file, output, scheme_file};
use clap::Args;
use everbloom::internal::{codec, forecast};
use everbloom::{AnyFilter, Error, Filter, Goal, KeyHash, Plan, querylog};
use std::path::{Path, PathBuf};

/// Builds a filter from the lines of files or stdin.
///
/// Without --expect the keys are counted first: their hashes are kept until the end of the input, 16
/// bytes each.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// Key files, .gz and .zst too [default: stdin]
    files: Vec<PathBuf>,
    /// The filter file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Make the file small, for sending: with --fpr a sparser filter is planned, which takes up to 16
    /// times the memory (or --memory) when unpacked, but fewer bytes at the same rate
    #[arg(long)]
    compress: bool,
    /// Make the file no larger than this, such as 1MiB, and the rate as low as that allows: implies
    /// --compress, and takes up to 16 times the memory of a usual filter of that rate when unpacked
    #[arg(long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    transmit: Option<u64>,
    /// Build the filter that a scheme made by `everbloom tune` describes, with its bits per key (or --memory)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["filter", "fpr", "expect", "seed", "transmit"])]
    scheme: Option<PathBuf>,
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    keys: KeyArgs,
}

impl Build {
    pub(crate) fn run(self) -> Result<Ending> {
        output::refuse_overwriting(&self.output, &self.files)?;
        self.check_transmit()?;
        if let Some(path) = &self.scheme {
            let filter = self.with_scheme(path)?;
            filter_file::save(&self.output, filter.as_ref(), self.compress)?;
            return Ok(Ending::Done);
        }
        let layout = Layout::new(&self.keys, &ImportanceArgs::default())?;
        let mut reader = RecordReader::new(BlockReader::new(self.files.clone(), self.keys.ending()), layout)?;
        let filter = match self.plan_without_counting()? {
            Some(plan) => self.insert_as_they_come(&mut reader, &plan)?,
            None => self.count_then_insert(&mut reader)?,
        };
        match self.budget() {
            Some(bytes) => self.save_within(bytes, filter.as_ref())?,
            None => filter_file::save(&self.output, filter.as_ref(), self.compress)?,
        }
        Ok(Ending::Done)
    }

    /// The bytes that the file may have, if they are bounded.
    fn budget(&self) -> Option<u64> {
        self.transmit.map(|bits| bits / 8)
    }

    /// A budget of bytes decides what else one could ask for.
    fn check_transmit(&self) -> Result<()> {
        let wanted = &self.goal.wanted;
        if self.transmit.is_some() && wanted.fpr.is_some() {
            return Err(Failure::new(
                "--transmit and --fpr cannot be combined: the size of the file decides the rate; leave --fpr out, or write \
                 --fpr RATE --compress for the smallest file at that rate",
            ));
        }
        if self.transmit.is_some() && wanted.memory.is_some() {
            return Err(Failure::new(
                "--transmit and --memory cannot be combined: the size of the file decides the memory; leave --memory out, or \
                 write --fpr RATE --compress --memory SIZE for the smallest file within that memory",
            ));
        }
        Ok(())
    }

    /// Saves the filter, unless it came out larger than planned: more keys came than were expected, or it is one
    /// of the millions that the plan's margin does not cover.
    fn save_within(&self, budget: u64, filter: &dyn Filter) -> Result<()> {
        let bytes = codec::encode_compressed(filter);
        if bytes.len() as u64 > budget {
            let remedy = match self.goal.wanted.expect {
                Some(items) => format!("there may be more than the {items} keys of --expect; leave it out"),
                None => "take another --seed".into(),
            };
            let length = bytes.len();
            return Err(Failure::new(format!(
                "the file would take {length} bytes, more than the {budget} of --transmit; {remedy}, or write --transmit {length}"
            )));
        }
        output::replace(&self.output, |out| out.write_all(&bytes))
    }

    /// The filter that a scheme asks for; its keys are counted first.
    fn with_scheme(&self, path: &Path) -> Result<AnyFilter> {
        output::refuse_overwriting(&self.output, &[path.to_path_buf()])?;
        let scheme = scheme_file::load(path)?;
        let hashes = all_hashes(self.files.clone(), &self.keys, scheme.hashing())?;
        if hashes.is_empty() {
            return Err(Failure::new("there are no keys in the input; name files that have some"));
        }
        let members = distinct(&hashes);
        let bits = scheme.bits_per_key() * members.len() as f64;
        Ok(querylog::build(&scheme, &members, self.goal.wanted.memory.unwrap_or(bits.ceil() as u64))?)
    }

    fn wanted(&self) -> Goal {
        let mut goal = self.goal.goal().never_forget();
        match self.budget() {
            Some(bytes) => {
                goal.target_fpr = None;
                goal.transmitted_bytes(bytes)
            }
            None if self.compress => goal.compressed(),
            None => goal,
        }
    }

    /// The plan, if it does not depend on how many keys there are.
    fn plan_without_counting(&self) -> Result<Option<Plan>> {
        let spec = &self.goal.filter;
        if self.goal.wanted.expect.is_some() {
            return Ok(Some(forecast::plan(spec, &self.wanted())?));
        }
        // A spec that can be planned from nothing says everything itself. Any other is tried with one
        // key, so that what is wrong with it is said before a long input is read.
        let mut nothing = Goal::new().hashing(self.goal.hashing());
        nothing.transmitted_bytes = self.budget();
        if forecast::plan(spec, &nothing).is_ok() {
            return Ok(Some(forecast::plan(spec, &self.wanted())?));
        }
        match forecast::plan(spec, &self.wanted().expected_items(1)) {
            // Whether the memory suffices, and which would, is only known with the number of keys.
            Err(error) if !matches!(error, Error::Infeasible { .. } | Error::Parameter { name: "memory_bits", .. }) => {
                Err(error.into())
            }
            _ => Ok(None),
        }
    }

    fn insert_as_they_come(&self, reader: &mut RecordReader, plan: &Plan) -> Result<AnyFilter> {
        let mut filter = plan.build()?;
        self.for_each_key_batch(reader, |hashes| insert(&mut filter, hashes))?;
        Ok(filter)
    }

    fn count_then_insert(&self, reader: &mut RecordReader) -> Result<AnyFilter> {
        let mut hashes: Vec<KeyHash> = Vec::new();
        self.for_each_key_batch(reader, |batch| {
            let refused = |_| Failure::from(Error::OutOfMemory { bytes: size_of_val(batch) as u64 });
            hashes.try_reserve(batch.len()).map_err(refused)?;
            hashes.extend_from_slice(batch);
            Ok(())
        })?;
        if hashes.is_empty() {
            return Err(Failure::new("there are no keys in the input; say how many to expect with --expect"));
        }
        // In the order they came, repeats and all: some filters count them, some forget the oldest.
        let goal = self.wanted().expected_items(distinct(&hashes).len() as u64);
        let mut filter = forecast::plan(&self.goal.filter, &goal)?.build()?;
        insert(&mut filter, &hashes)?;
        Ok(filter)
    }

    fn for_each_key_batch(
        &self,
        reader: &mut RecordReader,
        mut act: impl FnMut(&[KeyHash]) -> Result<()>,
    ) -> Result<()> {
        let mut records = 0;
        for_each_batch(reader, &self.goal.hashing(), |part| {
            if let Part::Records(_, batch) = part {
                check_faults(&self.keys, batch, records)?;
                records += batch.len();
                act(batch.hashes())?;
            }
            Ok(())
        })
    }
}

/// Keys whose room is asked for together.
const TOGETHER: usize = 1 << 16;

/// Inserts keys; memory that is refused is an error.
fn insert(filter: &mut AnyFilter, hashes: &[KeyHash]) -> Result<()> {
    for hashes in hashes.chunks(TOGETHER) {
        filter.make_room(hashes)?;
        filter.insert_hashes(hashes);
    }
    Ok(())
}

fn distinct(hashes: &[KeyHash]) -> Vec<KeyHash> {
    let mut sorted = hashes.to_vec();
    sorted.sort_unstable_by_key(|hash| (hash.high, hash.low));
    sorted.dedup();
    sorted
}

//! `everbloom build`: keys to a filter file.

use crate::args::{GoalArgs, ImportanceArgs, KeyArgs, OnError, PromiseArgs, quantity, with_exit_codes};
use crate::failure::{Ending, Failure, Result};
use crate::filter_file::FilterFile;
use crate::input::BlockReader;
use crate::progress::{Screen, Working};
use crate::record::{Batch, FaultWatch, Layout, Part, RecordReader, all_hashes, for_each_batch};
use crate::report::thousands;
use crate::report::words::{self, KEYS};
use crate::{filter_file, output, scheme_file};
use clap::Args;
use everbloom::kind::{Standing, Watch};
use everbloom::kind::{standing, watch};
use everbloom::{
    AnyFilter, Error, Filter, Goal, Hashing, Importances, KeyHash, Plan, Verdict, codec, filters, planning,
};
use everbloom_all::KINDS;
use everbloom_tune::querylog;
use std::path::{Path, PathBuf};

/// Builds a filter from the lines of files or stdin.
///
/// Without --expect, and where keys can be removed again (--filter counting), the keys are counted first: their hashes are
/// kept until the end of the input, 16 bytes each.
#[derive(Debug, Args)]
#[command(after_help = with_exit_codes("\
Examples:
  A filter of the lines of a file, wrong for one other line in a thousand:
    everbloom build members.txt -o members.ebf
  Of a column, and at most 1 % wrong:
    everbloom build --csv -H -k email --fpr 1% people.csv -o people.ebf
  As small as can be, to send:
    everbloom build members.txt --fpr 1% --compress -o - > members.ebf
  From which keys can be removed:
    everbloom build members.txt --filter counting -o members.ebf"))]
pub(crate) struct Build {
    /// Key files, .gz, .zst, .xz, .bz2 and .lz4 too [default: stdin]
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
    /// Make the bits to send of a filter with counters, instead of reading keys: it answers alike, in a quarter of the size
    ///
    /// For filters that keys can be removed from: counters at home, bits for others. --compress and --transmit bound the
    /// file as usual, --memory what a compressed filter may unpack to
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["files", "scheme", "filter", "fpr", "expect", "seed", "key",
        "delimiter", "csv", "header", "json", "ignore_case", "null", "on_error"])]
    from: Option<PathBuf>,
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    promise: PromiseArgs,
}

impl Build {
    pub(crate) fn run(self) -> Result<Ending> {
        if let Some(path) = &self.from {
            return self.reduce(path);
        }
        output::check(&self.output, &self.files)?;
        output::refuse_in_use(&self.output)?;
        self.scheme.iter().try_for_each(|scheme| output::check_beside(&self.output, std::slice::from_ref(scheme)))?;
        self.check_transmit()?;
        if let Some(path) = &self.scheme {
            let filter = self.with_scheme(path)?;
            filter_file::save(&self.output, filter.as_ref(), &self.keys.canonical(), self.compress)?;
            return Ok(Ending::Done);
        }
        let layout = Layout::new(&self.keys, &ImportanceArgs::default())?;
        let reader = RecordReader::new(BlockReader::new(self.files.clone(), self.keys.framing()), layout)?;
        let mut reader = reader.watched(&self.files, self.screen()).warn_on_suspect_input(self.promise.quiet);
        let Filling { filter, watch, .. } = match self.plan_without_counting()? {
            // Where keys can be removed, each must have been inserted, and once: whether one came before is then no
            // question for the filter, which sometimes takes a new key for a repeat.
            Some(plan) if !KINDS.of(&plan.spec)?.can.remove => self.insert_as_they_come(&mut reader, &plan)?,
            plan => self.count_then_insert(&mut reader, plan)?,
        };
        let _working = Working::on("writing the filter", self.screen());
        self.save(filter.as_ref(), &self.keys.canonical())?;
        Ok(self.promise.ending(watch.broken_at().is_some()))
    }

    /// Nothing is printed but the bar.
    fn screen(&self) -> Screen {
        Screen::of(false, self.promise.quiet)
    }

    /// The bits of a filter that has counters, with the key options and the promise that it has.
    fn reduce(&self, path: &Path) -> Result<Ending> {
        output::check(&self.output, &[path.to_path_buf()])?;
        let file = FilterFile::read(path, self.goal.wanted.memory, None)?;
        let counters = &file.filter;
        let bits = filters::to_bits(counters.as_ref()).map_err(|error| Failure::at(path, error))?;
        let (promise, status) = (bits.promise(), counters.status());
        let is_broken = standing(counters.as_ref(), &status) == Standing::Broken;
        if is_broken {
            self.promise.broken(|| {
                let seen = words::seen_in_cells(&promise, &status, KEYS);
                format!("{}: {seen}; build it anew with a larger --expect", path.display())
            })?;
        }
        self.save(bits.as_ref(), &file.keys(path)?)?;
        Ok(self.promise.ending(is_broken))
    }

    fn save(&self, filter: &dyn Filter, keys: &KeyArgs) -> Result<()> {
        match self.budget() {
            Some(bytes) => self.save_within(bytes, filter, keys),
            None => filter_file::save(&self.output, filter, keys, self.compress),
        }
    }

    /// The bytes that the file may have, if they are bounded.
    fn budget(&self) -> Option<u64> {
        self.transmit.map(|bits| bits / 8)
    }

    /// What is left of them for the filter: a note takes its length, rounded up as the header is.
    fn filter_budget(&self) -> Option<u64> {
        let note = self.keys.canonical().to_note().map_or(0, |note| note.len() as u64);
        self.budget().map(|bytes| bytes.saturating_sub(note.next_multiple_of(64)))
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
    fn save_within(&self, budget: u64, filter: &dyn Filter, keys: &KeyArgs) -> Result<()> {
        let mut bytes = Vec::new();
        codec::encode_compressed_to(filter, &keys.to_note()?, &mut bytes).map_err(Failure::new)?;
        if bytes.len() as u64 > budget {
            let remedy = match (&self.from, self.goal.wanted.expect) {
                (Some(_), _) => "its size was decided when the counters were built; build those smaller".into(),
                (None, Some(items)) => format!("there may be more than the {items} keys of --expect; leave it out"),
                (None, None) => "take another --seed".into(),
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
        output::check(&self.output, &[path.to_path_buf()])?;
        let scheme = scheme_file::load(path)?;
        let hashes = all_hashes(self.files.clone(), &self.keys, scheme.hashing(), self.screen())?;
        if hashes.is_empty() {
            return Err(Failure::new("there are no keys in the input; name files that have some"));
        }
        let members = distinct(&hashes);
        let bits = scheme.bits_per_key() * members.len() as f64;
        Ok(querylog::build(&scheme, &members, self.goal.wanted.memory.unwrap_or(bits.ceil() as u64))?)
    }

    fn wanted(&self) -> Goal {
        let goal = self.goal.goal().never_forget();
        match self.filter_budget() {
            Some(bytes) => goal.without_fpr().transmitted_bytes(bytes),
            None if self.compress => goal.compressed(),
            None => goal,
        }
    }

    /// The plan, if it does not depend on how many keys there are.
    fn plan_without_counting(&self) -> Result<Option<Plan>> {
        let spec = &self.goal.filter;
        if self.goal.wanted.expect.is_some() {
            return Ok(Some(planning::held_to_rate(KINDS.plan(spec, &self.wanted())?, &self.wanted())?));
        }
        // A spec that can be planned from nothing says everything itself. Any other is tried with one
        // key, so that what is wrong with it is said before a long input is read.
        let nothing = Goal::new().hashing(self.goal.hashing());
        let nothing = self.filter_budget().into_iter().fold(nothing, Goal::transmitted_bytes);
        if KINDS.plan(spec, &nothing).is_ok() {
            return Ok(Some(KINDS.plan(spec, &self.wanted())?));
        }
        match KINDS.plan(spec, &self.wanted().expected_items(1)) {
            // Whether the memory suffices, and which would, is only known with the number of keys.
            Err(error) if !matches!(error, Error::Infeasible { .. } | Error::Parameter { name: "memory", .. }) => {
                Err(error.into())
            }
            _ => Ok(None),
        }
    }

    fn insert_as_they_come(&self, reader: &mut RecordReader, plan: &Plan) -> Result<Filling> {
        let mut filling = Filling::new(plan.build()?, self.promise, self.remedy());
        self.for_each_key_batch(reader, plan.hashing, |batch, before| {
            filling.insert(batch.hashes(), |key| (before + batch.record_of_key(key)) as u64 + 1, |_| {})
        })?;
        self.tell_forgotten(&filling.filter, None)?;
        filling.finish()
    }

    fn count_then_insert(&self, reader: &mut RecordReader, plan: Option<Plan>) -> Result<Filling> {
        let mut hashes: Vec<KeyHash> = Vec::new();
        self.for_each_key_batch(reader, self.hashing(plan.as_ref()), |batch, _| {
            let batch = batch.hashes();
            let refused = |_| Failure::from(Error::OutOfMemory { bytes: size_of_val(batch) as u64 });
            hashes.try_reserve(batch.len()).map_err(refused)?;
            hashes.extend_from_slice(batch);
            Ok(())
        })?;
        let working = Working::over("inserting keys", hashes.len() as u64, self.screen());
        if hashes.is_empty() && plan.is_none() {
            return Err(Failure::new("there are no keys in the input; say how many to expect with --expect"));
        }
        let plan = match plan {
            Some(plan) => plan,
            None => {
                let goal = self.wanted().expected_items(distinct(&hashes).len() as u64);
                planning::held_to_rate(KINDS.plan(&self.goal.filter, &goal)?, &goal)?
            }
        };
        let mut filling = Filling::new(plan.build()?, self.promise, self.remedy());
        if KINDS.of(&plan.spec)?.can.remove {
            let places = first_places(&hashes);
            let firsts: Vec<KeyHash> = places.iter().map(|place| hashes[*place]).collect();
            working.add(hashes.len() - firsts.len());
            filling.insert_new(&firsts, |key| places[key] as u64 + 1, |keys| working.add(keys))?;
        } else {
            // In the order they came, repeats and all: some filters count them, some forget the oldest.
            filling.insert(&hashes, |key| key as u64 + 1, |keys| working.add(keys))?;
        }
        self.tell_forgotten(&filling.filter, Some(hashes))?;
        filling.finish()
    }

    /// Says that keys are missing where a filter that forgets was asked for by name, and how many if they are at hand.
    fn tell_forgotten(&self, filter: &AnyFilter, hashes: Option<Vec<KeyHash>>) -> Result<()> {
        let kind = KINDS.of(filter.spec())?;
        if self.promise.quiet || !kind.forgets(filter.spec()) {
            return Ok(());
        }
        let missing = match hashes.map(|hashes| distinct(&hashes)) {
            Some(keys) => match keys.iter().filter(|key| !filter.contains_hash(**key)).count() as u64 {
                0 => return Ok(()),
                missing => format!(": {} of {} keys are missing", thousands(missing), thousands(keys.len() as u64)),
            },
            None => ", so that keys may be missing".into(),
        };
        words::note(&format!("{} forgets{missing}; without --filter, none is", kind.name));
        Ok(())
    }

    /// What would have kept the promise.
    fn remedy(&self) -> &'static str {
        match self.goal.wanted.expect {
            Some(_) => "leave --expect out, so that the keys are counted first, or give a larger one",
            None => "leave the filter's size out, or give a larger one",
        }
    }

    /// How keys are hashed, by the plan or before there is one: some kinds have a hash function of their own.
    fn hashing(&self, plan: Option<&Plan>) -> Hashing {
        let given = self.goal.hashing();
        let by_kind = || KINDS.of(&self.goal.filter).map_or(given, |kind| kind.hashing(given));
        plan.map_or_else(by_kind, |plan| plan.hashing)
    }

    fn for_each_key_batch(
        &self,
        reader: &mut RecordReader,
        hashing: Hashing,
        mut act: impl FnMut(&Batch, usize) -> Result<()>,
    ) -> Result<()> {
        let (mut faults, mut records) = (FaultWatch::new(self.keys.on_error, OnError::Fail), 0);
        for_each_batch(reader, &hashing, |part| {
            if let Part::Records(bytes, batch) = part {
                faults.check(bytes, batch)?;
                act(batch, records)?;
                records += batch.len();
            }
            Ok(())
        })
    }
}

/// Keys whose room is asked for together.
const TOGETHER: usize = 1 << 16;

/// A filter that is being filled, and watched.
struct Filling {
    filter: AnyFilter,
    watch: Watch,
    promise: PromiseArgs,
    remedy: &'static str,
    verdicts: Vec<Verdict>,
}

impl Filling {
    fn new(filter: AnyFilter, promise: PromiseArgs, remedy: &'static str) -> Self {
        let watch = watch(filter.as_ref());
        Filling { filter, watch, promise, remedy, verdicts: Vec::new() }
    }

    /// Inserts keys; memory that is refused is an error, and a broken promise may be. `line` says where a key is, and `done`
    /// hears of so many keys more.
    fn insert(&mut self, hashes: &[KeyHash], line: impl Fn(usize) -> u64, done: impl Fn(usize)) -> Result<()> {
        for (part, hashes) in hashes.chunks(TOGETHER).enumerate() {
            self.filter.make_room(hashes)?;
            self.verdicts.resize(hashes.len(), Verdict::Distinct);
            self.filter.observe_hashes(hashes, Importances::default(), &mut self.verdicts)?;
            if let Some(place) = self.watch.note(&self.verdicts) {
                self.is_broken_at(line(part * TOGETHER + place))?;
            }
            done(hashes.len());
        }
        Ok(())
    }

    /// Inserts keys that are known to be new, whatever the filter thinks of them.
    fn insert_new(&mut self, hashes: &[KeyHash], line: impl Fn(usize) -> u64, done: impl Fn(usize)) -> Result<()> {
        for (part, hashes) in hashes.chunks(TOGETHER).enumerate() {
            self.verdicts.clear();
            self.verdicts.resize(hashes.len(), Verdict::Distinct);
            if let Some(place) = self.watch.note(&self.verdicts) {
                self.is_broken_at(line(part * TOGETHER + place))?;
            }
            self.filter.make_room(hashes)?;
            self.filter.insert_hashes(hashes);
            done(hashes.len());
        }
        Ok(())
    }

    fn is_broken_at(&mut self, line: u64) -> Result<()> {
        let was_broken = self.watch.broken_at().is_some();
        self.watch.break_at(line);
        let (watch, remedy) = (&self.watch, self.remedy);
        self.promise.broken(|| match was_broken {
            true => format!("{}; {remedy}", words::many_too_many(watch, &self.filter.status(), KEYS)),
            false => {
                let place = words::broken_at(line, self.promise.stops());
                format!("{place}: {}; {remedy}", words::one_too_many(watch, KEYS))
            }
        })
    }

    /// A last look, where the verdicts do not tell all.
    fn finish(mut self) -> Result<Self> {
        if self.watch.wants_look(0, true) {
            let status = self.filter.status();
            if self.watch.is_broken_by(&status) {
                self.watch.break_at(status.arrivals);
                self.promise.broken(|| words::seen_in_cells(self.watch.promise(), &status, KEYS))?;
            }
        }
        Ok(self)
    }
}

/// Where every key came first.
fn first_places(hashes: &[KeyHash]) -> Vec<usize> {
    let key = |place: &usize| (hashes[*place].high, hashes[*place].low);
    let mut places: Vec<usize> = (0..hashes.len()).collect();
    places.sort_unstable_by_key(|place| (key(place), *place));
    places.dedup_by_key(|place| key(place));
    places.sort_unstable();
    places
}

fn distinct(hashes: &[KeyHash]) -> Vec<KeyHash> {
    let mut sorted = hashes.to_vec();
    sorted.sort_unstable_by_key(|hash| (hash.high, hash.low));
    sorted.dedup();
    sorted
}

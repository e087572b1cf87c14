//! What every experiment must obey, and that all of them run.

use everbloom_lab::experiments::ALL;
use everbloom_lab::suite::runner::{Silent, run};
use everbloom_lab::suite::{Request, Scale, Store, Verdict, report};
use std::collections::BTreeSet;

fn request(num_seeds: Option<u64>) -> Request {
    Request { scale: Scale::Quick, num_seeds, data: None, threads: 4 }
}

#[test]
fn the_registry_is_complete_and_without_ambiguity() {
    let names: BTreeSet<_> = ALL.iter().map(|experiment| experiment.name).collect();
    assert_eq!(names.len(), ALL.len(), "two experiments of one name");
    for experiment in ALL {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(experiment.name.chars().all(plain) && !["", "all"].contains(&experiment.name), "{}", experiment.name);
        let said = [experiment.source, experiment.figure, experiment.shows];
        assert!(said.iter().all(|said| !said.is_empty()), "{}", experiment.name);
        assert!(experiment.seeds > 0 && experiment.expected.quick > 0.0, "{}", experiment.name);
    }
    let papers = include_str!("../../../PAPERS.md");
    let sources = ALL.iter().flat_map(|experiment| experiment.source.split(", "));
    for source in sources.filter(|source| *source != "everbloom") {
        assert!(papers.contains(source), "{source} is not in PAPERS.md");
    }
}

#[test]
fn cells_are_told_apart_by_name_and_seed_at_every_scale() {
    for experiment in ALL.iter().filter(|experiment| experiment.needs.is_empty()) {
        for scale in [Scale::Quick, Scale::Default, Scale::Full] {
            let request = Request { scale, ..request(Some(3)) };
            let cells = (experiment.cells)(&request.scope(experiment)).expect(experiment.name);
            assert!(!cells.is_empty(), "{} has nothing to do", experiment.name);
            // File names keep letters and digits only.
            let slug = |name: &str| {
                name.chars().map(|c| if c.is_alphanumeric() || "._".contains(c) { c } else { '-' }).collect::<String>()
            };
            let known: BTreeSet<_> = cells.iter().map(|cell| (slug(&cell.name), cell.seed)).collect();
            assert_eq!(known.len(), cells.len(), "{} at {} has two cells of one name", experiment.name, scale.name());
        }
    }
}

/// Every experiment that needs no recording, at quick scale and with one seed: charts are drawn, claims
/// judged, and each verdict has a number, or the run is an error.
#[test]
fn every_experiment_runs_and_judges_its_claims() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(folder.path()).expect("a store");
    let ran = run(ALL, &request(Some(1)), &store, &Silent).expect("all run");
    assert_eq!(ran.len(), ALL.len());
    for (ran, experiment) in ran.iter().zip(ALL) {
        assert_eq!(ran.name, experiment.name);
        assert_eq!(ran.skipped.is_some(), !experiment.needs.is_empty(), "{}", ran.name);
        if ran.skipped.is_none() {
            assert!(!ran.conclusion.verdicts.is_empty(), "{} judges nothing", ran.name);
            assert!(!ran.conclusion.figures.is_empty(), "{} shows nothing", ran.name);
            let axes =
                ran.conclusion.figures.iter().flat_map(|figure| &figure.panels).flat_map(|panel| [&panel.x, &panel.y]);
            assert!(axes.into_iter().all(|axis| axis.name.len() > 3), "{} has an axis without a name", ran.name);
        }
    }
    let results = report::read(&store).expect("results");
    let page = report::html(std::slice::from_ref(&store), &results).expect("a page");
    assert!(results.iter().all(|result| page.contains(&format!("<h3 id=\"{}\">", result.experiment))));
}

/// The counts that documents quote stand between these lines, and are those of `lab/verdicts.json`.
const BEGIN: &str = "<!-- counts of lab/verdicts.json: begin -->\n";
const END: &str = "<!-- counts of lab/verdicts.json: end -->";

/// `EVERBLOOM_BLESS=1` writes the counts into the documents.
#[test]
fn documents_quote_the_verdicts_as_they_are() {
    #[derive(serde::Deserialize)]
    struct Document {
        verdicts: Vec<Entry>,
    }
    #[derive(serde::Deserialize)]
    struct Entry {
        source: String,
        #[serde(flatten)]
        verdict: Verdict,
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let document: Document = serde_json::from_str(&read("lab/verdicts.json")).expect("verdicts");
    let counts = report::counts(document.verdicts.iter().map(|entry| (entry.source.as_str(), &entry.verdict)));
    assert!(read("lab/RESULTS.md").contains(&counts), "lab/RESULTS.md and lab/verdicts.json are of different runs");
    for name in ["PAPERS.md", "book/src/lab.md"] {
        let text = read(name);
        let (before, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{name} has no counts"));
        let (quoted, after) = rest.split_once(END).unwrap_or_else(|| panic!("{name}: the counts do not end"));
        if std::env::var_os("EVERBLOOM_BLESS").is_some() {
            std::fs::write(root.join(name), format!("{before}{BEGIN}{counts}{END}{after}")).expect("written");
        } else {
            assert_eq!(quoted, counts, "{name} quotes other counts; EVERBLOOM_BLESS=1 writes these");
        }
    }
}

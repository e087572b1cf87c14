//! Documents that contain several words, where the words' lists are on different nodes: exact answers, few bytes.
//!
//! `cargo run -p everbloom-all --example keyword_search`
//!
//! See README.md in this folder for what happens and how to read the output.

mod library;
mod node;
#[path = "../shared/processes.rs"]
mod processes;

use node::{METHODS, Search};
use processes::{Process, Result};

/// Processes that have the words' lists among them.
const NODES: usize = 3;

/// What is looked for.
const QUERIES: [&[&str]; 5] = [
    &["bloom", "data"],
    &["bloom", "filter"],
    &["reservoir", "network"],
    &["filter", "network", "data"],
    &["reservoir", "sampling", "stream", "the"],
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["node", number] => node::run(number.parse()?, NODES),
        [] => play(),
        _ => Err(format!("there is nothing to do for {arguments:?}; call it without arguments").into()),
    }
}

fn play() -> Result<()> {
    let numbers: Vec<String> = (0..NODES).map(|number| number.to_string()).collect();
    let mut nodes = numbers.iter().map(|number| Process::start(&["node", number])).collect::<Result<Vec<_>>>()?;
    let ports: Vec<u16> = nodes.iter().map(|node| node.port).collect();
    println!(
        "{} documents, {} words on {NODES} nodes, each a process of its own\n",
        library::DOCUMENTS,
        library::WORDS.len()
    );
    println!("{:<36} {:>8} {:>10} {:>10} {:>10}   bytes between the nodes", "words", "found", "list", "8 bits", "best");

    let mut totals = [0; METHODS.len()];
    for words in QUERIES {
        let truth = library::documents_with_all(words);
        let mut bytes = [0; METHODS.len()];
        for (place, method) in METHODS.into_iter().enumerate() {
            // The shortest list comes first, and its node does the work.
            let mut words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            words.sort_by_key(|word| library::list(word).len());
            let search = Search { method, ports: ports.clone(), words };
            let node = library::node_of(&search.words[0], NODES);
            let found = node::answer_from(&nodes[node].connection.ask(&search.to_bytes())?)?;
            assert_eq!(found.documents, truth, "{method:?}: exactly the documents that have all the words");
            bytes[place] = found.bytes;
            totals[place] += found.bytes;
        }
        println!("{:<36} {:>8} {:>10} {:>10} {:>10}", words.join(" "), truth.len(), bytes[0], bytes[1], bytes[2]);
    }
    println!("{:<36} {:>8} {:>10} {:>10} {:>10}", "all", "", totals[0], totals[1], totals[2]);

    let saved = |place: usize| 100.0 * (1.0 - totals[place] as f64 / totals[0] as f64);
    println!(
        "\nevery result is exact; 8 bits a document save {:.0} % of the bytes, the best rate {:.0} %",
        saved(1),
        saved(2)
    );
    assert!(totals[2] < totals[1] && totals[1] < totals[0]);
    Ok(())
}

//! Filters that grow where the system refuses the memory: an error and nothing lost in silence, never an abort.
#![cfg(target_os = "linux")]

mod common;

use common::Folder;
use std::process::{Command, Output};

/// `everbloom` with so many KiB of address space.
fn limited(folder: &Folder, kib: u64, arguments: &str) -> Output {
    let script = format!("ulimit -v {kib}; exec {} {arguments}", env!("CARGO_BIN_EXE_everbloom"));
    Command::new("sh").arg("-c").arg(script).current_dir(folder.path("")).output().expect("a shell")
}

#[test]
fn memory_that_is_refused_is_an_error_that_says_so() {
    let folder = Folder::new();
    let keys = |from: u32, to: u32| (from..to).map(|key| format!("{key}\n")).collect::<String>();
    folder.write("few.txt", "one\n");
    folder.write("one.txt", keys(0, 600_000));
    folder.write("two.txt", keys(300_000, 900_000));
    for name in ["one", "two"] {
        let built =
            limited(&folder, 1 << 30, &format!("build {name}.txt --filter exact --expect 600000 -o {name}.ebf"));
        assert!(built.status.success(), "{built:?}");
    }
    let calls = [
        "dedup --exact --threads 1 one.txt -o out.txt",
        "build one.txt --filter exact --expect 600000 -o out.ebf",
        "build one.txt --filter scalable:initial_items=1000 --fpr 0.1% --expect 1000 -o out.ebf",
        "merge one.ebf two.ebf -o out.ebf",
        "compare one.txt --filter bloom --memory 64KiB",
        "compare one.txt --filter exact --memory 64KiB --seeds 2",
        "tune --keys few.txt --log two.txt --memory 64KiB -o out.ebs",
        "tune --keys one.txt --log two.txt --memory 64KiB -o out.ebs",
        "tune --popularity shares.tsv",
    ];
    folder.write("shares.tsv", (0..200_000).map(|key| format!("{key}\t1\t2\n")).collect::<String>());
    // The least in which the program starts and works at all depends on the machine.
    let works = |kib: &u64| limited(&folder, *kib, "dedup --exact --threads 1 few.txt").status.success();
    let least = (2..200).map(|step| step * 4096).find(works).expect("some memory is enough");
    for call in calls {
        let mut refusals = 0;
        for kib in (0..16).map(|step| least + 1024 + step * 4096) {
            let run = limited(&folder, kib, call);
            let errors = String::from_utf8_lossy(&run.stderr);
            match run.status.code() {
                Some(0) => {}
                Some(2) if errors.contains("could not be allocated") || errors.contains("fit into memory") => {
                    refusals += 1
                }
                _ => panic!("{call} with {kib} KiB: {:?} {errors}", run.status),
            }
        }
        assert!(refusals > 0 || call.contains("scalable"), "{call}: no limit was too small");
    }
}

#[test]
fn a_record_for_which_there_is_no_memory_is_an_error() {
    let folder = Folder::new();
    let mut long = vec![b'x'; 60 << 20];
    long.push(b'\n');
    folder.write("long", &long);
    for mode in ["", "--flag", "--duplicates dup", "--count --duplicates dup"] {
        let mut refusals = 0;
        for kib in (40_000..=260_000).step_by(20_000) {
            let run = limited(&folder, kib, &format!("dedup --threads 1 --memory 1MiB {mode} long long > out"));
            let errors = String::from_utf8_lossy(&run.stderr);
            match run.status.code() {
                Some(0) => {}
                Some(2) if errors.contains("does not fit into memory") => refusals += 1,
                _ => panic!("{mode} with {kib} KiB: {:?} {errors}", run.status),
            }
        }
        assert!(refusals > 0, "{mode}: no limit was too small");
    }
}

//! The page of `explore`, asked as a browser would, and as nobody should.
#![cfg(feature = "web")]

mod common;

use common::http::{Site, in_address, reply};
use common::live::{Running, wait_until};
use common::{Folder, assert_refused, error_of, json_of};
use serde_json::Value;
use std::io::Write as _;
use std::process::Stdio;

/// A page that is there until it is dropped.
struct Page {
    site: Site,
    running: Running,
    folder: Folder,
}

fn page_in(folder: Folder, more: &[&str]) -> Page {
    std::fs::create_dir_all(folder.path("tmp")).expect("a folder");
    let mut command = folder.command(&[&["explore"], more].concat());
    command.env("TMPDIR", folder.path("tmp")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("everbloom runs"));
    let site = Site::printed(&mut running.0.stdout);
    Page { site, running, folder }
}

fn page() -> Page {
    page_in(Folder::new(), &[])
}

/// Lines of which some come again soon, some late.
fn visits() -> String {
    (0..6000u64).map(|line| format!("key {}\n", if line % 3 == 0 { line } else { line * line % 701 })).collect()
}

const SMALL: &str = "memory=4KiB&fpr=1%25&expect=20000&stream=uniform";

#[test]
fn the_page_is_small_whole_and_asks_nobody_else() {
    let Page { site, .. } = &page();
    let parts = ["/", "/page.css", "/charts.css", "/page.js"].map(|path| site.get(path));
    assert!(parts.iter().map(|part| part.body.len()).sum::<usize>() < 300_000);
    for part in &parts {
        assert_eq!(part.status, 200);
        assert!(part.headers.contains("content-security-policy: default-src 'none'"), "{}", part.headers);
        let elsewhere = part.body.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://") && !elsewhere.contains("@import"));
    }
    let names = ["/page.css", "/charts.css", "/page.js"];
    assert!(names.iter().all(|name| parts[0].body.contains(name)));
    // Every kind can be chosen.
    assert!(everbloom_all::KINDS.iter().all(|kind| parts[0].body.contains(&format!("value=\"{}\"", kind.name))));
    assert_eq!(site.get("/nothing").status, 404);
    assert_eq!(site.ask("DELETE /", &[], b"").status, 405);
}

#[test]
fn a_simulation_answers_as_plan_does() {
    let Page { site, folder, .. } = &page();
    let answer = site.get(&format!("/api/simulate?{SMALL}")).json();
    let plan =
        ["plan", "--memory", "4KiB", "--fpr", "1%", "--expect", "20000", "--stream", "uniform", "--format", "json"];
    let plan = json_of(&folder.output_of(&plan));
    let told = &answer["told"]["document"];
    for field in ["filter", "summary", "commands", "predicted_fnr", "fnr_by_lag", "runners_up"] {
        assert_eq!(told[field], plan[field], "{field}");
    }
    assert_eq!(answer["how"], "by simulation");
    let first = site.get(&format!("/api/glance?{SMALL}")).json();
    let how = first["how"].as_str().expect("text");
    assert!(how == "by formula" || how.starts_with("first glance, ± "), "{how}");
    // Near what the simulation says, as far as its own ± tells.
    let missed = |answer: &Value| answer["told"]["document"]["predicted_fnr"].as_f64().expect("a rate");
    let error = first["told"]["document"]["predicted_fnr_error"].as_f64().unwrap_or(0.05);
    assert!((missed(&first) - missed(&answer)).abs() <= 2.0 * error, "{how}: {first} and {answer}");
    let curves = site.get(&format!("/api/curves?{SMALL}")).json();
    assert_eq!(names(&curves), ["frontier", "by_memory"]);
    assert_eq!(names(&answer), ["by_lag", "over_time"]);
    assert_eq!(names(&first), names(&answer));
    let around = site.get(&format!("/api/around?{SMALL}")).json();
    assert_eq!(names(&around), names(&curves));
    for chart in
        [&answer, &first, &around, &curves].into_iter().flat_map(|answer| answer["charts"].as_array().expect("charts"))
    {
        let svg = chart["svg"].as_str().expect("a chart");
        assert!(svg.starts_with("<svg") && !svg.contains("style=") && !svg.contains("<script"), "{svg}");
        assert!(chart["csv"].as_str().expect("numbers").lines().count() > 1, "{chart}");
    }
}

#[test]
fn every_setting_has_an_answer() {
    let Page { site, .. } = &page();
    for settings in [
        "memory=4KiB&fpr=1%25",
        "memory=&fpr=1%25&expect=20000",
        "memory=4KiB&fpr=1%25&expect=20000&stream=zipf&exponent=1.1",
        "memory=4KiB&fpr=1%25&expect=20000&stream=phases&phases=5",
        "memory=4KiB&fpr=1%25&expect=20000&stream=lags&lags=10%201%0A1000%202&arrivals=60000",
        "memory=4KiB&fpr=1%25&expect=20000&stream=uniform&importance=linear",
        "memory=4KiB&expect=20000&stream=uniform&importance=exponential&cost-fn-by-importance=linear&cost-fp=5&cost-fn=1",
        "memory=4KiB&expect=20000&stream=uniform&cost-fp=5&cost-fn=1&memory-cost=2",
        "memory=4KiB&fpr=1%25&expect=20000&stream=uniform&filter=stable&seed=7",
        "fpr=1%25&window=1000",
        "fpr=1%25&window=24h&expect=1e5&refresh=no",
        "memory=4KiB&fpr=1%25&expect=20000&stream=uniform&fnr=99%25",
    ] {
        // Curves take a second of work each, and are asked for where they differ.
        let draws = settings.contains("phases") || settings.contains("window=24h") || settings.contains("linear&cost");
        for path in ["glance", "simulate", "curves"].iter().take(if draws { 3 } else { 2 }) {
            let answer = site.get(&format!("/api/{path}?{settings}"));
            assert_eq!(answer.status, 200, "{path} {settings}: {}", answer.body);
            if *path == "glance" {
                let (answer, is_window) = (answer.json(), settings.contains("window"));
                assert!(
                    answer["told"]["document"]["summary"].as_str().is_some_and(|text| text.len() > 50),
                    "{settings}"
                );
                let around = site.get(&format!("/api/around?{settings}")).json();
                let charts = [names(&answer), names(&around)].concat();
                assert!(charts.contains(&"over_time".into()), "{settings}: {charts:?}");
                assert!(is_window || charts.contains(&"by_memory".into()), "{settings}: {charts:?}");
                let has_frontier = charts.contains(&"frontier".into());
                assert_eq!(has_frontier, !is_window && settings.contains("memory=4KiB"), "{settings}: {charts:?}");
            }
        }
    }
    let costs =
        site.get("/api/simulate?memory=4KiB&expect=20000&stream=uniform&cost-fp=5&cost-fn=1&memory-cost=2").json();
    assert!(names(&costs).contains(&"cost_over_time".into()), "{:?}", names(&costs));
}

fn names(answer: &Value) -> Vec<String> {
    let name = |chart: &Value| chart["name"].as_str().expect("a name").to_string();
    answer["charts"].as_array().expect("charts").iter().map(name).collect()
}

/// The rows of a chart's numbers: series, x, y.
fn numbers(answer: &Value, chart: &str) -> Vec<(String, f64, f64)> {
    let charts = answer["charts"].as_array().expect("charts");
    let chart = charts.iter().find(|one| one["name"] == chart).expect("a chart");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse().expect(line);
        (fields[0].to_string() + fields[1], number(2), number(3))
    };
    chart["csv"].as_str().expect("numbers").lines().skip(1).map(row).collect()
}

#[test]
fn errors_over_time_show_how_a_filter_fills_up_and_how_one_that_forgets_settles() {
    let Page { site, .. } = &page();
    for path in ["glance", "simulate"] {
        let fills = site.get(&format!("/api/{path}?memory=&fpr=1%25&expect=20000&stream=uniform")).json();
        let rates = numbers(&fills, "over_time");
        let dropped: Vec<f64> = rates.iter().filter(|row| !row.0.contains("promised")).map(|row| row.2).collect();
        assert!(dropped.windows(2).all(|pair| pair[0] <= pair[1]), "{path}: {dropped:?}");
        assert!(dropped[0] < 0.01 && (0.5..=1.0).contains(&dropped[dropped.len() - 1]), "{path}: {dropped:?}");
        let forgets = site.get(&format!("/api/{path}?{SMALL}&arrivals=400000")).json();
        let rates = numbers(&forgets, "over_time");
        let missed: Vec<f64> = rates.iter().filter(|row| row.0.starts_with("repeats")).map(|row| row.2).collect();
        let (first, later) = (missed[0], &missed[missed.len() / 2..]);
        let mean = later.iter().sum::<f64>() / later.len() as f64;
        assert!(first < mean && later.iter().all(|rate| (rate - mean).abs() < 12.0), "{path}: {missed:?}");
    }
    // What is lost is what the whole stream costs in the end, and not a straight line before.
    let costs = site.get(&format!("/api/simulate?{SMALL}&cost-fp=5&cost-fn=1")).json();
    let lost: Vec<f64> =
        numbers(&costs, "cost_over_time").iter().filter(|row| !row.0.contains("without")).map(|row| row.2).collect();
    let cost = costs["told"]["document"]["cost_per_arrival"].as_f64().expect("a cost") * 40_000.0;
    let (half, end) = (lost[lost.len() / 2], lost[lost.len() - 1]);
    assert!((end / cost - 1.0).abs() < 1e-6 && half < 0.45 * end, "{half} of {end}, {cost}");
}

#[test]
fn a_newer_question_of_a_page_ends_the_one_before() {
    let Page { site, .. } = &page();
    let site = *site;
    let long = "memory=64KiB&expect=1e7&stream=zipf&importance=linear&cost-fp=5&cost-fn=1&memory-cost=2&page=one";
    let before = std::thread::spawn(move || site.get(&format!("/api/simulate?{long}")));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(site.get(&format!("/api/simulate?{SMALL}&page=one")).status, 200);
    let before = before.join().expect("an answer");
    assert_eq!(before.status, 409, "{}", before.body);
    assert!(before.error().contains("newer"));
}

#[test]
fn what_makes_no_sense_is_an_error_and_names_the_option() {
    let Page { site, folder, .. } = &page();
    for (settings, mention) in [
        ("memory=NaN", "--memory"),
        ("memory=-1", "--memory"),
        ("memory=1e300GiB", "--memory"),
        ("memory=4KiB&fpr=NaN", "--fpr"),
        ("memory=4KiB&fpr=-1", "--fpr"),
        ("memory=4KiB&fpr=7", "--fpr"),
        ("memory=4KiB&fpr=1%25&expect=-5", "--expect"),
        ("memory=4KiB&fpr=1%25&expect=1e30", "--expect"),
        ("memory=4KiB&fpr=1%25&expect=NaN", "--expect"),
        ("memory=4KiB&fnr=inf", "--fnr"),
        ("window=NaN", "--window"),
        ("memory=4KiB&stream=/etc/passwd", "stream"),
        ("memory=4KiB&stream=lag:/etc/passwd", "stream"),
        ("memory=4KiB&stream=lags&lags=&expect=1000", "lag"),
        ("memory=4KiB&stream=lags&lags=x&expect=1000", "lags: line 1"),
        ("memory=4KiB&stream=zipf&exponent=NaN&expect=1000", "exponent"),
        ("memory=4KiB&stream=zipf&exponent=/etc/passwd&expect=1000", "exponent"),
        ("memory=4KiB&stream=phases&phases=-1&expect=1000", "phases"),
        ("memory=4KiB&stream=phases&phases=5000&expect=1000", "phases"),
        ("memory=4KiB&importance=/etc/passwd", "--importance"),
        ("memory=4KiB&cost-fn-by-importance=/etc/passwd", "--cost-fn-by-importance"),
        ("memory=4KiB&cost-fp=-1&cost-fn=1", "--cost-fp"),
        ("memory=4KiB&cost-fp=NaN&cost-fn=1", "--cost-fp"),
        ("memory=4KiB&cost-fp=1", "--cost-fn"),
        ("memory=4KiB&filter=blom", "bloom"),
        ("memory=4KiB&stream=sample", "no sample"),
        ("memory=4KiB&stream=sample&sample=..%2F..%2Fetc%2Fpasswd", "not here"),
        ("memry=4KiB", "memory"),
        ("from-state=/etc/passwd", "from-state"),
        ("help=", "help"),
        ("%ff=%ff", ""),
    ] {
        for path in ["glance", "simulate", "curves"] {
            let answer = site.get(&format!("/api/{path}?{settings}"));
            assert_eq!(answer.status, 400, "{path} {settings}: {}", answer.body);
            assert!(answer.error().contains(mention), "{path} {settings}: {}", answer.error());
        }
    }
    // In the words of the command line.
    let typed = error_of(&folder.run(&["plan", "--memory", "64kilo"]));
    assert_eq!(site.get("/api/glance?memory=64kilo").error(), typed.trim_start_matches("everbloom: "));
    let long = format!("/api/glance?memory=4KiB&stream=lags&lags={}", "1%20".repeat(4000));
    assert_eq!(site.get(&long).status, 400);
    assert_eq!(site.get(&format!("/api/glance?memory={}", "1".repeat(100_000))).status, 414);
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn other_names_and_other_sites_are_refused() {
    let Page { site, .. } = &page();
    let own = format!("http://127.0.0.1:{}", site.0);
    for host in ["Host: evil.example", "Host: 127.0.0.1.evil.example", "Host: 192.168.0.1", "Host: 0.0.0.0", ""] {
        for what in ["GET /", "GET /api/glance?memory=4KiB", "POST /api/filter"] {
            let answer = site.ask_as(host, what, &[], b"");
            assert!(
                answer.status == 403 || (host.is_empty() && answer.status == 400),
                "{host} {what}: {}",
                answer.status
            );
        }
    }
    assert_eq!(site.ask_as("Host: localhost:1", "GET /", &[], b"").status, 200);
    for header in
        ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"]
    {
        for what in ["POST /api/filter?name=x", "POST /api/sample?name=x", "GET /api/simulate?memory=4KiB"] {
            let answer = site.ask(what, &[header], b"a line\n");
            assert_eq!(answer.status, 403, "{header} {what}: {}", answer.body);
            assert!(answer.error().contains("site"));
        }
    }
    // A link on another page leads here; the page itself may ask.
    assert_eq!(site.ask("GET /?memory=4KiB", &["Sec-Fetch-Site: cross-site"], b"").status, 200);
    let same = format!("Origin: {own}");
    let sent = site.ask("POST /api/sample?name=x", &[&same, "Sec-Fetch-Site: same-origin"], visits().as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.body);
}

#[test]
fn a_file_shows_what_info_shows() {
    let Page { site, folder, .. } = &page();
    let keys = folder.write("keys.txt", visits());
    folder.output_of(&["build", keys.to_str().expect("text"), "-o", "keys.ebf"]);
    let answer = site.ask("POST /api/filter?name=keys.ebf", &[], &folder.read("keys.ebf"));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let (answer, table) = (answer.json(), String::from_utf8(folder.output_of(&["info", "keys.ebf"])).expect("text"));
    for row in answer["rows"].as_array().expect("rows") {
        assert!(table.contains(row[1].as_str().expect("text")), "{row} is not in {table}");
    }
    let fill = json_of(&folder.output_of(&["info", "keys.ebf", "--format", "json"]))["fill"].clone();
    assert_eq!(answer["fill"], fill);
    let damaged = [folder.read("keys.ebf"), b"more".to_vec()].concat();
    for (name, bytes) in [
        ("keys.ebf", &damaged[..]),
        ("x.ebf", b"not a filter"),
        ("empty.ebf", b""),
        ("../../../x", b"\x89EBF\r\n\x1a\n"),
    ] {
        let refused = site.ask(&format!("POST /api/filter?name={}", in_address(name)), &[], bytes);
        assert_eq!(refused.status, 400, "{}", refused.body);
        let (error, last) = (refused.error(), name.rsplit('/').next().unwrap_or_default().to_string());
        assert!(error.starts_with(&format!("{last}: ")) && !error.contains("tmp"), "{error}");
    }
}

#[test]
fn a_sample_is_the_stream_from_then_on() {
    let folder = Folder::new();
    let path = folder.write("visits.txt", visits());
    let Page { site, folder, .. } = &page_in(folder, &[path.to_str().expect("text")]);
    let settings = "memory=512B&fpr=1%25&stream=sample";
    let answer = site.get(&format!("/api/simulate?{settings}")).json();
    let plan = ["plan", "--memory", "512B", "--fpr", "1%", "--stream", "visits.txt", "--format", "json"];
    let plan = json_of(&folder.output_of(&plan));
    assert_eq!(answer["told"]["document"]["predicted_fnr"], plan["predicted_fnr"]);
    let dropped = site.ask("POST /api/sample?name=other.txt", &[], "a\nb\na\n".repeat(500).as_bytes());
    assert_eq!(dropped.json()["described"], "1,500 lines, 2 of them different", "{}", dropped.body);
    // The keys of a file are where the page says.
    let csv = "who,what\n\"a, b\",1\n\"a, b\",2\nc,3\n".to_string() + &"c,4\n\"a, b\",5\n".repeat(300);
    let json = "{\"user\": {\"id\": 1}, \"n\": 7}\n{\"user\": {\"id\": 2}}\n".repeat(300);
    for (settings, body, described) in [
        ("form=csv&key=who&header=yes", &csv, "603 lines, 2 different keys in who"),
        ("form=csv&key=1", &csv, "604 lines, 3 different keys in 1"),
        ("form=fields&key=2&delimiter=,&header=yes", &csv, ""),
        ("form=json&key=.user.id", &json, "600 lines, 2 different keys in .user.id"),
        ("form=lines&key=ignored", &json, "600 lines, 2 of them different"),
    ] {
        let answer = site.ask(&format!("POST /api/sample?name=keys&{settings}"), &[], body.as_bytes());
        assert_eq!(answer.status, 200, "{settings}: {}", answer.body);
        let said = answer.json()["described"].as_str().expect("text").to_string();
        assert!(described.is_empty() || said == described, "{settings}: {said}");
    }
    let told = site.get("/api/glance?memory=512B&fpr=1%25&stream=sample&sample=keys").json();
    assert!(!told["told"]["document"]["command"].to_string().contains("--key"), "{told}");
    for (settings, mention) in [
        ("form=json&key=user", "/user"),
        ("form=json", "--key"),
        ("form=csv&key=", "--key"),
        ("form=csv&key=nobody&header=yes", "nobody"),
        ("form=csv&key=9", "9"),
        ("form=fields&key=0", "0"),
        ("form=fields&key=1&delimiter=two", "--delimiter"),
        ("form=xml&key=1", "form"),
        ("form=csv&ky=1", "key"),
    ] {
        let answer = site.ask(&format!("POST /api/sample?name=keys&{settings}"), &[], csv.as_bytes());
        assert_eq!(answer.status, 400, "{settings}: {}", answer.body);
        assert!(answer.error().contains(mention), "{settings}: {}", answer.error());
    }
    let answer = site.get("/api/simulate?memory=512B&fpr=1%25&stream=sample&sample=other.txt").json();
    assert_eq!(answer["told"]["document"]["stream"]["distinct"], 2);
    let command = answer["told"]["document"]["command"].as_str().expect("a command");
    assert!(command.contains("other.txt"), "{command}");
    assert_eq!(site.ask("POST /api/sample?name=none.txt", &[], b"").status, 400);
}

#[test]
fn a_file_that_is_too_long_is_refused_and_not_held() {
    let Page { site, running, folder } = &page();
    for path in ["filter", "sample"] {
        let refused = site.ask(&format!("POST /api/{path}?name=x"), &["Content-Length: 1000000000"], b"begin");
        assert_eq!(refused.status, 413, "{}", refused.body);
        assert!(refused.error().contains("256 MiB"));
    }
    // Without a length, it is refused when it is too long.
    let mut stream = site.connect();
    let head =
        format!("POST /api/sample?name=x HTTP/1.1\r\nHost: localhost:{}\r\nTransfer-Encoding: chunked\r\n\r\n", site.0);
    stream.write_all(head.as_bytes()).expect("sent");
    let chunk = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
    let sent = (0..1024).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!((256..1024).contains(&sent), "{sent} MiB were taken");
    let most = std::fs::read_to_string(format!("/proc/{}/status", running.0.id())).expect("a process");
    let most = most.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    let most: u64 = most.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(most < 100_000, "{most} KiB");
    // Nothing stays behind.
    wait_until("the file goes", || {
        let folders = std::fs::read_dir(folder.path("tmp")).expect("a folder").flatten();
        folders.flat_map(|entry| std::fs::read_dir(entry.path()).expect("a folder")).count() == 0
    });
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn a_hundred_questions_at_once_are_answered_or_put_off() {
    let Page { site, running, .. } = &mut page();
    let site = *site;
    let ask = move |number: usize| {
        let page = if number.is_multiple_of(2) { String::new() } else { "&page=one".into() };
        let memory = 1000 + number;
        site.get(&format!("/api/simulate?memory={memory}B&fpr=1%25&expect=20000&stream=uniform{page}"))
    };
    let asked: Vec<_> = (0..100).map(|number| std::thread::spawn(move || ask(number))).collect();
    let answers: Vec<_> = asked.into_iter().map(|thread| thread.join().expect("an answer")).collect();
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!(count(200) + count(409) + count(503), 100, "{:?}", answers.iter().map(|a| a.status).collect::<Vec<_>>());
    assert!(count(200) > 0 && count(503) > 0);
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        answer.error();
    }
    assert_eq!(ask(1).status, 200);
    assert!(running.0.try_wait().expect("a child").is_none());
}

#[test]
fn a_signal_ends_it_and_nothing_stays() {
    for signal in ["INT", "TERM"] {
        let mut page = page();
        page.site.get("/api/glance?memory=4KiB&fpr=1%25&stream=lags&lags=10%201&expect=1000");
        page.running.signal(signal);
        assert_eq!(page.running.end(), (Some(0), String::new()));
        assert_eq!(std::fs::read_dir(page.folder.path("tmp")).expect("a folder").count(), 0);
    }
}

#[test]
fn a_call_that_cannot_be_kept_is_refused() {
    let Page { site, folder, .. } = &page();
    assert_refused(&folder.run(&["explore", "--port", &site.0.to_string()]), "leave the port out");
    assert_refused(&folder.run(&["explore", "--port", "70000"]), "--port");
    assert_refused(&folder.run(&["explore", "no such file"]), "no such file");
    folder.write("once.txt", "");
    assert_refused(&folder.run(&["explore", "once.txt"]), "once.txt");
}

#[test]
fn what_is_half_a_request_ends_nobody() {
    let Page { site, .. } = &page();
    for text in [
        "",
        "GET",
        "GET / HTTP/1.1\r\n",
        "\u{0}\u{1}\u{2}\r\n\r\n",
        "POST /api/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nhalf",
    ] {
        let mut stream = site.connect();
        stream.write_all(text.as_bytes()).expect("sent");
        drop(stream);
    }
    let mut stream = site.connect();
    stream.write_all(b"NONSENSE\r\n\r\n").expect("sent");
    assert_eq!(reply(stream).status, 400);
    assert_eq!(site.get("/").status, 200);
}

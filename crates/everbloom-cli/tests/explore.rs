//! The page of `explore`, asked as a browser would, and as nobody should.
#![cfg(feature = "web")]

mod common;

use common::http::{Site, in_address, reply};
use common::live::{Running, wait_until};
use common::{Folder, assert_refused, error_of, json_of};
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
    assert!(everbloom::filters::KINDS.iter().all(|kind| parts[0].body.contains(&format!("value=\"{}\"", kind.name))));
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
    assert_eq!(answer["method"], "simulation");
    let first = site.get(&format!("/api/plan?{SMALL}")).json();
    assert_eq!(first["method"], "formula", "{first}");
    let curves = site.get(&format!("/api/curves?{SMALL}")).json();
    let names: Vec<_> =
        curves["charts"].as_array().expect("charts").iter().map(|chart| chart["name"].clone()).collect();
    assert_eq!(names, ["frontier", "by_memory"]);
    for chart in [&answer, &first, &curves].into_iter().flat_map(|answer| answer["charts"].as_array().expect("charts"))
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
        for path in ["plan", "simulate", "curves"].iter().take(if draws { 3 } else { 2 }) {
            let answer = site.get(&format!("/api/{path}?{settings}"));
            assert_eq!(answer.status, 200, "{path} {settings}: {}", answer.body);
        }
    }
    let costs =
        site.get("/api/simulate?memory=4KiB&expect=20000&stream=uniform&cost-fp=5&cost-fn=1&memory-cost=2").json();
    let names: Vec<_> = costs["charts"].as_array().expect("charts").iter().map(|chart| chart["name"].clone()).collect();
    assert!(names.contains(&"over_time".into()), "{names:?}");
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
        for path in ["plan", "simulate", "curves"] {
            let answer = site.get(&format!("/api/{path}?{settings}"));
            assert_eq!(answer.status, 400, "{path} {settings}: {}", answer.body);
            assert!(answer.error().contains(mention), "{path} {settings}: {}", answer.error());
        }
    }
    // In the words of the command line.
    let typed = error_of(&folder.run(&["plan", "--memory", "64kilo"]));
    assert_eq!(site.get("/api/plan?memory=64kilo").error(), typed.trim_start_matches("everbloom: "));
    let long = format!("/api/plan?memory=4KiB&stream=lags&lags={}", "1%20".repeat(4000));
    assert_eq!(site.get(&long).status, 400);
    assert_eq!(site.get(&format!("/api/plan?memory={}", "1".repeat(100_000))).status, 414);
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn other_names_and_other_sites_are_refused() {
    let Page { site, .. } = &page();
    let own = format!("http://127.0.0.1:{}", site.0);
    for host in ["Host: evil.example", "Host: 127.0.0.1.evil.example", "Host: 192.168.0.1", "Host: 0.0.0.0", ""] {
        for what in ["GET /", "GET /api/plan?memory=4KiB", "POST /api/filter"] {
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
        page.site.get("/api/plan?memory=4KiB&fpr=1%25&stream=lags&lags=10%201&expect=1000");
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

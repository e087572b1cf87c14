//! Requests to a page on loopback, by hand: tests say what a browser would not.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::ChildStdout;
use std::time::Duration;

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// What is wrong, in one line.
    pub(crate) fn error(&self) -> String {
        let error = self.json()["error"].as_str().unwrap_or_default().to_string();
        assert!(!error.is_empty() && error.lines().count() == 1 && !error.contains("panicked"), "{}", self.body);
        error
    }
}

/// A page, by its port.
#[derive(Clone, Copy)]
pub(crate) struct Site(pub(crate) u16);

impl Site {
    /// From the line that names its address.
    pub(crate) fn named_in(line: &str) -> Self {
        let port = line.split("http://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
        Site(port.unwrap_or_else(|| panic!("no address in '{line}'")))
    }

    /// From the first line of a command's output.
    pub(crate) fn printed(output: &mut Option<ChildStdout>) -> Self {
        let mut line = String::new();
        BufReader::new(output.take().expect("a pipe")).read_line(&mut line).expect("a line");
        Site::named_in(&line)
    }

    pub(crate) fn connect(self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.0)).expect("a page");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a limit");
        stream
    }

    /// A request with these lines of headers besides Host and Connection.
    pub(crate) fn ask(self, what: &str, headers: &[&str], body: &[u8]) -> Reply {
        let host = format!("Host: 127.0.0.1:{}", self.0);
        self.ask_as(&host, what, headers, body)
    }

    pub(crate) fn ask_as(self, host: &str, what: &str, headers: &[&str], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let mut head = format!("{what} HTTP/1.1\r\nConnection: close\r\n");
        for line in std::iter::once(&host).chain(headers).filter(|line| !line.is_empty()) {
            head.push_str(&format!("{line}\r\n"));
        }
        let is_long = headers.iter().any(|line| line.starts_with("Content-Length") || line.starts_with("Transfer"));
        if !body.is_empty() && !is_long {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).expect("sent");
        // Who is refused early need not read the rest.
        let _ = stream.write_all(body);
        reply(stream)
    }

    pub(crate) fn get(self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), &[], b"")
    }
}

/// Reads what comes until the other side is done.
pub(crate) fn reply(mut stream: impl Read) -> Reply {
    let mut bytes = Vec::new();
    // The other side may close while it is still being sent to.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (headers, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply: '{text}'"));
    let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body =
        if headers.to_lowercase().contains("transfer-encoding: chunked") { unchunked(body) } else { body.into() };
    Reply { status, headers: headers.to_lowercase(), body }
}

fn unchunked(mut rest: &str) -> String {
    let mut text = String::new();
    while let Some((length, more)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).expect("a length");
        if length == 0 {
            break;
        }
        text.push_str(&more[..length]);
        rest = &more[length + 2..];
    }
    text
}

/// Text as part of an address.
pub(crate) fn in_address(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

//! A client that shows what came over the wire.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// What a server answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bool(bool),
    Double(String),
    Null,
    Bulk(Vec<u8>),
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
}

/// A connection.
pub struct Wire {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    out: Vec<u8>,
}

impl Wire {
    /// A connection that speaks RESP2 or RESP3.
    pub fn new(port: u16, protocol: u8) -> Wire {
        let mut wire = Wire::open(port).unwrap_or_else(|error| panic!("port {port}: {error}"));
        if protocol == 3 {
            wire.call(&["HELLO", "3"]);
        }
        wire
    }

    pub fn open(port: u16) -> std::io::Result<Wire> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        // Long enough for any command of a test; a server that hangs fails one rather than stopping all.
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Wire { reader: BufReader::with_capacity(1 << 16, stream.try_clone()?), stream, out: Vec::new() })
    }

    /// Puts a command into what is sent next.
    pub fn put<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        let _ = write!(self.out, "*{}\r\n", arguments.len());
        for argument in arguments {
            let bytes = argument.as_ref();
            let _ = write!(self.out, "${}\r\n", bytes.len());
            self.out.extend_from_slice(bytes);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub fn flush(&mut self) -> std::io::Result<()> {
        self.stream.write_all(&std::mem::take(&mut self.out))
    }

    /// The bytes of the next reply.
    pub fn receive_bytes(&mut self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        read_reply(&mut self.reader, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes of the reply to a command.
    pub fn bytes<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Vec<u8> {
        self.try_bytes(arguments).unwrap_or_else(|error| panic!("{}: {error}", shown(arguments)))
    }

    /// The bytes of the reply, or an error if the server has gone.
    pub fn try_bytes<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> std::io::Result<Vec<u8>> {
        self.put(arguments);
        self.flush()?;
        self.receive_bytes()
    }

    /// The reply to a command.
    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Reply {
        parsed(&self.bytes(arguments))
    }

    /// The reply to a command whose words have no spaces.
    pub fn say(&mut self, line: &str) -> Reply {
        self.call(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Sends a command that must succeed with OK.
    pub fn ok(&mut self, line: &str) {
        let reply = self.say(line);
        assert_eq!(reply, Reply::Simple("OK".into()), "{line}");
    }
}

/// A command for whoever reads a failure.
pub fn shown<A: AsRef<[u8]>>(arguments: &[A]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| word.as_ref().escape_ascii().to_string()).collect();
    words.join(" ").chars().take(300).collect()
}

/// The bytes of one reply, with all that is in it.
pub fn read_reply(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let start = bytes.len();
    if reader.read_until(b'\n', bytes)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let line = &bytes[start..];
    let length: i64 = String::from_utf8_lossy(&line[1..]).trim().parse().unwrap_or(0);
    let parts = match line[0] {
        b'*' | b'~' | b'>' => length.max(0),
        b'%' => 2 * length,
        b'$' | b'=' if length >= 0 => {
            let end = bytes.len();
            bytes.resize(end + length as usize + 2, 0);
            return reader.read_exact(&mut bytes[end..]);
        }
        _ => 0,
    };
    (0..parts).try_for_each(|_| read_reply(reader, bytes))
}

fn parsed(bytes: &[u8]) -> Reply {
    let mut rest = bytes;
    let reply = parse(&mut rest);
    assert!(rest.is_empty(), "bytes behind a reply: {:?}", bytes.escape_ascii().to_string());
    reply
}

fn parse(rest: &mut &[u8]) -> Reply {
    let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a line");
    let (line, after) = (&rest[..end], &rest[end + 2..]);
    *rest = after;
    let text = String::from_utf8_lossy(&line[1..]).into_owned();
    let number = || text.parse::<i64>().expect("a number");
    match line[0] {
        b'+' => Reply::Simple(text),
        b'-' => Reply::Error(text),
        b':' => Reply::Integer(number()),
        b'#' => Reply::Bool(text == "t"),
        b',' => Reply::Double(text),
        b'_' => Reply::Null,
        b'$' | b'*' if number() < 0 => Reply::Null,
        b'$' | b'=' => {
            let (bulk, after) = rest.split_at(number() as usize);
            *rest = &after[2..];
            Reply::Bulk(bulk.to_vec())
        }
        b'*' | b'~' | b'>' => Reply::Array((0..number()).map(|_| parse(rest)).collect()),
        b'%' => Reply::Map((0..number()).map(|_| (parse(rest), parse(rest))).collect()),
        other => panic!("a reply of kind {:?}", other as char),
    }
}

impl Reply {
    /// The text of a simple, bulk or error reply, or of a number.
    pub fn text(&self) -> String {
        match self {
            Reply::Simple(text) | Reply::Error(text) | Reply::Double(text) => text.clone(),
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Integer(number) => number.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Reply::Bulk(bytes) => bytes,
            other => panic!("no bytes: {other:?}"),
        }
    }

    pub fn number(&self) -> i64 {
        match self {
            Reply::Integer(number) => *number,
            other => panic!("no number: {other:?}"),
        }
    }

    pub fn items(&self) -> &[Reply] {
        match self {
            Reply::Array(items) => items,
            other => panic!("no array: {other:?}"),
        }
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// A yes or no of either protocol.
    pub fn is_yes(&self) -> bool {
        match self {
            Reply::Integer(number) if *number < 2 => *number == 1,
            Reply::Bool(yes) => *yes,
            other => panic!("neither yes nor no: {other:?}"),
        }
    }

    /// The yes or no of each item.
    pub fn yeses(&self) -> Vec<bool> {
        self.items().iter().map(Reply::is_yes).collect()
    }

    /// What a map, or the flat array that stands for it in RESP2, has under a name.
    pub fn field(&self, name: &str) -> Option<&Reply> {
        match self {
            Reply::Map(pairs) => pairs.iter().find(|(key, _)| key.text() == name).map(|(_, value)| value),
            Reply::Array(items) => items.chunks(2).find(|pair| pair[0].text() == name).map(|pair| &pair[1]),
            other => panic!("no map: {other:?}"),
        }
    }
}

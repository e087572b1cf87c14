//! Processes that talk over loopback TCP. What the examples with several processes share.
//!
//! A message is a frame: its length in four bytes, then so many bytes. Every process listens on a free port of its own and
//! says on stdout which; it ends when its stdin is closed, so that none outlives the one that started it.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Whatever goes wrong ends the example with a message.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Longer frames are refused, whoever sends them.
const LONGEST: u32 = 16 << 20;
/// Nobody waits longer than this for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

fn send(stream: &mut TcpStream, message: &[u8]) -> Result<()> {
    let length = u32::try_from(message.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| format!("a message of {} bytes is too long", message.len()))?;
    // In one write, so that no frame waits for its second half.
    Ok(stream.write_all(&[&length.to_le_bytes(), message].concat())?)
}

/// The next message; none if the other side has gone.
fn receive(stream: &mut TcpStream) -> Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(format!("a message of {length} bytes is too long").into());
    }
    let mut message = vec![0; length as usize];
    stream.read_exact(&mut message)?;
    Ok(Some(message))
}

/// A connection on which one side asks and the other answers.
pub(crate) struct Connection(TcpStream);

impl Connection {
    /// To the process that listens on this port.
    pub(crate) fn to(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection(stream))
    }

    /// Asks, and waits for the answer. An answer that begins with a 1 is an error of the other side's.
    pub(crate) fn ask(&mut self, message: &[u8]) -> Result<Vec<u8>> {
        send(&mut self.0, message)?;
        let mut answer = receive(&mut self.0)?.ok_or("the other process has gone")?;
        match answer.first() {
            Some(0) => Ok(answer.split_off(1)),
            _ => Err(String::from_utf8_lossy(answer.get(1..).unwrap_or_default()).into_owned().into()),
        }
    }
}

/// Answers what others ask, until stdin is closed.
pub(crate) fn serve(answer: impl Fn(&[u8]) -> Result<Vec<u8>> + Send + Sync + 'static) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || converse(stream, answer.as_ref()));
        }
    });
    // Whoever started us holds the other end; when it is gone, so are we.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn converse(mut stream: TcpStream, answer: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()> {
    stream.set_nodelay(true)?;
    while let Some(message) = receive(&mut stream)? {
        let (mark, text) = match answer(&message) {
            Ok(text) => (0, text),
            Err(error) => (1, error.to_string().into_bytes()),
        };
        send(&mut stream, &[&[mark], &text[..]].concat())?;
    }
    Ok(())
}

/// A process of this example that was started by this one, and ends with it.
pub(crate) struct Process {
    child: Child,
    pub(crate) port: u16,
    pub(crate) connection: Connection,
}

impl Process {
    /// Starts this program again with other arguments.
    pub(crate) fn start(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        match connected(&mut child) {
            Ok((port, connection)) => Ok(Process { child, port, connection }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }
}

fn connected(child: &mut Child) -> Result<(u16, Connection)> {
    let stdout = child.stdout.take().ok_or("no stdout to read the port from")?;
    let mut port = String::new();
    BufReader::new(stdout).read_line(&mut port)?;
    let port = port.trim().parse().map_err(|_| "the process ended before it named its port")?;
    Ok((port, Connection::to(port)?))
}

impl Drop for Process {
    /// Closing its stdin ends it; it is the child's own id that is waited for.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

//! The floors: what this machine needs for the bare steps that every runtime has to take. Taken
//! again and again between the figures, so that both see the same noise.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::samples::Samples;

/// The size of a typical model request.
const BODY: usize = 40 * 1024;
/// How many steps of the cheap kinds one sample is the mean of.
const REPEATS: u32 = 8;

/// The bare steps, and how long they took so far.
pub(crate) struct Floors {
    database: rusqlite::Connection,
    socket: UnixStream,
    http: TcpStream,
    pub(crate) empty_program: Samples,
    pub(crate) bash: Samples,
    pub(crate) round_trip: Samples,
    pub(crate) http_round_trip: Samples,
    pub(crate) commit: Samples,
}

impl Floors {
    /// Opens a database in `folder` and a connection to the mock model.
    pub(crate) fn new(folder: &Path, model: &str) -> Self {
        let database = rusqlite::Connection::open(folder.join("floor.db")).unwrap();
        database
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE line (text TEXT NOT NULL);",
            )
            .unwrap();
        let (socket, mut echo) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut byte = [0_u8; 1];
            while echo.read_exact(&mut byte).is_ok() && echo.write_all(&byte).is_ok() {}
        });
        let http = TcpStream::connect(model).unwrap();
        http.set_nodelay(true).unwrap();
        Self {
            database,
            socket,
            http,
            empty_program: Samples::default(),
            bash: Samples::default(),
            round_trip: Samples::default(),
            http_round_trip: Samples::default(),
            commit: Samples::default(),
        }
    }

    /// Takes one sample of each.
    pub(crate) fn sample(&mut self) {
        self.empty_program
            .push_time(spawned(&mut Command::new("/bin/true")));
        self.bash
            .push_time(spawned(Command::new("bash").args(["-c", "echo hi"])));
        let round_trip = mean(|| {
            self.socket.write_all(b"x").unwrap();
            self.socket.read_exact(&mut [0_u8; 1]).unwrap();
        });
        self.round_trip.push_time(round_trip);
        let request = request();
        let http_round_trip = mean(|| {
            self.http.write_all(&request).unwrap();
            read_answer(&mut self.http);
        });
        self.http_round_trip.push_time(http_round_trip);
        // Not a mean: one commit that waits for the disk would stand for all.
        for _ in 0..REPEATS {
            let start = Instant::now();
            self.database
                .execute("INSERT INTO line (text) VALUES (?1)", ["x".repeat(512)])
                .unwrap();
            self.commit.push_time(start.elapsed());
        }
    }
}

fn mean(mut step: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..REPEATS {
        step();
    }
    start.elapsed() / REPEATS
}

/// Starts a program, reads what it says and waits for its end.
fn spawned(command: &mut Command) -> Duration {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?} failed");
    start.elapsed()
}

fn request() -> Vec<u8> {
    let mut request = format!(
        "POST /floor HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {BODY}\r\n\r\n"
    )
    .into_bytes();
    request.resize(request.len() + BODY, b' ');
    request
}

/// Reads up to the end of the mock's short answer, which ends its body with a line feed.
fn read_answer(stream: &mut TcpStream) {
    let mut buffer = [0_u8; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the mock closed its connection");
        if buffer[..read].ends_with(b"}\n") {
            return;
        }
    }
}

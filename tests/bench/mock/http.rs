//! Just enough HTTP/1.1 for the mock: keep-alive, `content-length` in, whole or chunked out.

use std::fmt::Write as _;
use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answer::{self, Wanted};
use super::{PACE, Shared, lock};

/// The longest request that is read.
const LIMIT: usize = 64 * 1024 * 1024;

/// Serves one connection until it ends.
pub(super) async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(64 * 1024);
    loop {
        let Some((head, came)) = read_head(&mut stream, &mut buffer).await? else {
            return Ok(());
        };
        let header = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let end = head + content_length(&header)?;
        while buffer.len() < end {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let body = std::str::from_utf8(&buffer[head..end]).map_err(io::Error::other)?;
        if header.starts_with("post ") && header.contains("/chat/completions") {
            lock(&shared.asked).push(came);
            let wanted = shared.counted(answer::wanted(body));
            if body.contains("\"stream\":true") {
                stream_answer(&mut stream, shared, wanted).await?;
            } else {
                write_whole(&mut stream, &answer::whole(wanted)).await?;
            }
        } else if header.contains("/models") {
            let models = format!("{{\"data\":[{{\"id\":\"{}\"}}]}}", answer::MODEL);
            write_whole(&mut stream, &models).await?;
        } else {
            write_whole(&mut stream, "{}\n").await?;
        }
        buffer.drain(..end);
    }
}

/// Reads up to the end of a header block; says where that is and when its first byte was there.
async fn read_head(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(usize, Instant)>> {
    let mut came = None;
    loop {
        let found = buffer
            .windows(4)
            .take(64 * 1024)
            .position(|four| four == b"\r\n\r\n");
        if let Some(at) = found {
            return Ok(Some((at + 4, came.unwrap_or_else(Instant::now))));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
        came.get_or_insert_with(Instant::now);
    }
}

fn content_length(header: &str) -> io::Result<usize> {
    let line = header
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = line.map_or(Ok(0), |digits| digits.trim().parse());
    length
        .ok()
        .filter(|length| *length <= LIMIT)
        .ok_or_else(|| io::Error::other("the length of the request is not one that is read"))
}

async fn write_whole(stream: &mut TcpStream, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
    stream
        .write_all(format!("{head} {length}\r\n\r\n{body}").as_bytes())
        .await
}

async fn stream_answer(stream: &mut TcpStream, shared: &Shared, wanted: Wanted) -> io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut out = head.to_owned();
    push_chunk(&mut out, &answer::first(wanted));
    match wanted {
        Wanted::Burst(pieces) => {
            push_chunk(&mut out, &answer::burst(pieces));
            *lock(&shared.burst) = Some(Instant::now());
        }
        Wanted::Paced(pieces) => {
            stream.write_all(out.as_bytes()).await?;
            for _ in 0..pieces {
                tokio::time::sleep(PACE).await;
                let mut piece = String::new();
                let sent = shared.epoch.elapsed().as_nanos();
                push_chunk(&mut piece, &answer::piece(&format!("{sent} ")));
                stream.write_all(piece.as_bytes()).await?;
            }
            out.clear();
        }
        Wanted::Text | Wanted::Long(_) | Wanted::Look(_) | Wanted::Call(_) => {}
    }
    push_chunk(&mut out, &answer::last(wanted));
    out.push_str("0\r\n\r\n");
    stream.write_all(out.as_bytes()).await
}

fn push_chunk(out: &mut String, data: &str) {
    // Writing into a string cannot fail.
    write!(out, "{:x}\r\n{data}\r\n", data.len()).ok();
}

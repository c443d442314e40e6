//! A minimal HTTP/1.1 server for the daemon's HTTP client: reads requests, writes scripted answers.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::turn::{Answer, Gate, Turn};
use super::{Recorded, Shared, encode};

type Stream = BufReader<TcpStream>;

/// Whether the connection can take another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    Over,
}

/// Serves one connection until it ends.
pub(super) async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some((line, request)) = read_request(&mut stream).await? {
        let flow = if line.starts_with("POST ") && line.contains("/chat/completions") {
            let turn = shared.answer(request);
            answer(&mut stream, shared, turn, &line).await?
        } else if line.starts_with("GET ") && line.contains("/models") {
            let flow = match shared.models_gate() {
                Some(gate) => wait_at(&mut stream, shared, &gate).await?,
                None => Flow::Open,
            };
            if flow == Flow::Open {
                write_whole(&mut stream, 200, &[], &encode::models()).await?;
            }
            flow
        } else {
            write_whole(&mut stream, 404, &[], "{}").await?;
            Flow::Open
        };
        if flow == Flow::Over {
            break;
        }
    }
    Ok(())
}

async fn answer(stream: &mut Stream, shared: &Shared, turn: Turn, line: &str) -> io::Result<Flow> {
    if let Some(gate) = &turn.held
        && wait_at(stream, shared, gate).await? == Flow::Over
    {
        return Ok(Flow::Over);
    }
    let streamed = line.ends_with(STREAMED);
    match &turn.answer {
        Answer::Failure {
            status,
            body,
            headers,
        } => {
            write_whole(stream, *status, headers, body).await?;
        }
        Answer::Broken { pieces } => {
            begin_stream(stream).await?;
            if !pieces.is_empty() {
                for chunk in encode::text_chunks(pieces) {
                    write_chunk(stream, &chunk).await?;
                }
            }
            stream.flush().await?;
            return Ok(Flow::Over);
        }
        Answer::Reply { pieces, calls } if streamed => {
            begin_stream(stream).await?;
            for chunk in encode::text_chunks(pieces) {
                write_chunk(stream, &chunk).await?;
            }
            if let Some(gate) = &turn.paused
                && wait_at(stream, shared, gate).await? == Flow::Over
            {
                return Ok(Flow::Over);
            }
            for chunk in encode::last_chunks(calls, &turn.ending()) {
                write_chunk(stream, &chunk).await?;
            }
            stream.write_all(b"0\r\n\r\n").await?;
            stream.flush().await?;
        }
        Answer::Reply { pieces, calls } => {
            if let Some(gate) = &turn.paused
                && wait_at(stream, shared, gate).await? == Flow::Over
            {
                return Ok(Flow::Over);
            }
            write_whole(
                stream,
                200,
                &[],
                &encode::whole(pieces, calls, &turn.ending()),
            )
            .await?;
        }
    }
    Ok(Flow::Open)
}

/// Waits until the gate opens or the client closes the connection.
async fn wait_at(stream: &mut Stream, shared: &Shared, gate: &Gate) -> io::Result<Flow> {
    tokio::select! {
        () = gate.pass() => Ok(Flow::Open),
        read = stream.fill_buf() => match read {
            Ok(bytes) if !bytes.is_empty() => Err(io::Error::other("a request inside a request")),
            Ok(_) | Err(_) => {
                shared.client_hung_up();
                Ok(Flow::Over)
            }
        },
    }
}

async fn write_whole(
    stream: &mut Stream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.flush().await
}

async fn begin_stream(stream: &mut Stream) -> io::Result<()> {
    let head = "HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await
}

async fn write_chunk(stream: &mut Stream, chunk: &str) -> io::Result<()> {
    let framed = format!("{:x}\r\n{chunk}\r\n", chunk.len());
    stream.write_all(framed.as_bytes()).await?;
    stream.flush().await
}

/// Marks the request line of a request that wants a streamed answer.
const STREAMED: &str = " (streamed)";

/// Reads a request; returns `None` if the client has closed the connection.
async fn read_request(stream: &mut Stream) -> io::Result<Option<(String, Recorded)>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut line = line.trim_end().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut request = Recorded {
        headers,
        body: serde_json::Value::Null,
        raw: String::new(),
    };
    let length = request
        .header("content-length")
        .and_then(|text| text.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    if !body.is_empty() {
        request.body = serde_json::from_slice(&body)?;
        request.raw = String::from_utf8(body).map_err(io::Error::other)?;
    }
    if request.body["stream"] == true {
        line.push_str(STREAMED);
    }
    Ok(Some((line, request)))
}

//! A tiny HTTP server on loopback for the tests of this module: scripted replies, recorded requests.
//!
//! Each request takes the next reply of the script; one too many is answered with status 599. It
//! speaks just enough HTTP/1.1 for our client, keeps connections open and can also play a proxy.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// One reply of the script.
#[derive(Debug, Clone)]
pub struct Scripted {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The body ends as HTTP wants it.
    Complete,
    /// The connection closes in the middle of the body.
    Cut,
    /// Nothing more comes, the connection stays open.
    Stall,
    /// Not even the head of the response comes.
    Silence,
}

impl Scripted {
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::new(status, "application/json", [body.to_string().into_bytes()])
    }

    pub fn events<T: Into<Vec<u8>>>(chunks: impl IntoIterator<Item = T>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", chunks)
    }

    pub fn new<T: Into<Vec<u8>>>(
        status: u16,
        media_type: &str,
        chunks: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), media_type.to_owned())],
            chunks: chunks.into_iter().map(Into::into).collect(),
            ending: Ending::Complete,
        }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }
}

/// A request as the server saw it.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// Method and target, such as `POST /v1/models`.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Shared {
    script: VecDeque<Scripted>,
    received: Vec<Received>,
    connections: usize,
}

/// The server; dropping it ends it and its connections.
pub struct TestServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

impl TestServer {
    pub async fn start(script: impl IntoIterator<Item = Scripted>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared {
            script: script.into_iter().collect(),
            ..Shared::default()
        }));
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                serving.lock().connections += 1;
                let shared = serving.clone();
                connections.spawn(async move {
                    // A client that goes away early is part of several tests.
                    serve(stream, &shared).await.ok();
                });
            }
        });
        Self {
            address,
            shared,
            task,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.lock().received.clone()
    }

    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, shared: &Mutex<Shared>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await? {
        let reply = {
            let mut shared = shared.lock();
            shared.received.push(request);
            shared.script.pop_front()
        };
        let reply =
            reply.unwrap_or_else(|| Scripted::new(599, "text/plain", ["the script is over"]));
        if reply.ending == Ending::Silence {
            std::future::pending::<()>().await;
        }
        let mut head = format!(
            "HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n",
            reply.status
        );
        for (name, value) in &reply.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        for chunk in reply.chunks.iter().filter(|chunk| !chunk.is_empty()) {
            stream
                .write_all(format!("{:x}\r\n", chunk.len()).as_bytes())
                .await?;
            stream.write_all(chunk).await?;
            stream.write_all(b"\r\n").await?;
            stream.flush().await?;
        }
        match reply.ending {
            Ending::Complete => stream.write_all(b"0\r\n\r\n").await?,
            Ending::Cut => return Ok(()),
            Ending::Stall | Ending::Silence => std::future::pending::<()>().await,
        }
        stream.flush().await?;
    }
    Ok(())
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Received>> {
    let mut request = Received::default();
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    request.line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        request
            .headers
            .push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = request
        .header("content-length")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).await?;
    Ok(Some(request))
}

//! The page that a person is sent back to after a login: a listener on the loopback interface that takes
//! one answer and is gone.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use loopd_mcp::oauth::{Callback, PendingLogin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATH: &str = "/callback";
/// How long one request may take, and how large its head may be.
const READ_WITHIN: Duration = Duration::from_secs(5);
const LARGEST_HEAD: usize = 16 * 1024;
/// The longest text on the page.
const LONGEST_TEXT: usize = 500;

/// A listener for the answer to one login.
pub(super) struct CallbackListener {
    listener: TcpListener,
    port: u16,
}

impl CallbackListener {
    /// Listens on a port: the fixed one or none; else one of the wanted ones or any.
    pub(super) async fn open(fixed: Option<u16>, wanted: Option<u16>) -> io::Result<Self> {
        let listener = match (fixed, wanted) {
            (Some(port), _) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?,
            (None, Some(port)) => match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                Ok(listener) => listener,
                // The program registers again with another one.
                Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            },
            (None, None) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        };
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns where people are sent back to.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the answer that belongs to a login. Others are refused and change nothing. Dropping
    /// the future stops listening.
    pub(super) async fn answer(&self, pending: &PendingLogin) -> io::Result<(Callback, Page)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            // One at a time, each for a moment: nobody else has business here.
            let taken = tokio::time::timeout(READ_WITHIN, take(stream, pending)).await;
            if let Ok(Ok(Some(answered))) = taken {
                return Ok(answered);
            }
        }
    }
}

/// The page of a person who was sent back; it is shown once the outcome is known.
pub(super) struct Page(TcpStream);

impl Page {
    /// Shows how the login ended.
    pub(super) async fn show(self, text: &str) {
        let shown = tokio::time::timeout(READ_WITHIN, respond(self.0, "200 OK", text)).await;
        if !matches!(shown, Ok(Ok(()))) {
            tracing::debug!("the page of a login was closed before it was shown");
        }
    }
}

/// Takes a request; `None` if it is not the answer to the login.
async fn take(
    mut stream: TcpStream,
    pending: &PendingLogin,
) -> io::Result<Option<(Callback, Page)>> {
    let mut head = Vec::new();
    let mut chunk = [0_u8; 2048];
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await?;
        if read == 0 || head.len() + read > LARGEST_HEAD {
            return Ok(None);
        }
        head.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if method != Some("GET") || path != PATH {
        respond(stream, "404 Not Found", "There is nothing here.").await?;
        return Ok(None);
    }
    let callback = Callback::read(query);
    if !pending.is_answered_by(&callback) {
        let text = "This answer belongs to another login. Nothing was changed.";
        respond(stream, "400 Bad Request", text).await?;
        return Ok(None);
    }
    Ok(Some((callback, Page(stream))))
}

async fn respond(mut stream: TcpStream, status: &str, text: &str) -> io::Result<()> {
    let text: String = text.chars().take(LONGEST_TEXT).collect();
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let body =
        format!("<!doctype html><meta charset=\"utf-8\"><title>loopd</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

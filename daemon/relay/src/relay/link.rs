//! One client of a relay: moves its bytes to the daemon and back, and goes on with the next daemon
//! when the home was emptied.
//!
//! The link tracks frames but does not parse them. It changes to another daemon only when both
//! directions are between two frames.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use loopd_proto::daemon_connection;
use loopd_proto::error::AUTHENTICATION_FAILED;
use loopd_proto::params::launch::{
    HomeEmptiedParams, JOIN, JoinNotification, JoinTransport, LinkState,
};
use loopd_proto::wire::{ErrorObject, FrameTracker, Framing, notification, refusal};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::upstream::{Daemon, Upstream};

/// How many bytes are read at a time.
const PIECE: usize = 16 * 1024;
/// How many sent bytes are kept until the daemon sends something, in case it never read them.
const MOST_UNTAKEN: usize = 1024 * 1024;
/// How long a daemon that leaves its emptied home may take to end a link.
const END_WAIT: Duration = Duration::from_secs(10);
/// How long after the end of a link the daemon's `loopd.homeEmptied` may arrive.
const WORD_WAIT: Duration = Duration::from_millis(500);

/// How long a TCP client may take to send its first byte.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// How many sent bytes of a TCP client are kept like that. It may not have shown its token yet.
const MOST_UNTAKEN_TCP: usize = 64 * 1024;

/// Which side ended a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Client,
    /// The daemon is gone.
    Daemon,
    /// The daemon lives, but does not serve this client any more, for this reason.
    Refused(String),
}

/// One client's connection.
pub(super) struct Link<I, O> {
    number: u64,
    transport: JoinTransport,
    input: I,
    output: O,
    /// Track the frames from the client (`outward`) and to the client (`inward`).
    outward: FrameTracker,
    inward: FrameTracker,
    /// Bytes of the client that were sent to no daemon yet.
    waiting: Vec<u8>,
    /// The state of this connection at the last daemon.
    state: LinkState,
}

/// Why a link stopped using a daemon.
enum Parting {
    End(End),
    /// The home was emptied; the link goes on with the next daemon.
    Emptied(Arc<HomeEmptiedParams>),
}

impl<I: AsyncRead + Unpin, O: AsyncWrite + Unpin> Link<I, O> {
    pub(super) fn new(number: u64, transport: JoinTransport, input: I, output: O) -> Self {
        Self {
            number,
            transport,
            input,
            output,
            outward: FrameTracker::default(),
            inward: FrameTracker::default(),
            waiting: Vec::new(),
            state: LinkState::default(),
        }
    }

    /// Reads the first bytes of the client. Returns the reason if the client is not served because
    /// it speaks another protocol, as a browser does, or is a TCP client that sends nothing. A client
    /// that started the relay may wait as long as it likes.
    pub(super) async fn open(mut self) -> Result<Self, String> {
        let mut piece = vec![0; PIECE];
        let reading = self.input.read(&mut piece);
        let read = match self.transport {
            JoinTransport::Pipe => reading.await,
            JoinTransport::Tcp => {
                let Ok(read) = timeout(FIRST_WAIT, reading).await else {
                    let why = format!("no request came within {} s", FIRST_WAIT.as_secs());
                    self.tell(&why).await;
                    return Err(why);
                };
                read
            }
        };
        piece.truncate(read.unwrap_or(0));
        Framing::detect(&piece).map_err(|error| error.to_string())?;
        self.waiting = piece;
        Ok(self)
    }

    /// Moves bytes until the client or the daemon is gone.
    pub(super) async fn run(mut self, upstream: &Upstream) -> anyhow::Result<End> {
        let mut last: Option<Arc<Daemon>> = None;
        loop {
            // The next daemon starts only when a client sends something: otherwise it would
            // recreate a home that was deleted for good. Once it runs, every link joins it.
            if self.waiting.is_empty() {
                let mut piece = vec![0; PIECE];
                tokio::select! {
                    read = self.input.read(&mut piece) => {
                        piece.truncate(read.unwrap_or(0));
                        if piece.is_empty() {
                            return Ok(End::Client);
                        }
                        self.waiting = piece;
                    }
                    () = next_after(upstream, last.as_ref()) => {}
                }
            }
            let daemon = upstream.daemon().await?;
            match self.exchange(&daemon).await? {
                Parting::End(end) => return Ok(end),
                Parting::Emptied(emptied) => {
                    if let Some(state) = emptied.links.get(&self.number) {
                        self.state = state.clone();
                    }
                }
            }
            last = Some(daemon);
        }
    }

    /// Tells the client why it is not served.
    async fn tell(&mut self, why: &str) {
        let reason = ErrorObject::new(AUTHENTICATION_FAILED.into(), why);
        let mut frame = Vec::new();
        Framing::ContentLength.encode(&refusal(&reason), &mut frame);
        // A client that does not read is cut without a reason.
        timeout(WORD_WAIT, self.output.write_all(&frame)).await.ok();
    }

    /// Moves bytes between the client and one daemon.
    async fn exchange(&mut self, daemon: &Daemon) -> anyhow::Result<Parting> {
        let stream = match daemon_connection::connect_socket(daemon.socket()).await {
            Ok(stream) => stream,
            Err(error) => {
                // The daemon may be leaving its emptied home at this moment.
                return match timeout(WORD_WAIT, daemon.left()).await {
                    Ok(Some(emptied)) => Ok(Parting::Emptied(emptied)),
                    Ok(None) => Ok(Parting::End(End::Daemon)),
                    Err(_) => Err(error).context("the daemon cannot be reached"),
                };
            }
        };
        let (from_daemon, to_daemon) = tokio::io::split(stream);
        let waiting = std::mem::take(&mut self.waiting);
        let delivered = AtomicBool::new(false);
        let mut sending = Sending {
            input: &mut self.input,
            to_daemon,
            borders: &mut self.outward,
            writing: false,
            untaken: Some(Vec::new()),
            most_untaken: match self.transport {
                JoinTransport::Pipe => MOST_UNTAKEN,
                JoinTransport::Tcp => MOST_UNTAKEN_TCP,
            },
            delivered: &delivered,
            waiting: Vec::new(),
        };
        let receiving = Receiving {
            from_daemon,
            output: &mut self.output,
            borders: &mut self.inward,
            delivered: &delivered,
        };
        let join = JoinNotification {
            launch_id: daemon.launch_id().to_owned(),
            transport: self.transport,
            link: Some(self.number),
            state: self.state.clone(),
        };
        let outward = sending.run(daemon, &join, &waiting);
        let parting = converse(daemon, self.number, outward, receiving.run()).await;
        let (untaken, clean) = (sending.untaken.take(), !sending.writing);
        let unsent = std::mem::take(&mut sending.waiting);
        let emptied = match parting {
            Parting::Emptied(emptied) => emptied,
            end @ Parting::End(_) => return Ok(end),
        };
        if !emptied.links.contains_key(&self.number) {
            // The daemon left before it read a byte of this link, so the next one gets them all.
            let Some(untaken) = untaken.filter(|_| !delivered.into_inner()) else {
                bail!("the home was emptied while a client was sending; start again");
            };
            self.outward = FrameTracker::default();
            self.waiting = [untaken, unsent].concat();
            return Ok(Parting::Emptied(emptied));
        }
        if !clean || !self.outward.is_between_frames() || !self.inward.is_between_frames() {
            bail!("the home was emptied while a message was under way; start again");
        }
        self.waiting = unsent;
        Ok(Parting::Emptied(emptied))
    }
}

/// Drives both directions until one of them ends for good.
async fn converse(
    daemon: &Daemon,
    link: u64,
    outward: impl Future<Output = Sent>,
    inward: impl Future<Output = Received>,
) -> Parting {
    let (mut outward, mut inward) = (pin!(outward), pin!(inward));
    let received = tokio::select! {
        sent = &mut outward => match sent {
            Sent::All => {
                // The daemon bounds by itself how long it writes its last replies.
                inward.await;
                return Parting::End(End::Client);
            }
            Sent::UpToBorder | Sent::Failed => {
                let ended = timeout(END_WAIT, inward).await;
                ended.unwrap_or(Received::All)
            }
        },
        received = &mut inward => received,
    };
    match received {
        Received::Unheard => Parting::End(End::Client),
        Received::All => tokio::select! {
            left = timeout(WORD_WAIT, daemon.left()) => match left {
                Ok(Some(emptied)) => Parting::Emptied(emptied),
                Ok(None) => Parting::End(End::Daemon),
                Err(_) => Parting::End(End::Refused("it gave no reason".to_owned())),
            },
            reason = daemon.reason_of(link) => Parting::End(End::Refused(reason)),
        },
    }
}

async fn next_after(upstream: &Upstream, last: Option<&Arc<Daemon>>) {
    match last {
        Some(last) => upstream.after(last).await,
        None => std::future::pending().await,
    }
}

/// The direction from the client to one daemon.
struct Sending<'a, I, W> {
    input: &'a mut I,
    to_daemon: W,
    borders: &'a mut FrameTracker,
    /// True during a write. If the write is dropped, nobody knows how many bytes were sent.
    writing: bool,
    /// All bytes that were sent; `None` once the daemon has sent something or they are too many.
    untaken: Option<Vec<u8>>,
    most_untaken: usize,
    delivered: &'a AtomicBool,
    /// Bytes after the end of the frame at which the link stopped sending.
    waiting: Vec<u8>,
}

/// Why the link sends nothing more to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// The client closed its half of the connection.
    All,
    /// The home was emptied; the link stopped at the end of a frame.
    UpToBorder,
    /// The daemon is gone.
    Failed,
}

impl<I: AsyncRead + Unpin, W: AsyncWrite + Unpin> Sending<'_, I, W> {
    async fn run(&mut self, daemon: &Daemon, join: &JoinNotification, first: &[u8]) -> Sent {
        self.borders.follow(first);
        let framing = self.borders.framing().unwrap_or(Framing::ContentLength);
        let mut hello = Vec::new();
        framing.encode(&notification(JOIN, join), &mut hello);
        hello.extend_from_slice(first);
        self.keep(first);
        let sent = match self.write(&hello).await {
            Ok(()) => self.copy(daemon).await,
            Err(_) => Sent::Failed,
        };
        // This tells the daemon that nothing more comes. If it is gone, the read half reports that.
        self.to_daemon.shutdown().await.ok();
        sent
    }

    async fn copy(&mut self, daemon: &Daemon) -> Sent {
        let mut left = pin!(daemon.left());
        let (mut notified, mut stopping) = (false, false);
        let mut piece = vec![0; PIECE];
        while !(stopping && self.borders.is_between_frames()) {
            let read = tokio::select! {
                emptied = &mut left, if !notified => {
                    if emptied.is_none() {
                        return Sent::Failed;
                    }
                    (notified, stopping) = (true, true);
                    continue;
                }
                read = self.input.read(&mut piece) => read,
            };
            let bytes = piece.get(..read.unwrap_or(0)).unwrap_or_default();
            if bytes.is_empty() {
                return Sent::All;
            }
            let begun = self.borders.follow_frame(bytes);
            let (begun, next) = bytes.split_at_checked(begun).unwrap_or((bytes, &[]));
            stopping = stopping || !(next.is_empty() || daemon.serves_home());
            let bytes = if stopping {
                self.waiting = next.to_vec();
                begun
            } else {
                self.borders.follow(next);
                bytes
            };
            self.keep(bytes);
            if self.write(bytes).await.is_err() {
                return Sent::Failed;
            }
        }
        // The link waits for the daemon's message before it ends the stream: a daemon that has not
        // noticed yet would take the end of the stream for a client that wants no more answers.
        if !notified && !matches!(timeout(END_WAIT, left).await, Ok(Some(_))) {
            return Sent::Failed;
        }
        Sent::UpToBorder
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writing = true;
        self.to_daemon.write_all(bytes).await?;
        self.to_daemon.flush().await?;
        self.writing = false;
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let Some(untaken) = &mut self.untaken else {
            return;
        };
        if self.delivered.load(Ordering::Relaxed) || untaken.len() + bytes.len() > self.most_untaken
        {
            self.untaken = None;
        } else {
            untaken.extend_from_slice(bytes);
        }
    }
}

/// The direction from one daemon to the client.
struct Receiving<'a, R, O> {
    from_daemon: R,
    output: &'a mut O,
    borders: &'a mut FrameTracker,
    delivered: &'a AtomicBool,
}

/// Why the link sends nothing more to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    /// The daemon ended the connection.
    All,
    /// The client no longer reads.
    Unheard,
}

impl<R: AsyncRead + Unpin, O: AsyncWrite + Unpin> Receiving<'_, R, O> {
    async fn run(mut self) -> Received {
        let mut piece = vec![0; PIECE];
        loop {
            let read = self.from_daemon.read(&mut piece).await.unwrap_or(0);
            let bytes = piece.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                return Received::All;
            }
            self.delivered.store(true, Ordering::Relaxed);
            self.borders.follow(bytes);
            let written = self.output.write_all(bytes).await;
            if written.is_err() || self.output.flush().await.is_err() {
                return Received::Unheard;
            }
        }
    }
}

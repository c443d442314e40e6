//! `loopd` started as an SDK starts it, and the thin end of its wire: calls by name, events with the
//! time they came.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::wire::{
    self, ErrorObject, Limits, METHOD_NOT_FOUND, Notification, Peer, Reply, Request, Service,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::mock::{MODEL, Mock};
use crate::usage;

/// How long anything may take before the whole run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// An event of any session, and when it came.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) kind: String,
    /// The text of a delta, or what went wrong.
    pub(crate) text: Option<String>,
}

/// The listening end of a connection.
struct Ear {
    heard: mpsc::Sender<Heard>,
    guarded: Arc<AtomicUsize>,
}

#[derive(Deserialize)]
struct Params {
    event: Event,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    data: Data,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Data {
    delta_content: Option<String>,
    message: Option<String>,
}

impl Service for Ear {
    fn call(&self, _peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        if request.method == "hooks.invoke" {
            // The hooks of this client have nothing to say, and say so at once.
            let params = request.params.as_ref().map_or("", |params| params.get());
            if params.contains("\"preToolUse\"") {
                self.guarded.fetch_add(1, Ordering::Relaxed);
            }
            return futures::future::ready(Reply::result(&request.id, &json!({}))).boxed();
        }
        let error = ErrorObject::new(METHOD_NOT_FOUND, request.method.clone());
        futures::future::ready(Reply::error(&request.id, error)).boxed()
    }

    fn notify(&self, _peer: &Peer, notification: Notification) {
        let at = Instant::now();
        if notification.method != "session.event" {
            return;
        }
        let params = notification.params.expect("an event has parameters");
        let Params { event } = serde_json::from_str(params.get()).unwrap();
        let heard = Heard {
            at,
            kind: event.kind,
            text: event.data.delta_content.or(event.data.message),
        };
        self.heard
            .try_send(heard)
            .expect("nobody listened for long");
    }
}

/// Where `loopd` is and what it is started with.
#[derive(Clone)]
pub(crate) struct Bed {
    pub(crate) program: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) mock: Mock,
}

impl Bed {
    /// The process that serves this home, once one does.
    pub(crate) fn daemon(&self) -> u32 {
        let text = std::fs::read_to_string(self.home.join("loopd.lock")).unwrap();
        let owner: Value = serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap();
        u32::try_from(owner["pid"].as_u64().expect("the owner says its pid")).unwrap()
    }

    /// Ends the daemon with a signal and waits until it is gone.
    pub(crate) async fn end_daemon(&self, signal: rustix::process::Signal) {
        let pid = self.daemon();
        let Some(process) = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        else {
            return;
        };
        // It may have left by itself.
        rustix::process::kill_process(process, signal).ok();
        let start = Instant::now();
        while usage::is_alive(pid) {
            assert!(start.elapsed() < PATIENCE, "the daemon {pid} does not end");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Where relays write why they ended: killing their daemon is part of the run.
    fn log(&self) -> std::fs::File {
        let mut options = std::fs::OpenOptions::new();
        let path = self.work.join("relay.log");
        options.append(true).create(true).open(path).unwrap()
    }

    /// Starts the process of an SDK.
    pub(crate) fn start(&self) -> Client {
        Client::spawn(self)
    }
}

/// The process of an SDK and its connection.
pub(crate) struct Client {
    child: Child,
    pub(crate) spawned: Instant,
    peer: Peer,
    heard: mpsc::Receiver<Heard>,
    guarded: Arc<AtomicUsize>,
    bed: Bed,
}

impl Client {
    fn spawn(bed: &Bed) -> Self {
        let spawned = Instant::now();
        let mut child = Command::new(&bed.program)
            .args(["--headless", "--no-auto-update", "--stdio", "--yolo"])
            .env_clear()
            .env("LOOPD_HOME", &bed.home)
            .env("HOME", &bed.work)
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("LOOPD_IDLE_TIMEOUT", "10")
            .current_dir(&bed.work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(bed.log())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stream = tokio::io::join(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let (sender, heard) = mpsc::channel(64 * 1024);
        let guarded = Arc::<AtomicUsize>::default();
        let ear = Ear {
            heard: sender,
            guarded: guarded.clone(),
        };
        let (peer, driving) = wire::connect(stream, Arc::new(ear), Limits::default());
        tokio::spawn(driving);
        Self {
            child,
            spawned,
            peer,
            heard,
            guarded,
            bed: bed.clone(),
        }
    }

    /// The relay and the daemon.
    pub(crate) fn pids(&self) -> Vec<u32> {
        vec![self.relay(), self.bed.daemon()]
    }

    /// The relay alone.
    pub(crate) fn relay(&self) -> u32 {
        self.child.id().expect("the relay runs")
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.peer.request::<_, Value>(method, &params);
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{method} was not answered"));
        answer.unwrap_or_else(|error| panic!("{method} failed: {error}"))
    }

    /// The handshake that every SDK begins with.
    pub(crate) async fn connect(&self) {
        self.call("connect", json!({})).await;
    }

    fn session_params(&self, delivery: Delivery) -> Value {
        json!({
            "model": MODEL,
            "provider": {"type": "openai", "baseUrl": self.bed.mock.url(), "apiKey": "none"},
            "streaming": delivery == Delivery::Streamed,
            "workingDirectory": self.bed.work,
        })
    }

    pub(crate) async fn create(&self, delivery: Delivery) -> String {
        self.open(self.session_params(delivery)).await
    }

    /// How many tool calls this client's hooks were asked about so far.
    pub(crate) fn guarded(&self) -> usize {
        self.guarded.load(Ordering::Relaxed)
    }

    /// Creates a session that this client's hooks guard.
    pub(crate) async fn create_hooked(&self) -> String {
        let mut params = self.session_params(Delivery::Whole);
        params["hooks"] = true.into();
        self.open(params).await
    }

    /// Creates a session with more options.
    pub(crate) async fn create_with(&self, more: Value) -> String {
        let mut params = self.session_params(Delivery::Whole);
        for (name, value) in more.as_object().expect("options are an object") {
            params[name] = value.clone();
        }
        self.open(params).await
    }

    async fn open(&self, params: Value) -> String {
        let opened = self.call("session.create", params).await;
        opened["sessionId"]
            .as_str()
            .expect("a session has an id")
            .to_owned()
    }

    pub(crate) async fn resume(&self, session: &str) {
        let mut params = self.session_params(Delivery::Whole);
        params["sessionId"] = session.into();
        self.call("session.resume", params).await;
    }

    pub(crate) async fn send(&self, session: &str, prompt: &str) {
        let params = json!({"sessionId": session, "prompt": prompt});
        self.call("session.send", params).await;
    }

    /// The next event; what went wrong in a session ends the run.
    pub(crate) async fn next(&mut self) -> Heard {
        let heard = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        let heard = heard.expect("an event was waited for in vain");
        let heard = heard.expect("the connection lives");
        assert!(heard.kind != "session.error", "a session failed: {heard:?}");
        heard
    }

    /// Waits for an event of this kind and says when it came.
    pub(crate) async fn until(&mut self, kind: &str) -> Instant {
        loop {
            let heard = self.next().await;
            if heard.kind == kind {
                return heard.at;
            }
        }
    }

    /// Sends a prompt and waits until the session has nothing more to do; says how long that took.
    pub(crate) async fn turn(&mut self, session: &str, prompt: &str) -> Duration {
        let start = Instant::now();
        self.send(session, prompt).await;
        self.until("session.idle").await - start
    }

    /// Closes the pipes as an SDK does and waits for the relay's end.
    pub(crate) async fn leave(mut self) {
        self.peer.close(wire::CloseReason::Done);
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("the relay ends with its client").unwrap();
    }

    /// Waits for the end of a relay whose daemon was killed.
    pub(crate) async fn lost(mut self) {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("the relay ends with its daemon").unwrap();
    }
}

/// How the model's answers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Whole,
    Streamed,
}

/// A home and a work folder that are new.
pub(crate) fn fresh(folder: &Path, name: &str, program: &Path, mock: &Mock) -> Bed {
    let bed = Bed {
        program: program.to_path_buf(),
        home: folder.join(name).join("home"),
        work: folder.join(name).join("work"),
        mock: mock.clone(),
    };
    std::fs::create_dir_all(&bed.work).unwrap();
    bed
}

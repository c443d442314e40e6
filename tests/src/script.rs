//! A scripted model served over real HTTP on loopback, speaking chat completions.
//!
//! A test says in advance what the model is asked and what it answers. Every request is recorded
//! and read by the strict validator; a request that is not valid, or not the expected one, fails
//! the test when the script is finished. A turn can be held back or paused by a [`Gate`], which the
//! test opens; nothing waits for the clock.

mod encode;
mod http;
mod turn;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use turn::{Call, Gate, Turn, call};

use crate::validator::{check_request, text_of};
use crate::within;

/// A request that the model got.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// The body as it came in, byte by byte.
    pub raw: String,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(header, _)| header == name)?;
        Some(&found.1)
    }

    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The names of the tools the model was told about.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect()
    }

    /// The texts of the tool results that the request ends with.
    pub fn last_results(&self) -> Vec<String> {
        let messages = self.messages();
        let is_result = |message: &&Value| message["role"] == "tool";
        let count = messages.iter().rev().take_while(is_result).count();
        messages[messages.len() - count..]
            .iter()
            .map(text_of)
            .collect()
    }

    /// The text that the user said first.
    pub fn first_user_text(&self) -> String {
        let mut messages = self.messages().iter();
        let found = messages.find(|message| message["role"] == "user");
        found.map(text_of).unwrap_or_default()
    }

    /// The text that the user said last.
    pub fn last_user_text(&self) -> String {
        let mut messages = self.messages().iter().rev();
        let found = messages.find(|message| message["role"] == "user");
        found.map(text_of).unwrap_or_default()
    }
}

/// How the model finds its answer to a request.
pub(crate) enum Plan {
    /// One after the other.
    Turns(VecDeque<Turn>),
    /// By what is asked.
    Answering(Box<dyn FnMut(&Recorded) -> Turn + Send>),
    /// Several conversations, each told by something in its first message and in an order of its own.
    Voices(Vec<(String, VecDeque<Turn>)>),
}

/// The next turn of the conversation that a request belongs to.
fn voice(voices: &mut [(String, VecDeque<Turn>)], request: &Recorded) -> Result<Turn, String> {
    let first = request.first_user_text();
    let Some((name, turns)) = voices
        .iter_mut()
        .find(|(name, _)| first.contains(name.as_str()))
    else {
        return Err(format!(
            "nobody answers a conversation that begins with: {first}"
        ));
    };
    let Some(turn) = turns.pop_front() else {
        let last = request.messages().last().unwrap_or(&Value::Null);
        return Err(format!(
            "{name} was asked after the end of its part: {last}"
        ));
    };
    match turn.mismatch(request) {
        None => Ok(turn),
        Some(why) => Err(format!("{name} was not asked what was expected: {why}")),
    }
}

pub(crate) struct Inner {
    plan: Plan,
    requests: Vec<Recorded>,
    forgets: bool,
    faults: Vec<String>,
    hung_up: usize,
    models: Option<Gate>,
}

pub(crate) struct Shared {
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Records a request and finds the turn that answers it.
    pub(crate) fn answer(&self, request: Recorded) -> Turn {
        let mut inner = self.lock();
        let number = inner.requests.len() + 1;
        let wrong = check_request(&request.body).err();
        let turn = match (&mut inner.plan, wrong) {
            (_, Some(wrong)) => Err(format!("request {number} is not valid: {wrong}")),
            (Plan::Answering(answer), None) => Ok(answer(&request)),
            (Plan::Voices(voices), None) => voice(voices, &request),
            (Plan::Turns(turns), None) => match turns.pop_front() {
                Some(turn) => match turn.mismatch(&request) {
                    None => Ok(turn),
                    Some(why) => Err(format!("request {number} is not the expected one: {why}")),
                },
                None => Err(format!(
                    "request {number} came after the end of the script: {}",
                    request.messages().last().unwrap_or(&Value::Null)
                )),
            },
        };
        if !inner.forgets {
            inner.requests.push(request);
        }
        let turn = turn.unwrap_or_else(|fault| {
            inner.faults.push(fault.clone());
            Turn::any().fails(400, &fault)
        });
        drop(inner);
        self.changed();
        turn
    }

    pub(crate) fn models_gate(&self) -> Option<Gate> {
        self.lock().models.clone()
    }

    pub(crate) fn client_hung_up(&self) {
        self.lock().hung_up += 1;
        self.changed();
    }
}

/// The model and its server.
pub struct Script {
    url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
    finished: bool,
}

impl Script {
    /// A model that is asked exactly this, in this order.
    pub async fn play(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::start(Plan::Turns(turns.into_iter().collect())).await
    }

    /// A model in several conversations at once, each in an order of its own.
    pub async fn voices<'a>(voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Self {
        let voices = voices
            .into_iter()
            .map(|(name, turns)| (name.to_owned(), turns.into()));
        Self::start(Plan::Voices(voices.collect())).await
    }

    /// A model that answers by what it is asked.
    pub async fn answering(answer: impl FnMut(&Recorded) -> Turn + Send + 'static) -> Self {
        Self::start(Plan::Answering(Box::new(answer))).await
    }

    async fn start(plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            inner: Mutex::new(Inner {
                plan,
                requests: Vec::new(),
                forgets: false,
                faults: Vec::new(),
                hung_up: 0,
                models: None,
            }),
            changes: watch::Sender::new(0),
        });
        let serving = shared.clone();
        let server = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                connections.spawn(async move {
                    // A client that goes away in the middle is part of several tests.
                    http::serve(stream, &shared).await.ok();
                });
            }
        });
        Self {
            url,
            shared,
            server,
            finished: false,
        }
    }

    /// Keeps no requests, for tests with so many that they would fill the memory.
    #[must_use]
    pub fn forgetful(self) -> Self {
        self.shared.lock().forgets = true;
        self
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Holds the list of models back until the gate opens.
    pub fn hold_models(&self, gate: &Gate) {
        self.shared.lock().models = Some(gate.clone());
    }

    /// The conversations the model was asked to go on with, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// The last request so far.
    pub fn last_request(&self) -> Recorded {
        self.requests().pop().expect("the model was asked")
    }

    /// Waits until the model has got this many requests.
    pub async fn asked(&self, count: usize) -> Recorded {
        let wait = self.until(|inner| inner.requests.get(count - 1).cloned());
        within(&format!("request {count} to the model"), wait).await
    }

    /// Waits until a client has closed its connection while the model held its answer back.
    pub async fn hung_up(&self) {
        let wait = self.until(|inner| (inner.hung_up > 0).then_some(()));
        within("the daemon to hang up on the model", wait).await;
    }

    async fn until<T>(&self, look: impl Fn(&Inner) -> Option<T>) -> T {
        let mut changes = self.shared.changes.subscribe();
        loop {
            if let Some(found) = look(&self.shared.lock()) {
                return found;
            }
            changes.changed().await.unwrap();
        }
    }

    /// Fails when anything unexpected was asked, or something expected was not.
    pub fn finish(&mut self) {
        self.finished = true;
        let inner = self.shared.lock();
        assert!(
            inner.faults.is_empty(),
            "the model was asked wrongly:\n{}",
            inner.faults.join("\n")
        );
        if let Plan::Turns(turns) = &inner.plan {
            assert!(turns.is_empty(), "the model was never asked: {turns:?}");
        }
        if let Plan::Voices(voices) = &inner.plan {
            for (name, turns) in voices {
                assert!(turns.is_empty(), "{name} was never asked: {turns:?}");
            }
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.server.abort();
        assert!(
            self.finished || std::thread::panicking(),
            "a script has to be finished, so that its faults are seen"
        );
    }
}

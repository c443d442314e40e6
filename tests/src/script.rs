//! A scripted model, served over real HTTP on loopback in the chat completions format.
//!
//! A test defines in advance which requests the model gets and what it answers. Every request is
//! recorded and checked by the strict validator. A request that is invalid or not the expected one
//! fails the test when the script is finished. A [`Gate`] can hold back or pause a turn until the
//! test opens it; nothing waits for a timer.

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
    /// The body as it arrived, byte by byte.
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

    /// Returns the names of the tools in the request.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect()
    }

    /// Returns the texts of the tool results at the end of the request.
    pub fn last_results(&self) -> Vec<String> {
        let messages = self.messages();
        let is_result = |message: &&Value| message["role"] == "tool";
        let count = messages.iter().rev().take_while(is_result).count();
        messages[messages.len() - count..]
            .iter()
            .map(text_of)
            .collect()
    }

    /// Returns the text of the first user message.
    pub fn first_user_text(&self) -> String {
        let mut messages = self.messages().iter();
        let found = messages.find(|message| message["role"] == "user");
        found.map(text_of).unwrap_or_default()
    }

    /// Returns the text of the last user message.
    pub fn last_user_text(&self) -> String {
        let mut messages = self.messages().iter().rev();
        let found = messages.find(|message| message["role"] == "user");
        found.map(text_of).unwrap_or_default()
    }
}

/// How the model chooses its answer to a request.
pub(crate) enum Plan {
    /// The turns in order.
    Turns(VecDeque<Turn>),
    /// A function of the request.
    Answering(Box<dyn FnMut(&Recorded) -> Turn + Send>),
    /// Several conversations with their turns in order. A conversation is recognised by a text in
    /// its first user message.
    Voices(Vec<(String, VecDeque<Turn>)>),
}

/// Takes the next turn of the conversation that a request belongs to.
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

/// The scripted model and its server.
pub struct Script {
    url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
    finished: bool,
}

impl Script {
    /// Starts a model that expects exactly these turns, in this order.
    pub async fn play(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::start(Plan::Turns(turns.into_iter().collect())).await
    }

    /// Starts a model for several conversations at once, each with its own turns in order.
    pub async fn voices<'a>(voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Self {
        let voices = voices
            .into_iter()
            .map(|(name, turns)| (name.to_owned(), turns.into()));
        Self::start(Plan::Voices(voices.collect())).await
    }

    /// Starts a model whose answers are a function of the request.
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
                    // Several tests let the client close the connection early; that is no error.
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

    /// Keeps no requests, for tests with so many requests that they would fill the memory.
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

    /// Returns the requests that the model got, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// Returns the last request so far.
    pub fn last_request(&self) -> Recorded {
        self.requests().pop().expect("the model was asked")
    }

    /// Waits until the model has got this many requests, and returns the last of them.
    pub async fn asked(&self, count: usize) -> Recorded {
        let wait = self.until(|inner| inner.requests.get(count - 1).cloned());
        within(&format!("request {count} to the model"), wait).await
    }

    /// Waits until a client has closed its connection while a gate held the answer back.
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

    /// Fails if the model got an unexpected request, or did not get an expected one.
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

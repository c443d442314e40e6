//! One expected request to the model and its answer, and gates that hold answers back.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use super::Recorded;
use super::encode::Ending;
use crate::within;

/// A tool call that the model makes.
#[derive(Debug, Clone)]
pub struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// Makes a tool call with this id.
pub fn call(id: &str, name: &str, arguments: Value) -> Call {
    Call {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    }
}

impl Call {
    /// Sets the text of the arguments, valid JSON or not.
    #[must_use]
    pub fn raw_arguments(mut self, text: &str) -> Self {
        text.clone_into(&mut self.arguments);
        self
    }
}

/// The expected end of a request.
#[derive(Debug, Clone)]
enum Expect {
    Any,
    /// A user message that contains this text.
    User(String),
    /// Exactly as many tool results as texts, each containing its text.
    Results(Vec<String>),
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Reply {
        pieces: Vec<String>,
        calls: Vec<Call>,
    },
    Failure {
        status: u16,
        body: String,
        headers: Vec<(String, String)>,
    },
    /// The connection is closed in the middle of the answer, after these pieces of text.
    Broken { pieces: Vec<String> },
}

/// One expected request and its answer.
#[derive(Debug, Clone)]
pub struct Turn {
    expect: Expect,
    pub(super) answer: Answer,
    pub(super) charged: Option<u64>,
    /// The input and output tokens.
    pub(super) used: (u64, u64),
    pub(super) reported: Option<Value>,
    /// Why the model stops, if not because it is done.
    pub(super) finish: Option<&'static str>,
    pub(super) held: Option<Gate>,
    pub(super) paused: Option<Gate>,
}

impl Turn {
    fn expecting(expect: Expect) -> Self {
        Self {
            expect,
            answer: Answer::Reply {
                pieces: vec!["ok".to_owned()],
                calls: Vec::new(),
            },
            charged: None,
            used: (10, 5),
            reported: None,
            finish: None,
            held: None,
            paused: None,
        }
    }

    /// Expects any request.
    pub fn any() -> Self {
        Self::expecting(Expect::Any)
    }

    /// Expects a request that ends with a user message containing this text.
    pub fn user(text: &str) -> Self {
        Self::expecting(Expect::User(text.to_owned()))
    }

    /// Expects a request that ends with exactly these tool results, each containing its text.
    pub fn results<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::expecting(Expect::Results(
            texts.into_iter().map(str::to_owned).collect(),
        ))
    }

    /// Answers with a text.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        self.streams([text])
    }

    /// Answers with a text in pieces; a streamed reply sends each in a chunk of its own.
    #[must_use]
    pub fn streams<'a>(mut self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        self.answer = Answer::Reply {
            pieces: texts.into_iter().map(str::to_owned).collect(),
            calls: Vec::new(),
        };
        self
    }

    /// Answers with tool calls.
    #[must_use]
    pub fn calls(mut self, calls: impl IntoIterator<Item = Call>) -> Self {
        self.answer = Answer::Reply {
            pieces: Vec::new(),
            calls: calls.into_iter().collect(),
        };
        self
    }

    /// Answers with a text and tool calls.
    #[must_use]
    pub fn says_and_calls(mut self, text: &str, calls: impl IntoIterator<Item = Call>) -> Self {
        self.answer = Answer::Reply {
            pieces: vec![text.to_owned()],
            calls: calls.into_iter().collect(),
        };
        self
    }

    /// Sets what the answer costs, in billionths of a credit.
    #[must_use]
    pub fn charges(mut self, nano_credits: u64) -> Self {
        self.charged = Some(nano_credits);
        self
    }

    /// Sets how many input and output tokens the answer uses.
    #[must_use]
    pub fn uses(mut self, input: u64, output: u64) -> Self {
        self.used = (input, output);
        self
    }

    /// Sets what the server writes as `usage`, whatever that is.
    #[must_use]
    pub fn reports(mut self, usage: Value) -> Self {
        self.reported = Some(usage);
        self
    }

    /// Sets the reason why the model stops: `length` or `content_filter`.
    #[must_use]
    pub fn stops_by(mut self, reason: &'static str) -> Self {
        self.finish = Some(reason);
        self
    }

    pub(super) fn ending(&self) -> Ending {
        Ending {
            finish: self.finish,
            charged: self.charged,
            used: self.used,
            reported: self.reported.clone(),
        }
    }

    /// Answers with an HTTP error.
    #[must_use]
    pub fn fails(mut self, status: u16, message: &str) -> Self {
        self.answer = Answer::Failure {
            status,
            body: serde_json::json!({"error": {"message": message}}).to_string(),
            headers: Vec::new(),
        };
        self
    }

    /// Sets the vendor's error code of an HTTP error.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        if let Answer::Failure { body, .. } = &mut self.answer {
            let mut error: Value = serde_json::from_str(body).unwrap();
            error["error"]["code"] = code.into();
            *body = error.to_string();
        }
        self
    }

    /// Adds a header to an HTTP error.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Answer::Failure { headers, .. } = &mut self.answer {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Closes the connection in the middle of the answer.
    #[must_use]
    pub fn breaks_off(self) -> Self {
        self.breaks_off_after([])
    }

    /// Streams these pieces of text and then closes the connection.
    #[must_use]
    pub fn breaks_off_after<'a>(mut self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        self.answer = Answer::Broken {
            pieces: texts.into_iter().map(str::to_owned).collect(),
        };
        self
    }

    /// Sends nothing before the gate opens.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.held = Some(gate.clone());
        self
    }

    /// Sends the text at once, and the rest when the gate opens.
    #[must_use]
    pub fn paused_by(mut self, gate: &Gate) -> Self {
        self.paused = Some(gate.clone());
        self
    }

    /// Returns why a request is not the one that this turn expects.
    pub(super) fn mismatch(&self, request: &Recorded) -> Option<String> {
        let last = request.messages().last()?;
        match &self.expect {
            Expect::Any => None,
            Expect::User(text) => {
                let fits = last["role"] == "user" && super::text_of(last).contains(text);
                (!fits).then(|| format!("expected the user's {text:?}, got {last}"))
            }
            Expect::Results(texts) => {
                let results = request.last_results();
                let fits = results.len() == texts.len()
                    && results
                        .iter()
                        .zip(texts)
                        .all(|(has, wants)| has.contains(wants));
                (!fits).then(|| format!("expected the results {texts:?}, got {results:?}"))
            }
        }
    }
}

/// Holds an answer back until the test opens the gate; clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    reached: bool,
    open: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    pub fn new() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(State::default())),
        }
    }

    /// Opens the gate, for an answer that is held now or will be.
    pub fn open(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Waits until an answer is held here.
    pub async fn reached(&self) {
        let mut changes = self.state.subscribe();
        let wait = changes.wait_for(|state| state.reached);
        within("the model to be held back", wait).await.unwrap();
    }

    /// Waits until the gate is open.
    pub(super) async fn pass(&self) {
        let mut changes = self.state.subscribe();
        self.state.send_modify(|state| state.reached = true);
        changes.wait_for(|state| state.open).await.unwrap();
    }
}

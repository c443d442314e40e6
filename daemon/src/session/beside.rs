//! Model calls beside the conversation, apart from those for compactions: the daemon or somebody else
//! asks, no client sees a message of it, and what it used is counted under the limits of the session.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::fact::CallPurpose;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::actor::Actor;
use super::budget::CallBudget;
use super::{Message, SessionError, SessionHandle};
use crate::turn::side_call::{self, SideCall, SideReply};
use loopd_kernel::command::{Command, RequestFacts, SideUsage};
use loopd_kernel::compaction::request::Summarisable;
use loopd_kernel::model::{Delivery, Finish, ModelMessage, ModelRequest, Part, ToolUse};
use loopd_kernel::texts::beside as texts;
use loopd_kernel::tokens;

/// How long the model may take.
pub(super) const LONGEST: Duration = Duration::from_secs(10 * 60);

/// The most tokens of an answer. Models that think first need more than the text has.
const HANDOFF_OUTPUT: u64 = 8_192;
const SUMMARY_OUTPUT: u64 = 2_048;
const TITLE_OUTPUT: u64 = 512;

/// How many characters of a first message a title is made of.
const TITLE_CHARS: usize = 4_000;

/// A question about the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BesideQuestion {
    /// What somebody has to know who takes over.
    Handoff,
    /// What the sub-agent is doing whose session it is.
    AgentSummary,
}

/// What the model said, or why it said nothing.
pub type BesideAnswer = Result<String, String>;

/// Lets a session make one such call at a time.
pub(super) struct BesideCalls(Arc<Semaphore>);

impl Default for BesideCalls {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl SessionHandle {
    /// Asks the model of the session something about the conversation.
    pub fn ask_beside(
        &self,
        question: BesideQuestion,
    ) -> impl Future<Output = Result<BesideAnswer, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::AskBeside { question, reply });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Ended(id))
        }
    }
}

/// A call that can be made.
pub(super) struct Prepared {
    pub(super) call: SideCall,
    pub(super) budget: Option<CallBudget>,
}

impl Actor {
    /// Returns a request that begins like those of the conversation, but for its messages.
    pub(super) fn request_beside(&self, model: &str, output: u64) -> ModelRequest {
        ModelRequest {
            model: model.to_owned(),
            messages: Vec::new(),
            tools: self.toolset().specs(),
            delivery: Delivery::Whole,
            reasoning_effort: self.effort_in_force(),
            reasoning_summary: None,
            max_output_tokens: Some(output),
            tool_use: ToolUse::Forbidden,
            headers: self.running.headers(),
        }
    }

    /// Prepares a question about the conversation; `None` if next to nothing of it fits into a request.
    pub(super) fn question_beside(&self, asked: String, most_output: u64) -> Option<Prepared> {
        let facts: RequestFacts = self.request_facts();
        let output = most_output.min(facts.window.output.unwrap_or(u64::MAX));
        let fixed = facts.size.system + facts.size.tools;
        let room = facts.in_own(facts.window.prompt_limit().saturating_sub(fixed));
        let asked = Summarisable::of(&self.state).question(room, asked)?;
        let budget = self.side_budget(&facts.model, facts.size.total(), output);
        let request = ModelRequest {
            messages: asked.messages,
            ..self.request_beside(&facts.model, output)
        };
        let call = SideCall {
            request,
            route: self.route(),
            services: self.services.clone(),
            sent: facts.size.total(),
        };
        Some(Prepared { call, budget })
    }

    /// Asks the model something about the conversation for a caller. The call goes on if the caller stops
    /// waiting, so that what it uses is counted.
    pub(super) fn ask_beside(
        &mut self,
        question: BesideQuestion,
        reply: oneshot::Sender<BesideAnswer>,
    ) {
        let (asked, output, purpose) = match question {
            BesideQuestion::Handoff => (texts::HANDOFF, HANDOFF_OUTPUT, CallPurpose::Handoff),
            BesideQuestion::AgentSummary => (
                texts::AGENT_SUMMARY,
                SUMMARY_OUTPUT,
                CallPurpose::AgentSummary,
            ),
        };
        // The send fails if the caller has stopped waiting.
        let refuse = |reply: oneshot::Sender<BesideAnswer>, why: &str| {
            reply.send(Err(why.to_owned())).ok();
        };
        if self.state.history.last_text().is_none() {
            return refuse(reply, "the model has said nothing yet");
        }
        let Ok(place) = self.beside.0.clone().try_acquire_owned() else {
            return refuse(
                reply,
                "another question of this kind is being answered in this session; wait for that",
            );
        };
        let Some(prepared) = self.question_beside(asked.to_owned(), output) else {
            return refuse(
                reply,
                "next to nothing of the conversation fits into a request",
            );
        };
        let mailbox = self.mailbox.clone();
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let (_at_work, _place) = (at_work, place);
            let said = ask(prepared.call, prepared.budget, purpose, &mailbox).await;
            // The send fails if the caller has stopped waiting.
            reply.send(said.and_then(text)).ok();
        });
    }

    /// Lets the model for titles make one of a first message. If that fails, the title stays.
    pub(super) fn make_title(&mut self, name: String, message: &str) {
        let Some(model) = self.services.config.titles.model.clone() else {
            return;
        };
        let message: String = message.chars().take(TITLE_CHARS).collect();
        let asked = format!("<message>\n{message}\n</message>");
        let sent = tokens::count(&asked) + tokens::count(texts::TITLE);
        let budget = self.side_budget(&model, sent, TITLE_OUTPUT);
        let call = SideCall {
            request: ModelRequest {
                model,
                messages: vec![
                    ModelMessage::System(texts::TITLE.to_owned()),
                    ModelMessage::User(vec![Part::Text(asked)]),
                ],
                tools: Vec::new(),
                delivery: Delivery::Whole,
                reasoning_effort: None,
                reasoning_summary: None,
                max_output_tokens: Some(TITLE_OUTPUT),
                tool_use: ToolUse::Forbidden,
                headers: Vec::new(),
            },
            route: self.route(),
            services: self.services.clone(),
            sent,
        };
        let (mailbox, reporter) = (self.mailbox.clone(), self.reporter());
        let session = self.state.id.clone();
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let _at_work = at_work;
            let said = ask(call, budget, CallPurpose::Title, &mailbox).await;
            match said.and_then(text) {
                Ok(said) => {
                    if let Some(title) = texts::title(&said) {
                        let was = name;
                        reporter.report(Command::Titled { was, title }).await;
                    }
                }
                Err(why) => tracing::warn!(%session, why, "the session has no title of a model"),
            }
        });
    }
}

/// Makes a call within the limits and in bounded time, and records what it used.
pub(super) async fn ask(
    call: SideCall,
    budget: Option<CallBudget>,
    purpose: CallPurpose,
    mailbox: &mpsc::Sender<Message>,
) -> Result<SideReply, String> {
    let (said, used) = make(call, budget).await;
    if let Some(used) = used {
        let command = Box::new(Command::CalledBeside(Box::new(used), purpose));
        let (reply, recorded) = oneshot::channel();
        // Who asked learns the answer after the log has what it used. Both fail if the session has ended.
        mailbox.send(Message::Command { command, reply }).await.ok();
        recorded.await.ok();
    }
    said
}

/// Makes a call within the limits and in bounded time. Returns also what it used.
pub(super) async fn make(
    call: SideCall,
    budget: Option<CallBudget>,
) -> (Result<SideReply, String>, Option<SideUsage>) {
    let late = || (Err("the model did not answer in time".to_owned()), None);
    let made = tokio::time::timeout(LONGEST, make_unbounded(call, budget)).await;
    made.unwrap_or_else(|_| late())
}

async fn make_unbounded(
    call: SideCall,
    budget: Option<CallBudget>,
) -> (Result<SideReply, String>, Option<SideUsage>) {
    let model = call.request.model.clone();
    let mut reservation = None;
    if let Some(budget) = &budget {
        match budget.reserve(&model, || {}).await {
            Ok(reserved) => reservation = Some(reserved),
            Err(failure) => return (Err(failure.message), None),
        }
    }
    let called = side_call::call(call).await;
    let used = match &called {
        Ok(reply) => Some(reply.used.clone()),
        Err(failure) => failure.used.clone(),
    };
    if let (Some(used), Some(budget), Some(reservation)) = (&used, budget, reservation) {
        budget.settle_side(reservation, used).await;
    }
    (called.map_err(|failed| failed.failure.message), used)
}

/// Returns the text of a reply.
pub(super) fn text(reply: SideReply) -> BesideAnswer {
    if reply.finish == Finish::ContentFilter {
        return Err("the provider did not let the answer through".to_owned());
    }
    let text = reply.text.trim();
    if text.is_empty() {
        return Err("the model answered with nothing".to_owned());
    }
    Ok(text.to_owned())
}

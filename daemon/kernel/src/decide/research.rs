//! Begins a research: the run of one message, under the rules of `research`.

use loopd_proto::event::Durable;
use loopd_proto::event::fact::{ClientRef, PendingMessage};
use loopd_proto::event::research::ResearchStarted;
use loopd_proto::event::turn::Delivered;

use super::queue;
use crate::command::{Answer, DecideEnv, Decision, Refusal};
use crate::state::State;
use crate::texts::research as texts;

pub(super) fn start(
    state: &State,
    topic: &str,
    report: String,
    sender: Option<ClientRef>,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let message = PendingMessage {
        id: env.message(),
        prompt: texts::lead(topic, &report),
        display_prompt: Some(texts::begun(topic)),
        attachments: Vec::new(),
        agent_mode: None,
        switches_to: None,
        source: None,
        delivery: if state.is_busy() {
            Delivered::Queued
        } else {
            Delivered::Idle
        },
        sender,
        answers: None,
        scope: None,
        required_tool: None,
    };
    if state.researches.is_some() && state.research().is_some() {
        return Err(Refusal::ResearchGoesOn);
    }
    let mut decision = Decision::answering(Answer::Message(message.id.clone()));
    decision.store(Durable::ResearchStarted(ResearchStarted {
        message: message.id.clone(),
        report,
    }));
    queue::enqueue(state, message, &mut decision, env)?;
    Ok(decision)
}

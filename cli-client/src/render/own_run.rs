//! Which events of a session belong to the run of one message, where other clients send messages to the
//! same session.

use std::collections::HashMap;

use loopd_sdk::proto::event::turn::Delivered;
use loopd_sdk::{AgentId, Body, Durable, Ephemeral, Event, MessageId};

/// What events about the session as a whole begin with. They belong to every run.
const OF_SESSION: &str = "session.";
/// Those among them that tell how the work on one message ended.
const OF_RUN: [&str; 2] = ["session.task_complete", "session.autopilot_stopped"];

/// The run of one message, with the agents that it started.
#[derive(Debug)]
pub(crate) struct OwnRun {
    message: MessageId,
    /// Whether the session answers another message now.
    is_other: bool,
    /// Whether an agent was started by the own run, for all agents that were seen.
    agents: HashMap<AgentId, bool>,
}

impl OwnRun {
    pub(crate) fn of(message: MessageId) -> Self {
        Self {
            message,
            is_other: true,
            agents: HashMap::new(),
        }
    }

    /// Returns whether the session answers another message now.
    pub(crate) fn is_other(&self) -> bool {
        self.is_other
    }

    /// Notes whose message the main agent answers from this event on.
    pub(super) fn note(&mut self, body: &Body) {
        match body {
            Body::Durable(Durable::UserMessage(message))
                if message.is_autopilot_continuation == Some(true) => {}
            Body::Durable(Durable::UserMessage(message)) => {
                let joins = message.delivery == Some(Delivered::Steering);
                match &message.message_id {
                    Some(id) if *id == self.message => self.is_other = false,
                    Some(_) if !joins => self.is_other = true,
                    Some(_) | None => {}
                }
            }
            // Without a message of its own: what the session does then may be our answer.
            Body::Ephemeral(Ephemeral::SessionIdle(_) | Ephemeral::AssistantIdle(_)) => {
                self.is_other = false;
            }
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
    }

    /// Notes an event, and returns whether it belongs to the own run.
    pub(crate) fn takes(&mut self, event: &Event) -> bool {
        if let Some(agent) = &event.head.agent_id {
            return self.started(agent);
        }
        let was_other = self.is_other;
        self.note(&event.body);
        // The end of another run does not belong to the own one.
        let is_end = matches!(event.body, Body::Ephemeral(Ephemeral::AssistantIdle(_)));
        let is_other = if is_end { was_other } else { self.is_other };
        let kind = event.body.kind();
        !is_other || kind.starts_with(OF_SESSION) && !OF_RUN.contains(&kind)
    }

    /// Returns whether the own run started an agent. Agents below an agent belong to whom it belongs to.
    fn started(&mut self, agent: &AgentId) -> bool {
        let top = agent.as_str().split('.').next().unwrap_or_default();
        let own = !self.is_other;
        *self.agents.entry(AgentId::new(top)).or_insert(own)
    }
}

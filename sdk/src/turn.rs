//! What comes of one message: its events until the end, and the answer.

use loopd_proto::event::session::Failure;
use loopd_proto::event::{Body, Durable, Ephemeral, Event};
use loopd_proto::id::MessageId;

use crate::Error;
use crate::events::Events;

/// How long to wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wait {
    /// Until the session has nothing left to do: whatever the message set off has ended, too.
    #[default]
    Session,
    /// Until the agent that was spoken to has answered.
    Foreground,
}

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub message_id: MessageId,
    /// The last thing the agent said.
    pub text: String,
}

/// The events of the session until what a message set off has ended.
#[derive(Debug)]
pub struct Turn {
    message_id: MessageId,
    /// What is shown of the message; by this it is known when the loop takes it up.
    shown: String,
    events: Events,
    /// How many of the next events may have come before the message was accepted.
    early: usize,
    wait: Wait,
    taken: bool,
    over: bool,
    text: String,
    aborted: bool,
    failure: Option<Box<Failure>>,
}

impl Turn {
    pub(crate) fn new(message_id: MessageId, shown: String, events: Events, wait: Wait) -> Self {
        Self {
            message_id,
            shown,
            early: events.waiting(),
            events,
            wait,
            taken: false,
            over: false,
            text: String::new(),
            aborted: false,
            failure: None,
        }
    }

    pub fn message_id(&self) -> &MessageId {
        &self.message_id
    }

    /// The next event of the session; `None` after the one that ended the turn.
    pub async fn next(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        let event = self.events.next().await?;
        self.note(&event);
        self.early = self.early.saturating_sub(1);
        Some(event)
    }

    /// What came of it; asked before its end, what is known so far.
    pub fn finish(self) -> Result<Reply, Error> {
        if let Some(failure) = self.failure {
            return Err(Error::Failed(failure));
        }
        if self.aborted {
            return Err(Error::Aborted);
        }
        match self.events.end() {
            Some(error) if !self.over => Err(error),
            Some(_) | None => Ok(Reply {
                message_id: self.message_id,
                text: self.text,
            }),
        }
    }

    fn note(&mut self, event: &Event) {
        // What its sub-agents are told and say is theirs, and not the end of anything here.
        if event.head.agent_id.is_some() {
            return;
        }
        match &event.body {
            Body::Durable(Durable::UserMessage(message)) if message.content == self.shown => {
                self.taken = true;
            }
            Body::Durable(Durable::AssistantMessage(message))
                if self.taken && !message.content.is_empty() =>
            {
                self.text.clone_from(&message.content);
            }
            Body::Durable(Durable::SessionError(failure)) if self.taken => {
                self.failure = Some(Box::new(failure.clone()));
            }
            Body::Ephemeral(Ephemeral::SessionIdle(idle)) => self.rested(idle.aborted),
            Body::Ephemeral(Ephemeral::AssistantIdle(idle)) if self.wait == Wait::Foreground => {
                self.rested(idle.aborted);
            }
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
    }

    /// The loop rests: after this message, or because everything that waited was given up. A rest
    /// after something older is not the end.
    fn rested(&mut self, aborted: Option<bool>) {
        let aborted = aborted == Some(true);
        if self.taken || (aborted && self.early == 0) {
            self.over = true;
            self.aborted = aborted;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use loopd_proto::event;

    use super::*;
    use crate::feed::Feed;

    fn line(id: u32, agent: &str, kind: &str, data: &str) -> Event {
        let more = match (agent, kind) {
            ("", "session.idle") => r#","ephemeral":true"#.to_owned(),
            ("", _) => String::new(),
            (agent, _) => format!(r#","agentId":"{agent}""#),
        };
        let text = format!(
            r#"{{"type":"{kind}","data":{data},"id":"{id}","timestamp":"2026-01-01T00:00:00.000Z","parentId":null{more}}}"#
        );
        let event = event::read(&text).unwrap();
        assert!(!matches!(event.body, Body::Unknown { .. }), "{text}");
        event
    }

    #[tokio::test]
    async fn what_sub_agents_are_told_and_say_is_not_the_answer() {
        let feed = Feed::new();
        let mut turn = Turn::new("m".into(), "go".to_owned(), feed.stream(), Wait::Session);
        let said =
            |text: &str| format!(r#"{{"messageId":"a","content":"{text}","toolRequests":[]}}"#);
        let failure = r#"{"errorType":"query","message":"no model"}"#;
        for event in [
            // One that was told the same before this message was taken up.
            line(1, "other", "user.message", r#"{"content":"go"}"#),
            line(2, "", "session.idle", "{}"),
            line(3, "", "user.message", r#"{"content":"go"}"#),
            line(4, "", "assistant.message", &said("found")),
            line(
                5,
                "finder",
                "assistant.message",
                &said("words of the finder"),
            ),
            line(6, "finder", "session.error", failure),
            line(7, "", "session.idle", "{}"),
        ] {
            feed.receive(event);
        }
        let mut seen = 0;
        while turn.next().await.is_some() {
            seen += 1;
        }
        assert_eq!(seen, 7, "the rest before the message ends nothing");
        assert_eq!(turn.finish().unwrap().text, "found");
    }
}

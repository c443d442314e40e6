//! What has to hold of a whole log, however it came about.

use std::collections::{BTreeMap, BTreeSet};

use loopd_kernel::apply::apply;
use loopd_kernel::command::Command;
use loopd_kernel::state::{Phase, State};
use loopd_kernel::tool_call::CallState;
use loopd_proto::event::ask::PermissionCompleted;
use loopd_proto::event::fact::{Answered, QueueItem};
use loopd_proto::event::task::{NotificationKind, TasksDelivered, TasksRemoved};
use loopd_proto::event::{Durable, read_durable};
use loopd_proto::id::SessionId;

use super::story::Story;
use super::world::World;

mod step;

pub(super) use step::{check_decision, check_questions, check_state};

/// Wherever a crash cuts the log, recovery leaves a valid conversation and a usable session.
pub(super) fn check_cuts(log: &[String], story: &Story) {
    let mut state = State::new(SessionId::from("s"));
    for line in log {
        let (head, event) = read_durable(line).unwrap();
        apply(&mut state, &head, &event);
        story.instead(&format!(
            "the log is cut after event {}, {}, and recovered",
            state.seq.0,
            event.kind()
        ));
        check_recovery(state.clone(), story.clone());
    }
}

fn check_recovery(state: State, story: Story) {
    let length = state.seq.0;
    let mut world = World::of(state, story);
    // Checks the conversation, too.
    world.give(Command::Recover(Vec::new()));
    if let Phase::Turn(turn) = &world.state.phase {
        let waits = turn.calls().iter().any(CallState::is_open)
            && !turn.calls().iter().any(CallState::may_run);
        assert!(
            waits,
            "after {length} events something seems to run that cannot: {turn:#?}"
        );
    }
    world.come_to_rest();
    world.finish_a_turn();
}

/// Turns come in pairs, calls have one result each, messages are heard once and never lost.
pub(super) fn check_log(world: &World) {
    let mut open_turn: Option<String> = None;
    let mut open_calls: BTreeSet<String> = BTreeSet::new();
    let mut accepted: BTreeMap<String, String> = BTreeMap::new();
    let mut dropped: BTreeSet<String> = BTreeSet::new();
    let mut heard: BTreeSet<String> = BTreeSet::new();
    let mut questions: BTreeSet<String> = BTreeSet::new();
    // Tasks that came to rest and that the model has not heard of since.
    let mut news: BTreeSet<String> = BTreeSet::new();
    for line in &world.log {
        match read_durable(line).unwrap().1 {
            Durable::TurnStart(start) => {
                assert_eq!(open_turn, None, "a turn began inside another");
                open_turn = Some(start.turn_id);
            }
            Durable::TurnEnd(end) => {
                assert_eq!(
                    open_turn.take(),
                    Some(end.turn_id),
                    "another turn ended than began"
                );
                assert!(
                    open_calls.is_empty(),
                    "the turn ended without the results of {open_calls:?}"
                );
            }
            Durable::ToolStart(start) => {
                let id = start.tool_call_id.to_string();
                assert!(open_calls.insert(id), "a call was started twice: {line}");
            }
            Durable::ToolComplete(complete) => {
                let id = complete.tool_call_id.to_string();
                assert!(
                    open_calls.remove(&id),
                    "a result without a call, or a second one: {line}"
                );
            }
            Durable::Queued(queued) => {
                if let QueueItem::Message(message) = queued.item {
                    let known = accepted.insert(message.id.to_string(), message.prompt);
                    assert_eq!(known, None, "one message was queued twice: {line}");
                }
            }
            Durable::QueueItemEdited(edited) => {
                accepted.insert(edited.id.to_string(), edited.prompt);
            }
            Durable::PermissionRequested(asked) => {
                let id = asked.request_id.to_string();
                assert!(questions.insert(id), "a question has a used id: {line}");
            }
            Durable::Asked(asked) => {
                let id = asked.request_id().to_string();
                assert!(questions.insert(id), "a question has a used id: {line}");
            }
            Durable::PermissionCompleted(PermissionCompleted { request_id, .. })
            | Durable::Answered(Answered { request_id }) => {
                let open = questions.remove(request_id.as_str());
                assert!(open, "a question was closed twice or never asked: {line}");
            }
            Durable::Taken(taken) => {
                let gone = taken.ids.iter().find(|id| dropped.contains(id.as_str()));
                assert_eq!(gone, None, "a message was taken that had left: {line}");
            }
            Durable::Unqueued(unqueued) => {
                for id in unqueued.ids {
                    let first = dropped.insert(id.to_string());
                    assert!(first, "a message left the queue twice: {line}");
                }
            }
            Durable::TaskStarted(started) => {
                news.remove(started.id.as_str());
            }
            Durable::TaskContinued(continued) => {
                news.remove(continued.id.as_str());
            }
            Durable::TaskAnswered(answered) => {
                news.insert(answered.id.to_string());
            }
            Durable::TaskEnded(ended) => {
                news.insert(ended.id.to_string());
            }
            Durable::TasksDelivered(TasksDelivered { ids })
            | Durable::TasksRemoved(TasksRemoved { ids }) => {
                for id in ids {
                    news.remove(id.as_str());
                }
            }
            Durable::SystemNotification(notification) => {
                if let NotificationKind::AgentIdle { agent_id, .. }
                | NotificationKind::AgentCompleted { agent_id, .. } = notification.kind
                {
                    let is_news = news.remove(agent_id.as_str());
                    assert!(is_news, "the model was told again: {line}");
                }
            }
            Durable::UserMessage(message) => {
                assert!(
                    heard.insert(message.content),
                    "a message was heard twice: {line}"
                );
            }
            _ => {}
        }
    }
    let state = &world.state;
    let waiting = step::waiting(state);
    for (id, prompt) in &accepted {
        let somewhere = heard.contains(prompt) || dropped.contains(id) || waiting.contains(id);
        assert!(somewhere, "the message {prompt} was accepted and got lost");
    }
    if !state.is_busy() {
        assert_eq!(open_turn, None, "the session rests inside a turn");
    }
}

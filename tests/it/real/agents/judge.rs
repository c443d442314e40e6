//! Judges by the logs, and by what the model was sent, whether every agent was told of exactly once.

use std::collections::{BTreeMap, BTreeSet};

use loopd_kernel::apply::apply;
use loopd_kernel::state::{Phase, State};
use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::task::{TaskOutcome, TaskWork};
use loopd_proto::event::{Durable, Head, read_durable};
use loopd_proto::id::{SessionId, TaskId};
use loopd_store::{SqliteStore, Store};
use loopd_tests::validator::text_of;
use serde_json::Value;

use super::model::{Piece, between};

/// What the run came to.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) tasks: usize,
    /// Prompts to agents: the first ones, and what was written to them later.
    pub(super) runs: usize,
    pub(super) answered: usize,
    pub(super) interrupted: usize,
    pub(super) notifications: usize,
    /// Told by the result of a call.
    pub(super) heard: usize,
    /// From the call of `task` to the agent's first message, in milliseconds.
    pub(super) starts: Vec<i64>,
    /// From the end of an agent's loop to the parent's notification.
    pub(super) wakes: Vec<i64>,
}

type Log = Vec<(Head, Durable)>;

/// One agent as its parent's log tells it.
#[derive(Default)]
struct Agent {
    session: Option<SessionId>,
    called: Option<i64>,
    runs: usize,
    /// When it was last given something to do.
    begun: i64,
    /// The answer of each run that had one; none for a run that failed.
    rests: Vec<Option<String>>,
    told: usize,
    notified: Vec<i64>,
}

pub(super) struct Judge<'a> {
    pub(super) store: &'a SqliteStore,
    pub(super) story: &'a str,
    pub(super) figures: Figures,
}

async fn log(store: &SqliteStore, id: &SessionId) -> Option<(Log, State)> {
    let (_, events) = store.load(id).await.unwrap()?;
    let mut state = State::new(id.clone());
    let mut log = Log::new();
    for stored in events {
        let (head, event) = read_durable(&stored.json).unwrap();
        apply(&mut state, &head, &event);
        log.push((head, event));
    }
    Some((log, state))
}

impl Judge<'_> {
    /// Judges one parent by its log and the last conversation that the model was sent of it.
    pub(super) async fn parent(&mut self, id: &SessionId, conversation: &[Value]) {
        let (log, state) = log(self.store, id).await.unwrap();
        let story = format!("{}, session {id}", self.story);
        assert!(
            matches!(state.phase, Phase::Idle),
            "{story}: it is not idle"
        );
        assert_eq!(state.tasks.running().count(), 0, "{story}: agents run");
        assert!(
            state.tasks.undelivered().is_empty(),
            "{story}: not all is told"
        );
        let results = results(&log);
        let told = conversation
            .iter()
            .filter(|message| message["role"] == "user");
        let told: String = told.map(text_of).collect();
        for (id, agent) in agents(&log, &results, &story) {
            let story = format!("{story}, agent {id}");
            assert_eq!(agent.rests.len(), agent.runs, "{story}: ends and runs");
            assert_eq!(agent.told, agent.runs, "{story}: told and runs");
            let sent = told.matches(&format!("<task_id>{id}</task_id>")).count();
            assert_eq!(sent, agent.notified.len(), "{story}: sent to the model");
            self.agent(&agent, &story).await;
        }
    }

    /// What the parent was told of an agent is what the agent's own log says.
    async fn agent(&mut self, agent: &Agent, story: &str) {
        let figures = &mut self.figures;
        figures.tasks += 1;
        figures.runs += agent.runs;
        let answers: Vec<&String> = agent.rests.iter().flatten().collect();
        figures.answered += answers.len();
        figures.interrupted += agent.runs - answers.len();
        figures.notifications += agent.notified.len();
        figures.heard += agent.told - agent.notified.len();
        let Some((log, _)) = log(self.store, agent.session.as_ref().unwrap()).await else {
            assert!(answers.is_empty(), "{story}: answered without a log");
            return;
        };
        let mut own = Vec::new();
        let (mut said, mut asked) = (None, None);
        for (head, event) in &log {
            match event {
                Durable::UserMessage(message) => {
                    asked.get_or_insert((head.timestamp.0, message.content.clone()));
                }
                Durable::AssistantMessage(message) => said = Some(message.content.clone()),
                Durable::LoopEnded(ended) if ended.outcome == LoopOutcome::Done => {
                    own.push((head.timestamp.0, said.take().unwrap()));
                }
                _ => {}
            }
        }
        let own_answers: Vec<&String> = own.iter().map(|(_, said)| said).collect();
        let mut rest = own_answers.iter();
        let in_order = answers.iter().all(|answer| rest.any(|own| own == answer));
        assert!(in_order, "{story}: {answers:?} of {own_answers:?}");
        // A prompt that was not read when the daemon died may be answered with the next one.
        let late = own_answers.len() - answers.len();
        assert!(
            late < agent.runs && (late == 0 || answers.len() < agent.runs),
            "{story}: {answers:?} of {own_answers:?}"
        );
        if own.last().is_some_and(|(at, _)| *at >= agent.begun) {
            let last = agent.rests.last().unwrap();
            assert!(last.is_some(), "{story}: its answer was not told");
        }
        if let (Some(called), Some((asked, prompt))) = (agent.called, asked) {
            figures.starts.push(asked - called);
            let number = between(&prompt, "piece ", ":").unwrap();
            let expected = [Piece::answer(number), Piece::second_answer(number)];
            for answer in answers {
                assert!(expected.contains(answer), "{story}: {answer}");
            }
        }
        if let ([(ended, _)], [notified]) = (own.as_slice(), agent.notified.as_slice()) {
            figures.wakes.push(notified - ended);
        }
    }
}

/// The texts of all results that calls had.
fn results(log: &Log) -> String {
    let complete = log.iter().filter_map(|(_, event)| match event {
        Durable::ToolComplete(complete) if complete.success => complete.result.as_ref(),
        _ => None,
    });
    let texts: Vec<&str> = complete.map(|result| result.content.as_str()).collect();
    texts.join(
        "
",
    )
}

/// The agents of a parent's log; every event has to come when it may.
fn agents(log: &Log, results: &str, story: &str) -> BTreeMap<TaskId, Agent> {
    let mut agents: BTreeMap<TaskId, Agent> = BTreeMap::new();
    let mut calls = BTreeMap::new();
    let mut untold: BTreeSet<TaskId> = BTreeSet::new();
    for (head, event) in log {
        let at = head.timestamp.0;
        let mut rests = |id: &TaskId, answer: Option<String>| {
            let agent = agents.get_mut(id).unwrap();
            assert!(
                agent.rests.len() < agent.runs,
                "{story}: {id} ends once more than it was asked"
            );
            agent.rests.push(answer);
            assert!(untold.insert(id.clone()), "{story}: {id} was not told of");
        };
        match event {
            Durable::ToolStart(start) => {
                calls.insert(start.tool_call_id.clone(), at);
            }
            Durable::TaskStarted(started) => {
                let TaskWork::Agent(work) = &started.work else {
                    panic!("{story}: {started:?} is no agent");
                };
                let call = started.tool_call_id.as_ref().unwrap();
                let agent = Agent {
                    session: Some(work.session_id.clone()),
                    called: calls.get(call).copied(),
                    runs: 1,
                    begun: started.started_at.0,
                    ..Agent::default()
                };
                let before = agents.insert(started.id.clone(), agent);
                assert!(before.is_none(), "{story}: {} is there twice", started.id);
            }
            Durable::TaskContinued(continued) => {
                let agent = agents.get_mut(&continued.id).unwrap();
                agent.runs += 1;
                agent.begun = continued.continued_at.0;
            }
            Durable::TaskAnswered(answered) => rests(&answered.id, Some(answered.response.clone())),
            Durable::TaskEnded(ended) => {
                let answered = ended.outcome == TaskOutcome::Completed;
                rests(&ended.id, ended.result.clone().filter(|_| answered));
            }
            Durable::SystemNotification(note) => {
                let id = note.kind.task();
                assert!(untold.remove(&id), "{story}: {id} is told once too often");
                let agent = agents.get_mut(&id).unwrap();
                agent.told += 1;
                agent.notified.push(at);
                if let Some(answer) = agent.rests.last().unwrap() {
                    assert!(note.content.contains(answer), "{story}: {}", note.content);
                }
            }
            Durable::TasksDelivered(heard) => {
                for id in &heard.ids {
                    assert!(untold.remove(id), "{story}: {id} is heard once too often");
                    let agent = agents.get_mut(id).unwrap();
                    agent.told += 1;
                    // Somebody said so: the result is there, and not lost with the call.
                    let answer = agent.rests.last().unwrap().as_ref();
                    if let Some(answer) = answer {
                        assert!(
                            results.contains(answer),
                            "{story}: {id} was heard by nobody"
                        );
                    }
                }
            }
            _ => {}
        }
    }
    agents
}

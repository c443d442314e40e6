//! A session without a daemon: the state, its log, and the work that has not reported yet. Work
//! that was cancelled stays, because a report may always cross a cancel.

mod act;

use std::collections::BTreeSet;

use loopd_kernel::apply::apply;
use loopd_kernel::command::{AbortRequest, Command, DecideEnv, Decision, Effect, SendPlace, Step};
use loopd_kernel::decide::decide;
use loopd_kernel::state::State;
use loopd_kernel::tool_call::{CallState, ToolOrigin};
use loopd_proto::event::{self, Durable, Ephemeral, Head};
use loopd_proto::id::SessionId;
use loopd_proto::time::Timestamp;
use loopd_tests::assert_same;
use ulid::Ulid;

use super::action::{Pick, Preparation, Reply};
use super::checks::{check_decision, check_questions, check_state};
use super::commands::{self, Work};
use super::story::Story;

/// How many effects may be waiting to report; the oldest are forgotten.
const WORK: usize = 24;

pub(super) struct World {
    pub(super) state: State,
    /// What the stored lines fold to.
    folded: State,
    /// The stored lines.
    pub(super) log: Vec<String>,
    pub(super) story: Story,
    /// Work that may report.
    work: Vec<Effect>,
    /// Work that reported and may do so again.
    reported: Vec<Effect>,
    /// The calls that were assessed or run, by kind, turn and id.
    started: BTreeSet<String>,
    /// Whether the log is whole; another one may be cut inside what is committed at once.
    is_whole: bool,
    ids: u128,
    sent: usize,
    /// How many answers and ends of agents there were.
    answers: usize,
    attended: bool,
    /// The loop ended while agents were at work, and nobody was told that all is done.
    owes_idle: bool,
}

impl World {
    pub(super) fn new(story: Story) -> Self {
        let mut world = Self::of(State::new(SessionId::from("s")), story);
        world.is_whole = true;
        world.story.begin("Create");
        world.give(commands::create());
        world
    }

    /// A world that goes on from the state of a log that was cut.
    pub(super) fn of(state: State, story: Story) -> Self {
        Self {
            // Ids that no earlier life of the session had.
            ids: 1_000_000 * (u128::from(state.seq.0) + 1),
            folded: state.clone(),
            state,
            log: Vec::new(),
            story,
            work: Vec::new(),
            reported: Vec::new(),
            started: BTreeSet::new(),
            is_whole: false,
            sent: 0,
            answers: 0,
            attended: true,
            owes_idle: false,
        }
    }

    /// Decides and applies one command, as the actor does, and checks what has to hold at all times.
    pub(super) fn give(&mut self, command: Command) {
        let recovers = matches!(command, Command::Recover(_));
        let ends = matches!(command, Command::Suspend(_) | Command::Shutdown(_));
        let was_busy = self.state.is_busy();
        let before = self.state.seq;
        let ids = &mut self.ids;
        let mut fresh = || {
            *ids += 1;
            Ulid(*ids)
        };
        let mut env = DecideEnv {
            now: Timestamp(1_700_000_000_000),
            attended: self.attended,
            bypass: false,
            settings: None,
            home: "/home/user/.loopd",
            mcp_tool: &|_| None,
            ends_turn: &|_| false,
            tool_origin: &|_| Some(ToolOrigin::Client),
            inherited: &|| None,
            can_switch_model: false,
            planning: loopd_kernel::policy::planning::Planning::No,
            plan_file: &String::new,
            runs_command: &|_| self.attended,
            top: None,
            fallback_models: &[],
            fleet_workers: 4,
            fleet_todos: 1_000,
            most_wakes: 100,
            makes_titles: false,
            provider_waits: loopd_kernel::decide::provider_wait::ProviderWaits::NONE,
            hooks: loopd_kernel::hook::HookNeeds::NONE,
            next_request: &|| loopd_kernel::command::RequestFacts {
                model: "gpt".to_owned(),
                window: loopd_kernel::context_window::ContextWindow {
                    limit: 10_000,
                    output: None,
                },
                rules: loopd_kernel::context_window::RoomRules::default(),
                size: loopd_kernel::context_size::RequestSize::default(),
                factor: 1.0,
                overflowed: false,
            },
            ids: &mut fresh,
        };
        let decision = match decide(&self.state, command, &mut env) {
            Ok(decision) => decision,
            Err(refusal) => return self.story.refused(&refusal),
        };
        for step in &decision.steps {
            self.story.step(step);
            if let Step::Store(event) = step {
                self.store(event);
            }
        }
        check_decision(&decision, &self.state);
        if self.state.seq != before {
            check_state(&self.state);
            if self.is_whole {
                check_questions(&self.state);
                let what = "the log does not fold to the state";
                assert_same(what, &self.folded, &self.state);
            }
        }
        self.check_idle(&decision, was_busy, recovers || ends);
        for step in decision.steps {
            if let Step::Do(effect) = step {
                self.start(effect);
            }
        }
    }

    fn store(&mut self, event: &Durable) {
        self.ids += 1;
        let head = Head {
            id: Ulid(self.ids).into(),
            timestamp: Timestamp(1_700_000_000_000),
            parent_id: self.state.tip.clone(),
            agent_id: None,
            ephemeral: None,
        };
        apply(&mut self.state, &head, event);
        if !self.is_whole {
            return;
        }
        let line = event::write(&head, event).unwrap();
        let (head, event) = event::read_durable(&line).unwrap();
        apply(&mut self.folded, &head, &event);
        self.log.push(line);
    }

    fn start(&mut self, effect: Effect) {
        if let Effect::Assess { turn, call, .. } | Effect::Run { turn, call, .. } = &effect {
            let stage = match &effect {
                Effect::Run { .. } => "run",
                _ => "assessment",
            };
            let turn = format!("{} {}", turn.interaction, turn.number);
            let name = format!("{stage} of {} in turn {turn}", call.id);
            let first = self.started.insert(name.clone());
            assert!(first, "a second {name}");
        }
        if Work::of(&effect).is_some() {
            self.work.push(effect);
        }
        forget_oldest(&mut self.work);
    }

    /// The end of the loop is told once, and only when nothing is at work.
    fn check_idle(&mut self, decision: &Decision, was_busy: bool, ends: bool) {
        let is_idle = |step: &&Step| matches!(step, Step::Tell(Ephemeral::SessionIdle(_)));
        let told = decision.steps.iter().filter(is_idle).count();
        let rests = !self.state.is_busy();
        assert!(told <= 1, "idle was told twice");
        assert!(told == 0 || rests, "idle was told in the middle of work");
        if ends || told == 1 {
            self.owes_idle = false;
        } else if was_busy && rests {
            self.owes_idle = true;
        }
        let deferred = !rests || self.state.tasks.has_agents_at_work();
        assert!(
            !self.owes_idle || deferred,
            "the loop ended and nobody was told"
        );
    }

    /// Takes work that reports now; none if there is no such work.
    fn take(&mut self, kind: Work, pick: Pick) -> Option<&Effect> {
        let of_kind = |work: &[Effect]| -> Vec<usize> {
            let positions = work.iter().enumerate();
            let positions = positions.filter(|(_, effect)| Work::of(effect) == Some(kind));
            positions.map(|(at, _)| at).collect()
        };
        let nth = |positions: &[usize], nth: u8| {
            let nth = usize::from(nth).checked_rem(positions.len())?;
            positions.get(nth).copied()
        };
        let waiting = of_kind(&self.work);
        let at = match pick {
            Pick::Newest => waiting.last().copied()?,
            Pick::Earlier(number) => nth(&waiting, number)?,
            Pick::Again(number) => {
                let mut reported = of_kind(&self.reported);
                reported.retain(|at| !self.is_of_open_call(&self.reported[*at]));
                return self.reported.get(nth(&reported, number)?);
            }
        };
        let effect = self.work.remove(at);
        self.reported.push(effect);
        forget_oldest(&mut self.reported);
        self.reported.last()
    }

    /// Whether the effect is for a call without a result. The daemon reports each effect once; late
    /// reports are those of calls that have their result by then.
    fn is_of_open_call(&self, effect: &Effect) -> bool {
        let (Effect::Assess { turn, call, .. } | Effect::Run { turn, call, .. }) = effect else {
            return false;
        };
        let turn = self.state.turn_named(turn);
        let call = turn.and_then(|turn| turn.call(&call.id));
        call.is_some_and(CallState::is_open)
    }

    pub(super) fn send(&mut self, prompt: &str) {
        self.give(commands::send(prompt, SendPlace::Enqueue, None));
    }

    /// Aborts and lets the grace pass.
    pub(super) fn come_to_rest(&mut self) {
        self.give(Command::Abort(AbortRequest::OF_DAEMON));
        if let Some(turn) = self.state.turn() {
            let turn = turn.key.clone();
            self.give(Command::GraceOver { turn });
        }
        assert!(
            !self.state.is_busy(),
            "an abort left work behind: {:#?}",
            self.state.phase
        );
    }

    /// Goes through one whole turn, whatever was before.
    pub(super) fn finish_a_turn(&mut self) {
        self.attended = true;
        self.give(Command::ClearQueue);
        let heard = self.state.tasks.iter().map(|task| task.id.clone());
        self.give(Command::TasksDelivered(heard.collect()));
        self.work.clear();
        self.send("the last one");
        let effect = self.take(Work::Preparation, Pick::Newest);
        let Some(Effect::Prepare { messages }) = effect else {
            panic!("a session at rest did not take a message at once");
        };
        assert_eq!(messages.len(), 1, "one message was sent");
        let prepared = commands::prepared(messages, Preparation::Ready);
        self.give(prepared);
        let turn = self.state.turn().expect("the model is called").key.clone();
        self.give(commands::replied(&turn, Reply::Says));
        assert!(
            !self.state.is_busy(),
            "the loop goes on after the model's last word"
        );
    }

    /// What users said, as the log has it.
    pub(super) fn user_texts(&self) -> Vec<String> {
        let events = self
            .log
            .iter()
            .map(|line| event::read_durable(line).unwrap().1);
        events
            .filter_map(|event| match event {
                Durable::UserMessage(message) => Some(message.content),
                _ => None,
            })
            .collect()
    }
}

fn forget_oldest(work: &mut Vec<Effect>) {
    let forgotten = work.len().saturating_sub(WORK);
    work.drain(..forgotten);
}

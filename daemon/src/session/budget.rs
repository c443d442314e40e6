//! The model calls of a tree of sessions, reserved in one place under the limits of the session at the
//! top.
//!
//! The session at the top owns the place and tells it after each commit what its log says: the limits
//! and what is used. Reservations are in memory, like the calls that they are for. A call that does
//! not fit beside those in flight waits here in a queue, and is woken when one of them has settled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loopd_proto::event::budget::AgentSpent;
use loopd_proto::id::TaskId;
use loopd_proto::session::{LIMIT_ERROR, SessionLimits};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::SessionHandle;
use super::actor::Actor;
use crate::turn::model_call::ModelCallInput;
use loopd_kernel::budget::{self, Admission, CallEstimate, OtherCalls, Spend};
use loopd_kernel::command::{Command, ModelFailure, SideUsage};
use loopd_kernel::context;
use loopd_kernel::decide::limits;
use loopd_kernel::model::Usage;
use loopd_kernel::run_limits::RunTurns;
use loopd_kernel::state::{Stage, State, TurnKey};

/// The longest output that is reserved for a model that does not state one.
const USUAL_OUTPUT: u64 = 16_384;

/// How long a call waits for others to settle. Calls end before that by their own limits of time.
const LONGEST_WAIT: Duration = Duration::from_secs(20 * 60);

/// How long a call waits before clients are told so.
const BEFORE_NOTICE: Duration = Duration::from_secs(1);

/// The reservations of one tree.
#[derive(Default)]
pub(super) struct TreeBudget {
    /// Whether there are limits, so that sessions without limits need not take the lock.
    limited: AtomicBool,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// What the log of the session at the top says.
    limits: Option<SessionLimits>,
    /// How many of the calls the run under way may make.
    run: Option<RunTurns>,
    spent: Spend,
    in_flight: usize,
    reserved: Spend,
    waiting: VecDeque<Waiting>,
}

/// A call that waits for others to settle.
struct Waiting {
    call: CallEstimate,
    reply: oneshot::Sender<Decided>,
}

type Decided = Result<Reservation, Refused>;

/// Why a call may not start.
enum Refused {
    Reached(budget::LimitReached),
    Unpriced,
}

/// A call that may start. Dropping it settles the call: the log has what was used by then, or nothing
/// is known of it.
pub(super) struct Reservation {
    budget: Arc<TreeBudget>,
    reserved: Spend,
    /// The most tokens that the reply may have; `None` without limits.
    output_tokens: Option<u64>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.settle(self.reserved);
    }
}

impl Book {
    fn others(&self, waiting: usize) -> OtherCalls {
        OtherCalls {
            in_flight: self.in_flight,
            reserved: self.reserved,
            waiting,
        }
    }

    /// Decides about a call; `None` if it has to wait.
    fn decide(
        &mut self,
        call: &CallEstimate,
        waiting: usize,
        budget: &Arc<TreeBudget>,
    ) -> Option<Decided> {
        let (reserved, output_tokens) = match self.limits {
            None => (Spend::default(), None),
            Some(limits) => match budget::admit(&limits, self.spent, self.others(waiting), call) {
                Admission::Granted {
                    output_tokens,
                    reserved,
                } => (reserved, Some(output_tokens)),
                Admission::Waits => return None,
                Admission::Reached(reached) => {
                    let told = self.run.map_or(reached, |run| run.told(reached));
                    return Some(Err(Refused::Reached(told)));
                }
                Admission::Unpriced => return Some(Err(Refused::Unpriced)),
            },
        };
        self.in_flight += 1;
        self.reserved = self.reserved.plus(reserved);
        Some(Ok(Reservation {
            budget: budget.clone(),
            reserved,
            output_tokens,
        }))
    }

    /// Decides about the calls that wait, first come, first served. The caller sends the decisions
    /// after it has let go of the lock, because a decision that nobody takes settles again.
    fn decide_waiting(
        &mut self,
        budget: &Arc<TreeBudget>,
    ) -> Vec<(oneshot::Sender<Decided>, Decided)> {
        let mut decided = Vec::new();
        self.waiting.retain(|waiting| !waiting.reply.is_closed());
        while let Some(first) = self.waiting.pop_front() {
            let Some(decision) = self.decide(&first.call, self.waiting.len(), budget) else {
                self.waiting.push_front(first);
                break;
            };
            decided.push((first.reply, decision));
        }
        decided
    }
}

impl TreeBudget {
    pub(super) fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Acquire)
    }

    /// Takes over what the log of the session at the top says.
    fn update(self: &Arc<Self>, state: &State) {
        let limits = state.limits_in_force();
        self.limited.store(limits.is_some(), Ordering::Release);
        self.change(|book| {
            book.limits = limits;
            book.run = state.run_turns();
            book.spent = match limits {
                Some(_) => budget::spent(state),
                None => Spend::default(),
            };
        });
    }

    fn settle(self: &Arc<Self>, reserved: Spend) {
        self.change(|book| {
            book.in_flight = book.in_flight.saturating_sub(1);
            book.reserved = book.reserved.beyond(reserved);
        });
    }

    /// Changes the book, and wakes the calls that fit now.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Book)) {
        let decided = {
            let mut book = self.book.lock();
            change(&mut book);
            book.decide_waiting(self)
        };
        for (reply, decision) in decided {
            // If the call has been cancelled, its reservation settles here.
            reply.send(decision).ok();
        }
    }

    /// Reserves a call, after those in flight if it does not fit beside them.
    /// `waits` is called if that takes long.
    async fn reserve(
        self: &Arc<Self>,
        call: CallEstimate,
        waits: impl FnOnce(),
    ) -> Result<Reservation, ReserveError> {
        let answer = {
            let mut book = self.book.lock();
            let waiting = book.waiting.len();
            // Who comes later does not overtake.
            let decided = (waiting == 0)
                .then(|| book.decide(&call, 0, self))
                .flatten();
            if let Some(decided) = decided {
                return decided.map_err(ReserveError::Refused);
            }
            let (reply, answer) = oneshot::channel();
            book.waiting.push_back(Waiting { call, reply });
            answer
        };
        tokio::pin!(answer);
        let soon = tokio::time::timeout(BEFORE_NOTICE, &mut answer).await;
        let answered = if let Ok(answered) = soon {
            Ok(answered)
        } else {
            waits();
            tokio::time::timeout(LONGEST_WAIT, answer).await
        };
        match answered {
            Ok(Ok(decided)) => decided.map_err(ReserveError::Refused),
            Ok(Err(_)) | Err(_) => Err(ReserveError::Late),
        }
    }
}

/// Why a call was not reserved.
enum ReserveError {
    Refused(Refused),
    /// The calls in flight did not settle in time.
    Late,
}

impl ReserveError {
    fn failure(&self, model: &str) -> ModelFailure {
        let of = |kind: &str, code: &str, message: String| ModelFailure {
            kind: kind.to_owned(),
            code: Some(code.to_owned()),
            message,
            status: None,
            provider_call_id: None,
            model: Some(model.to_owned()),
            retry_after_seconds: None,
        };
        match self {
            Self::Refused(Refused::Reached(reached)) => {
                limits::failure(reached, Some(model.to_owned()))
            }
            Self::Refused(Refused::Unpriced) => of(
                "configuration",
                "model_not_priced",
                format!(
                    "sessionLimits.maxCostUsd limits what this session may cost, and the model {model} has \
                     no price; add the table [prices.\"{model}\"] with `input` and `output` to config.toml"
                ),
            ),
            Self::Late => of(
                LIMIT_ERROR,
                "session_limits_wait",
                format!(
                    "the other model calls under the limits of this session did not end within {} minutes",
                    LONGEST_WAIT.as_secs() / 60
                ),
            ),
        }
    }
}

/// Where the reservation of the session at the top waits until its own log has what was used, with
/// the turn that called. The next turn may begin in the transaction that stores the reply.
pub(super) type UnsettledCall = Arc<Mutex<Option<(TurnKey, Reservation)>>>;

/// The same for a call beside the conversation.
pub(super) type UnsettledSideCall = Arc<Mutex<Option<Reservation>>>;

/// What a model call needs to be reserved and settled.
pub(super) struct CallBudget {
    budget: Arc<TreeBudget>,
    call: CallEstimate,
    records: Records,
}

/// Who records what the call used.
enum Records {
    /// The session itself, which is at the top.
    Own(UnsettledCall),
    /// The same for a call beside the conversation.
    Beside(UnsettledSideCall),
    /// The session at the top, for this task of it.
    Above { top: SessionHandle, task: TaskId },
}

impl CallBudget {
    /// Reserves the call of a turn and limits the reply to what was reserved.
    pub(super) async fn reserve_turn(
        &self,
        input: &mut ModelCallInput,
    ) -> Result<Reservation, ModelFailure> {
        let model = input.request.model.clone();
        let reservation = self.reserve(&model, || input.waits()).await?;
        input.request.max_output_tokens = reservation.output_tokens;
        Ok(reservation)
    }

    /// Reserves the call. `waits` is called if that takes long.
    pub(super) async fn reserve(
        &self,
        model: &str,
        waits: impl FnOnce(),
    ) -> Result<Reservation, ModelFailure> {
        let reserved = self.budget.reserve(self.call, waits).await;
        reserved.map_err(|error| error.failure(model))
    }

    /// Settles the call of a turn with what it used. A call that was refused has used nothing.
    pub(super) async fn settle(self, reservation: Reservation, ended: &Command) {
        let (turn, usage, nano_usd, estimated) = match ended {
            Command::ModelReplied(replied) => {
                let estimated = replied.reported.is_some();
                (
                    &replied.turn,
                    replied.reply.usage,
                    replied.nano_usd,
                    estimated,
                )
            }
            Command::ModelFailed {
                turn,
                lost: Some(lost),
                ..
            } => (turn, lost.usage, lost.nano_usd, true),
            _ => return,
        };
        let turn = turn.clone();
        self.record(reservation, Some(turn), usage, nano_usd, estimated)
            .await;
    }

    /// Settles a call beside the conversation with what it used.
    pub(super) async fn settle_side(self, reservation: Reservation, used: &SideUsage) {
        self.record(reservation, None, used.usage, used.nano_usd, used.estimated)
            .await;
    }

    async fn record(
        self,
        reservation: Reservation,
        turn: Option<TurnKey>,
        usage: Usage,
        nano_usd: u64,
        estimated: bool,
    ) {
        match self.records {
            Records::Beside(unsettled) => {
                let earlier = unsettled.lock().replace(reservation);
                drop(earlier);
            }
            Records::Own(unsettled) => {
                let Some(turn) = turn else {
                    return;
                };
                // The session stores the reply next, and drops the reservation after that.
                let settles = (turn, reservation);
                let earlier = unsettled.lock().replace(settles);
                drop(earlier);
            }
            Records::Above { top, task } => {
                let spent = Command::AgentSpent(AgentSpent {
                    id: task,
                    tokens: usage.input_tokens.saturating_add(usage.output_tokens),
                    nano_usd,
                    nano_credits: usage.nano_credits,
                    estimated,
                });
                if let Err(error) = top.command(spent).await {
                    tracing::warn!(session = %top.id(), %error, "what a sub-agent used is known when it answers");
                }
            }
        }
    }
}

impl Actor {
    /// Returns what the next model call needs under limits; `None` without limits.
    pub(super) fn call_budget(&self, input: &ModelCallInput) -> Option<CallBudget> {
        let own = Records::Own(self.unsettled.clone());
        self.budget_of(own, || self.estimate(input))
    }

    /// Does the same for a call beside the conversation with so many tokens.
    pub(super) fn side_budget(
        &self,
        model: &str,
        input_tokens: u64,
        output_limit: u64,
    ) -> Option<CallBudget> {
        let own = Records::Beside(self.unsettled_side.clone());
        self.budget_of(own, || CallEstimate {
            input_tokens,
            output_limit,
            price: self.services.config.prices.of(model),
            nano_credits: self.state.totals.last_credits,
        })
    }

    fn budget_of(
        &self,
        own: Records,
        estimate: impl FnOnce() -> CallEstimate,
    ) -> Option<CallBudget> {
        let parent = self.subagents.parent().zip(self.state.subagent.as_ref());
        let (budget, records) = if let Some((parent, subagent)) = parent {
            let tree = parent.tree();
            if !tree.budget.is_limited() {
                return None;
            }
            let path = subagent.task.as_str();
            let task = path.split('.').next().unwrap_or(path);
            let records = Records::Above {
                top: tree.top.clone(),
                task: TaskId::from(task),
            };
            (&tree.budget, records)
        } else {
            self.state.limits_in_force()?;
            self.budget.update(&self.state);
            (&self.budget, own)
        };
        Some(CallBudget {
            budget: budget.clone(),
            call: estimate(),
            records,
        })
    }

    /// Estimates a model call: what the last one used and what is new, or all of it at first.
    fn estimate(&self, input: &ModelCallInput) -> CallEstimate {
        let last = self.state.totals.last_call;
        let new = context::tokens_since_answer(&self.state).filter(|_| last.input_tokens > 0);
        let input_tokens = match new {
            Some(new) => last
                .input_tokens
                .saturating_add(last.output_tokens)
                .saturating_add(new),
            None => input.size.total(),
        };
        let model = &input.request.model;
        let known = input.route.known_model(model);
        CallEstimate {
            input_tokens,
            output_limit: known
                .and_then(|known| known.max_output_tokens)
                .unwrap_or(USUAL_OUTPUT),
            price: self.services.config.prices.of(model),
            nano_credits: self.state.totals.last_credits,
        }
    }

    /// Tells the reservations of the tree what the log says now. Called after each commit.
    pub(super) fn settle_calls(&self) {
        if self.subagents.is_child() {
            return;
        }
        if self.state.limits_in_force().is_none() && !self.budget.is_limited() {
            return;
        }
        self.budget.update(&self.state);
        if self.state.compaction.running.is_none() {
            let settled = self.unsettled_side.lock().take();
            drop(settled);
        }
        let turn = self.state.turn();
        let calling = turn.filter(|turn| matches!(turn.stage, Stage::Calling));
        let calling = calling.map(|turn| &turn.key);
        let settled = self
            .unsettled
            .lock()
            .take_if(|(turn, _)| calling != Some(&*turn));
        drop(settled);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;

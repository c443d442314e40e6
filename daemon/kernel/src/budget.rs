//! The arithmetic of limits: what a tree of sessions has used, and whether one more model call fits.
//!
//! A call is reserved before it starts and settled with its real usage afterwards. Only settled usage
//! reaches a limit: a call that does not fit beside the calls in flight waits for them, and one that
//! does not fit alone is the last. So a limit is exceeded by at most what that call was reserved for,
//! as far as its input was estimated rightly.
//!
//! What a call has used that was cut short, by an abort or by the end of the daemon, is not known and
//! not counted.

use loopd_proto::event::budget::AgentSpent;
use loopd_proto::event::fact::UsageRecorded;
use loopd_proto::event::session::TokenMetrics;
use loopd_proto::event::task::WorkUsage;
use loopd_proto::session::{LimitKind, SessionLimits};
use loopd_proto::time::Timestamp;

use super::model::Usage;
use super::state::State;

/// A call gets at least so many output tokens, or it waits until others have settled.
pub const LEAST_OUTPUT: u64 = 256;

/// At this part of a limit, people are warned.
const WARN_AT: f64 = 0.8;
/// The share of a limit at which people are told that it was passed.
const FAR: f64 = 1.5;

const NANO: f64 = 1e9;

/// What model calls used, in the units of all limits but time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    pub turns: u64,
    /// Input and output tokens.
    pub tokens: u64,
    pub nano_usd: u64,
    pub nano_credits: u64,
}

impl Spend {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            nano_usd: self.nano_usd.saturating_add(other.nano_usd),
            nano_credits: self.nano_credits.saturating_add(other.nano_credits),
        }
    }

    /// Returns by how much this exceeds the other, in each unit.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(other.turns),
            tokens: self.tokens.saturating_sub(other.tokens),
            nano_usd: self.nano_usd.saturating_sub(other.nano_usd),
            nano_credits: self.nano_credits.saturating_sub(other.nano_credits),
        }
    }

    /// Returns the larger number of each unit. Two reports about the same work may lag behind.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        Self {
            turns: self.turns.max(other.turns),
            tokens: self.tokens.max(other.tokens),
            nano_usd: self.nano_usd.max(other.nano_usd),
            nano_credits: self.nano_credits.max(other.nano_credits),
        }
    }
}

impl From<&WorkUsage> for Spend {
    fn from(usage: &WorkUsage) -> Self {
        Self {
            turns: usage.models.values().map(|it| it.requests.count).sum(),
            tokens: usage.tokens(),
            nano_usd: usage.nano_usd,
            nano_credits: usage.nano_credits,
        }
    }
}

impl From<&AgentSpent> for Spend {
    fn from(spent: &AgentSpent) -> Self {
        Self {
            turns: 1,
            tokens: spent.tokens,
            nano_usd: spent.nano_usd,
            nano_credits: spent.nano_credits,
        }
    }
}

impl From<&UsageRecorded> for Spend {
    fn from(used: &UsageRecorded) -> Self {
        Self {
            turns: 1,
            tokens: tokens_of(&used.tokens),
            nano_usd: used.nano_usd,
            nano_credits: used.nano_credits,
        }
    }
}

/// Returns what the session and all its sub-agents have used, as far as its log says. A sub-agent
/// that ran before the session had limits counts when it answers.
pub fn spent(state: &State) -> Spend {
    let totals = &state.totals;
    let models = totals.models.values();
    let own = models.fold(Spend::default(), |sum, metrics| Spend {
        turns: sum.turns.saturating_add(metrics.requests.count),
        tokens: sum.tokens.saturating_add(tokens_of(&metrics.usage)),
        ..sum
    });
    let own = Spend {
        nano_usd: totals.nano_usd,
        nano_credits: totals.nano_credits,
        ..own
    };
    let own = own.plus(totals.unreported);
    state.tasks.iter().fold(own, |sum, task| {
        sum.plus(task.spent.at_least(Spend::from(&task.usage)))
    })
}

fn tokens_of(usage: &TokenMetrics) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

/// The prices of a model, in billionths of a US dollar per token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Price {
    /// A model that costs nothing, such as the one that is built in.
    pub const FREE: Self = Self {
        input: 0.0,
        output: 0.0,
        cache_read: 0.0,
        cache_write: 0.0,
    };

    /// Returns the cost of a call. Its input includes what was read from and written to a cache.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let cached = usage
            .cache_read_tokens
            .saturating_add(usage.cache_write_tokens);
        let fresh = usage.input_tokens.saturating_sub(cached);
        nano(
            number(fresh) * self.input
                + number(usage.cache_read_tokens) * self.cache_read
                + number(usage.cache_write_tokens) * self.cache_write
                + number(usage.output_tokens) * self.output,
        )
    }

    /// Returns the highest cost of a call with these tokens: nothing comes from a cache, and all may
    /// be written to one.
    fn reserved(&self, input: u64, output: u64) -> u64 {
        let input_price = self.input.max(self.cache_write);
        nano(number(input) * input_price + number(output) * self.output)
    }
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

/// Rounds up, so that no rounding hides a cost.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is not negative, and casts saturate"
)]
fn nano(amount: f64) -> u64 {
    amount.max(0.0).ceil() as u64
}

/// What is known about a model call before it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallEstimate {
    pub input_tokens: u64,
    /// The longest output that the model or its configuration allows.
    pub output_limit: u64,
    /// `None` if the model has no price.
    pub price: Option<Price>,
    /// What the last call of the session was charged.
    pub nano_credits: u64,
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitReached {
    pub kind: LimitKind,
    pub used: f64,
    pub limit: f64,
    /// Whether it is the limit of one run, and not of the session.
    pub of_run: bool,
}

/// Whether a model call may start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Admission {
    /// The call may start. It may produce so many tokens, and so much is reserved for it.
    Granted {
        output_tokens: u64,
        reserved: Spend,
    },
    /// The call does not fit beside those in flight.
    Waits,
    Reached(LimitReached),
    /// The cost is limited, and the model has no price.
    Unpriced,
}

/// The calls of the tree beside the one that asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherCalls {
    pub in_flight: usize,
    /// What is reserved for those in flight.
    pub reserved: Spend,
    /// How many wait to start, the one that asks not counted.
    pub waiting: usize,
}

/// Returns the first limit that is reached, except for that of time.
pub fn reached(limits: &SessionLimits, spent: Spend) -> Option<LimitReached> {
    let amounts = used(limits, spent);
    let mut reached = amounts.into_iter().flatten();
    reached.find(|amount| amount.used >= amount.limit)
}

/// Returns the limits that are set, with what is used of each, except for that of time.
fn used(limits: &SessionLimits, spent: Spend) -> [Option<LimitReached>; 4] {
    let amount = |kind, used, limit: Option<f64>| {
        limit.map(|limit| LimitReached {
            kind,
            used,
            limit,
            of_run: false,
        })
    };
    [
        amount(
            LimitKind::Credits,
            number(spent.nano_credits) / NANO,
            limits.max_ai_credits,
        ),
        amount(
            LimitKind::Cost,
            number(spent.nano_usd) / NANO,
            limits.max_cost_usd,
        ),
        amount(
            LimitKind::Tokens,
            number(spent.tokens),
            limits.max_tokens.map(number),
        ),
        amount(
            LimitKind::Turns,
            number(spent.turns),
            limits.max_turns.map(number),
        ),
    ]
}

/// Returns the limits of which most is used since `before`, and not all.
pub fn nearly_reached(limits: &SessionLimits, before: Spend, after: Spend) -> Vec<LimitReached> {
    let pairs = used(limits, before).into_iter().zip(used(limits, after));
    let pairs = pairs.filter_map(|(before, after)| Some((before?, after?)));
    let crossed = |(before, after): &(LimitReached, LimitReached)| {
        let mark = after.limit * WARN_AT;
        before.used < mark && after.used >= mark && after.used < after.limit
    };
    pairs.filter(crossed).map(|(_, after)| after).collect()
}

/// Returns the limits of tokens and money that are passed by far since `before`: a call used more than
/// was reserved for it.
pub fn far_exceeded(limits: &SessionLimits, before: Spend, after: Spend) -> Vec<LimitReached> {
    let pairs = used(limits, before).into_iter().zip(used(limits, after));
    let pairs = pairs.filter_map(|(before, after)| Some((before?, after?)));
    let crossed = |(before, after): &(LimitReached, LimitReached)| !is_far(before) && is_far(after);
    pairs.filter(crossed).map(|(_, after)| after).collect()
}

/// Returns the limits of which little was used before and nothing is left after: no warning came between,
/// and none comes of [`far_exceeded`].
pub fn jumped_over(limits: &SessionLimits, before: Spend, after: Spend) -> Vec<LimitReached> {
    let pairs = used(limits, before).into_iter().zip(used(limits, after));
    let pairs = pairs.filter_map(|(before, after)| Some((before?, after?)));
    let jumped = |(before, after): &(LimitReached, LimitReached)| {
        before.used < after.limit * WARN_AT && after.used >= after.limit && !is_far(after)
    };
    pairs.filter(jumped).map(|(_, after)| after).collect()
}

/// Whether a limit of what calls reserve is passed by far.
fn is_far(reached: &LimitReached) -> bool {
    matches!(reached.kind, LimitKind::Tokens | LimitKind::Cost)
        && reached.used >= reached.limit * FAR
}

/// Decides whether a call may start beside the others of its tree.
pub fn admit(
    limits: &SessionLimits,
    spent: Spend,
    others: OtherCalls,
    call: &CallEstimate,
) -> Admission {
    if let Some(reached) = reached(limits, spent) {
        return Admission::Reached(reached);
    }
    if limits.max_cost_usd.is_some() && call.price.is_none() {
        return Admission::Unpriced;
    }
    let price = call.price.unwrap_or(Price::FREE);
    let taken = spent.plus(others.reserved);
    // The output tokens that each limit leaves; `None` if not even the input fits.
    let by_tokens = match limits.max_tokens {
        Some(limit) => limit
            .checked_sub(taken.tokens)
            .and_then(|left| left.checked_sub(call.input_tokens)),
        None => Some(u64::MAX),
    };
    let by_cost = match limits.max_cost_usd {
        Some(limit) => nano(limit * NANO)
            .checked_sub(taken.nano_usd)
            .and_then(|left| left.checked_sub(price.reserved(call.input_tokens, 0)))
            .map(|left| affordable(left, price.output)),
        None => Some(u64::MAX),
    };
    let has_turn = limits.max_turns.is_none_or(|limit| taken.turns < limit);
    let has_credits = limits.max_ai_credits.is_none_or(|limit| {
        number(taken.nano_credits.saturating_add(call.nano_credits)) / NANO <= limit
    });
    let least = LEAST_OUTPUT.min(call.output_limit);
    let room = by_tokens.zip(by_cost).map(|(one, other)| one.min(other));
    let fits = room.filter(|room| *room >= least && has_turn && has_credits);
    let output_tokens = match fits {
        // Those that wait get their share.
        Some(room) if room < u64::MAX => {
            let sharers = u64::try_from(others.waiting).unwrap_or(u64::MAX);
            let share = room / sharers.saturating_add(1);
            share.max(least).min(call.output_limit)
        }
        Some(_) => call.output_limit,
        None if others.in_flight > 0 => return Admission::Waits,
        // What is left is not enough, and nothing will come back: this is the last call.
        None => room.unwrap_or(0).max(least).min(call.output_limit),
    };
    Admission::Granted {
        output_tokens,
        reserved: Spend {
            turns: 1,
            tokens: call.input_tokens.saturating_add(output_tokens),
            nano_usd: price.reserved(call.input_tokens, output_tokens),
            nano_credits: call.nano_credits,
        },
    }
}

/// Returns how many tokens of a price an amount pays for.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the quotient is not negative, and casts saturate"
)]
fn affordable(nano_usd: u64, price: f64) -> u64 {
    if price > 0.0 {
        (number(nano_usd) / price).floor() as u64
    } else {
        u64::MAX
    }
}

/// How long the session and its sub-agents have worked since the session has a limit of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkedTime {
    total_ms: u64,
    /// Since when they work now.
    since: Option<Timestamp>,
    /// The time of the last event.
    last: Timestamp,
    /// Whether the limit was reached and the work is being stopped.
    pub stopping: bool,
}

impl WorkedTime {
    /// Returns how many milliseconds they have worked; `None` if they do not work now.
    pub fn running_ms(&self, now: Timestamp) -> Option<u64> {
        let since = self.since?;
        Some(self.total_ms.saturating_add(now.millis_since(since)))
    }

    /// Returns how many milliseconds they have worked.
    pub fn ms(&self, now: Timestamp) -> u64 {
        self.running_ms(now).unwrap_or(self.total_ms)
    }

    /// Notes at an event whether they work.
    pub(crate) fn note(&mut self, at: Timestamp, works: bool) {
        match (self.since, works) {
            (None, true) => self.since = Some(at),
            (Some(_), false) => {
                self.stop(at);
                self.stopping = false;
            }
            (None, false) | (Some(_), true) => {}
        }
        self.last = at;
    }

    fn stop(&mut self, at: Timestamp) {
        if let Some(since) = self.since.take() {
            self.total_ms = self.total_ms.saturating_add(at.millis_since(since));
        }
    }

    /// The daemon was gone since the last event: that time does not count.
    pub(crate) fn was_cut(&mut self) {
        self.stop(self.last);
    }
}

/// Returns the limit of time if it is reached.
pub fn time_reached(state: &State, now: Timestamp) -> Option<LimitReached> {
    let of_session = state.options.session_limits;
    of_session
        .and_then(|limits| time_reached_under(state, &limits, now))
        .or_else(|| run_time_reached(state, now))
}

/// Returns the limit of time of the run under way if it is reached.
fn run_time_reached(state: &State, now: Timestamp) -> Option<LimitReached> {
    let (most, taken) = state.run_time(now)?;
    (taken >= most).then_some(LimitReached {
        kind: LimitKind::Time,
        used: number(taken) / 1_000.0,
        limit: number(most) / 1_000.0,
        of_run: true,
    })
}

/// Returns the limit of time if it is reached under these limits.
pub fn time_reached_under(
    state: &State,
    limits: &SessionLimits,
    now: Timestamp,
) -> Option<LimitReached> {
    let limit = limits.timeout_seconds?;
    let used = number(state.worked.ms(now)) / 1_000.0;
    (used >= limit).then_some(LimitReached {
        kind: LimitKind::Time,
        used,
        limit,
        of_run: false,
    })
}

/// Returns how many milliseconds are left until the limit of time is reached; `None` if there is no
/// such limit or nothing works.
pub fn time_left_ms(state: &State, now: Timestamp) -> Option<u64> {
    let limits = state.options.session_limits;
    let of_session = limits.and_then(|limits| limits.timeout_seconds);
    let of_session = of_session.zip(state.worked.running_ms(now));
    let of_session = of_session.map(|(limit, worked)| nano(limit * 1_000.0).saturating_sub(worked));
    let works = state.is_busy() || state.tasks.has_agents_at_work();
    let of_run = state.run_time(now).filter(|_| works);
    let of_run = of_run.map(|(most, taken)| most.saturating_sub(taken));
    let left = of_session.into_iter().chain(of_run).min()?;
    (!state.worked.stopping).then_some(left)
}

#[cfg(test)]
mod tests;

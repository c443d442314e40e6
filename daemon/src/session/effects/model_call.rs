//! The model call of a turn, under the limits of its tree; and the wait for a provider that takes no
//! requests for a while.

use std::time::Duration;

use loopd_proto::time::Timestamp;

use super::{Reporter, internal_failure};
use crate::discovery::hooks::HookKind;
use crate::hook::{ErrorHandling, HookContext};
use crate::session::account;
use crate::session::actor::Actor;
use crate::session::budget::CallBudget;
use crate::session::work::Work;
use crate::turn::model_call::{self, ModelCallInput};
use loopd_kernel::command::Command;
use loopd_kernel::context;
use loopd_kernel::model::{Delivery, ModelRequest, ToolUse};
use loopd_kernel::state::TurnKey;
use loopd_kernel::usage::LostAttempts;

/// After so long, a wait looks at the clock again: the clock may be set, and machines sleep.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The hooks that are told about failed calls.
type ErrorHooks = Option<(HookContext, Reporter)>;

impl Actor {
    pub(super) fn call_model(&mut self, turn: TurnKey) -> Work {
        let tools = self.toolset().specs();
        let model = self.state.model_in_force().unwrap_or_default().to_owned();
        let counted = self.counted(&tools);
        let size = self.state.context_size.of_request(&model, counted);
        let route = self.route();
        let window = account::window(&route, &model);
        self.window = Some((model.clone(), window));
        let request = ModelRequest {
            model,
            messages: context::messages(&self.state),
            tools,
            delivery: if self.state.options.streaming == Some(true) {
                Delivery::Streamed
            } else {
                Delivery::Whole
            },
            reasoning_effort: self.effort_in_force(),
            reasoning_summary: self.state.options.reasoning_summary.clone(),
            max_output_tokens: None,
            tool_use: ToolUse::Free,
            headers: self.running.headers(),
        };
        let mut input = ModelCallInput {
            turn: turn.clone(),
            request,
            message: self.services.clock.id().into(),
            session: self.state.id.clone(),
            tip: self.state.tip.clone(),
            audience: self.clients.audience().clone(),
            services: self.services.clone(),
            route,
            counted,
            size,
            window,
            lost: LostAttempts::default(),
        };
        let budget = self.call_budget(&input);
        let cancel = self.running.turn();
        let failed = turn;
        let hooks = self.has_hooks(HookKind::ErrorOccurred, None);
        let hooks = hooks.then(|| (self.hook_context(), self.reporter()));
        Work::new(
            async move {
                let called = async {
                    match budget {
                        None => call(&mut input, hooks).await,
                        Some(budget) => budgeted_call(budget, &mut input, hooks).await,
                    }
                };
                tokio::select! {
                    () = cancel.cancelled() => None,
                    command = called => Some(command),
                }
            },
            move || Command::ModelFailed {
                lost: None,
                turn: failed,
                failure: internal_failure(),
            },
        )
    }

    /// Waits until the provider may take requests again, or the turn is cancelled.
    pub(super) fn await_provider(&self, turn: TurnKey, until: Timestamp) -> Work {
        let cancel = self.running.turn();
        let services = self.services.clone();
        let over = turn.clone();
        Work::new(
            async move {
                let wait = async {
                    loop {
                        let left = until.millis_since(services.clock.now());
                        if left == 0 {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(left).min(LOOK_AGAIN)).await;
                    }
                };
                tokio::select! {
                    () = cancel.cancelled() => None,
                    () = wait => Some(Command::WaitOver { turn }),
                }
            },
            move || Command::WaitOver { turn: over },
        )
    }
}

/// Calls the model; hooks may have a failed call repeated.
async fn call(input: &mut ModelCallInput, hooks: ErrorHooks) -> Command {
    match hooks {
        None => model_call::call(input).await,
        Some((context, reporter)) => hooked_call(input, &context, &reporter).await,
    }
}

/// Does the same after the call is reserved, and settles it.
async fn budgeted_call(
    budget: CallBudget,
    input: &mut ModelCallInput,
    hooks: ErrorHooks,
) -> Command {
    let reservation = match budget.reserve_turn(input).await {
        Ok(reservation) => reservation,
        Err(failure) => {
            return Command::ModelFailed {
                lost: None,
                turn: input.turn.clone(),
                failure,
            };
        }
    };
    let ended = call(input, hooks).await;
    budget.settle(reservation, &ended).await;
    ended
}

/// Calls the model and asks hooks about a failure.
async fn hooked_call(
    input: &mut ModelCallInput,
    context: &HookContext,
    reporter: &Reporter,
) -> Command {
    let mut tries = 0;
    loop {
        let called = model_call::call(input).await;
        let Command::ModelFailed { failure, .. } = &called else {
            return called;
        };
        let (handling, ended) = context.error_occurred(&failure.message, true).await;
        if !ended.is_empty() {
            let noted = Command::HooksNoted {
                context: Vec::new(),
                ended,
            };
            reporter.report(noted).await;
        }
        match handling {
            ErrorHandling::Retry(most) if tries < most => tries += 1,
            ErrorHandling::Retry(_) | ErrorHandling::AsUsual => return called,
        }
    }
}

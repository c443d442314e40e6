//! Turns a command into the events to store, the events to send and the effects to start.
//!
//! `decide` is pure: it reads the state and changes nothing. Each kind of command has its own file
//! below.

mod abort;
mod agents;
mod answer;
mod asking;
mod autopilot;
mod beside;
mod clear;
mod compaction;
mod fleet;
mod form;
mod guard_folders;
mod guards;
mod hooks;
mod instructions;
mod life;
pub mod limits;
mod model_switch;
mod narrowing;
mod part;
mod plan;
pub mod provider_wait;
mod queue;
mod refused_files;
mod research;
pub mod rewind;
mod room;
mod settings;
mod skills;
mod tasks;
#[cfg(test)]
pub(crate) mod tests;
mod todos;
mod tools;
mod turn;
mod vouched_hooks;

use loopd_proto::event::fact::{LoopEnded, LoopOutcome};
use loopd_proto::event::session::Idle;
use loopd_proto::event::turn::AssistantIdle;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::session::Mode;

use super::autopilot::RunEnd;
use super::command::{Command, DecideEnv, Decision, Refusal, Step};
use super::state::State;

/// Decides one command against the state.
pub fn decide(
    state: &State,
    command: Command,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    match command {
        Command::Create(create) => Ok(life::create(state, *create, env)),
        Command::Resume(resume) => life::resume(state, *resume, env),
        Command::TakeUp => Ok(life::take_up(state, env)),
        Command::Recover(recovered) => Ok(life::recover(state, recovered, env)),
        Command::CloseCopied => Ok(life::close_copied(state, env)),
        Command::NarrowLike(source) => Ok(narrowing::like(state, &source)),
        Command::AdoptAsSubagent(subagent) => Ok(agents::enlist(state, *subagent)),
        Command::Suspend(agents) => Ok(life::suspend(state, agents, env)),
        Command::Shutdown(shutdown) => Ok(life::shutdown(state, shutdown, env)),

        Command::SetSubagents(subagents) => {
            settings::inherited::check(state, "settings for sub-agents", env)?;
            Ok(settings::subagents(state, subagents))
        }
        Command::TaskStarted(start) => tasks::started(state, *start, env),
        Command::TaskProcess { id, pid } => Ok(tasks::process(state, id, pid)),
        Command::TaskEnded { id, end } => Ok(tasks::ended(state, &id, end, env)),
        Command::TaskPromoted(id) => Ok(tasks::promoted(state, id)),
        Command::TaskAnswered { id, answer } => Ok(tasks::answered(state, &id, answer, env)),
        Command::TaskContinued { id, message } => Ok(tasks::continued(state, id, message, env)),
        Command::TaskNoted { id, note } => Ok(tasks::noted(state, id, note)),
        Command::TasksDelivered(ids) => Ok(tasks::delivered(state, ids)),
        Command::RemoveTask(id) => Ok(tasks::remove(state, id)),
        Command::UserCommandStarted {
            call,
            tool,
            arguments,
        } => Ok(tasks::user_command_started(call, tool, arguments)),
        Command::UserCommandEnded { call, outcome } => {
            Ok(tasks::user_command_ended(state, &call, outcome))
        }
        Command::ShellWaits(waiting) => {
            let mut decision = Decision::default();
            decision.tell(Ephemeral::ShellWaiting(waiting));
            Ok(decision)
        }

        Command::Rewind(order) => rewind::begin(state, *order, env),
        Command::FilesRestored {
            rewind,
            outcome,
            later,
        } => Ok(rewind::restored(state, &rewind, outcome, later)),

        Command::Send(send) => queue::send(state, send, env),
        Command::EnqueueCommand(line) => queue::slash::enqueue(state, line, env),
        Command::CommandRan { request, outcome } => {
            Ok(queue::slash::ran(state, &request, outcome, env))
        }
        Command::CommandHandled {
            request,
            stop,
            error,
        } => Ok(queue::slash::handled(
            state,
            &request,
            stop,
            error.as_deref(),
            env,
        )),
        Command::ClientsLeft => Ok(queue::slash::clients_left(state, env)),
        Command::ClearQueue => Ok(queue::clear(state)),
        Command::RemoveLastQueued => Ok(queue::remove_last(state)),
        Command::MoveQueued { id, to } => queue::edit::move_to(state, id, to),
        Command::EditQueued {
            id,
            prompt,
            display_prompt,
        } => queue::edit::text(state, id, prompt, display_prompt),
        Command::RemoveQueued(id) => Ok(queue::edit::remove(state, id)),
        Command::SteerQueued(id) => queue::edit::steer(state, id),
        Command::WithdrawMessage { id, expected } => {
            Ok(queue::edit::withdraw(state, id, &expected, env))
        }

        Command::Prepared(prepared) => Ok(turn::prepared(state, prepared, env)),
        Command::PrepareFailed { messages, failure } => {
            Ok(turn::prepare_failed(state, &messages, failure, env))
        }
        Command::ModelReplied(replied) => Ok(turn::model_replied(state, *replied, env)),
        Command::ModelFailed {
            turn,
            failure,
            lost,
        } => Ok(turn::model_failed(state, &turn, failure, lost, env)),
        Command::MakeRoom(need) => Ok(room::make(state, &need, env)),
        Command::OutputsKept { turn, kept } => Ok(room::outputs_kept(state, &turn, kept)),
        Command::Compact(order) => compaction::compact(state, order, env),
        Command::ClearContext(order) => clear::clear(state, order, env),
        Command::StopCompaction(which) => Ok(compaction::stop(state, which)),
        Command::Summarised(summarised) => Ok(compaction::summarised(state, *summarised, env)),
        Command::WaitOver { turn } => Ok(provider_wait::over(state, &turn)),
        Command::AgentSpent(spent) => Ok(limits::agent_spent(state, spent, env)),
        Command::AnswerLimits { request, response } => {
            Ok(limits::answered(state, request, response, env))
        }
        Command::TimeUp => Ok(limits::time_up(state, env)),
        Command::Abort(request) => Ok(abort::abort(state, request, env)),
        Command::GraceOver { turn } => Ok(abort::grace_over(state, &turn, env)),

        Command::Guarded(guarded) => Ok(hooks::guarded(state, *guarded, env)),
        Command::GuardAbsent {
            turn,
            call,
            missing,
        } => Ok(hooks::guard_absent(state, &turn, &call, &missing, env)),
        Command::GuardDenied(request, denial) => {
            Ok(hooks::denied_late(state, &request, denial, env))
        }
        Command::HooksAbsent { asked, missing } => {
            Ok(hooks::permission_absent(state, &asked, &missing, env))
        }
        Command::GuardsChanged => Ok(hooks::guards_changed(state)),
        Command::GuardJoined(joined) => Ok(guards::joined(state, &joined)),
        Command::GuardLeft(left) => Ok(guards::left(state, &left)),
        Command::HoldGuardFolders(folders) => Ok(guard_folders::hold(state, folders)),
        Command::LiftGuards(scope) => {
            settings::inherited::check(state, "hooks", env)?;
            Ok(guards::lift(state, scope, env))
        }
        Command::HooksAnswered {
            asked,
            verdict,
            ended,
        } => Ok(hooks::permission(state, *asked, verdict, ended, env)),
        Command::HooksNoted { context, ended } => Ok(hooks::noted(context, ended)),
        Command::InstructionsFound { call, files } => {
            Ok(instructions::apply_now(state, call, files))
        }
        Command::StopAnswered(answered) => Ok(hooks::stop_answered(state, answered, env)),
        Command::Assessed(assessed) => Ok(tools::assessed(state, *assessed, env)),
        Command::CheckGrant(check) => tools::check_grant(state, &check, env),
        Command::AssessAgain(again) => Ok(tools::assess_again(state, *again)),
        Command::ToolFinished {
            turn,
            call,
            outcome,
        } => Ok(tools::finished(state, &turn, &call, outcome, env)),

        Command::AskForPart(asked) => Ok(part::ask(state, *asked, env)),
        Command::WithdrawPart(request) => Ok(part::withdraw(state, &request)),
        Command::CalledBeside(used, purpose) => Ok(beside::called(state, &used, purpose, env)),
        Command::Titled { was, title } => Ok(beside::titled(state, &was, title)),
        Command::AnswerPermission { request, decision } => {
            answer::permission(state, &request, decision, env)
        }
        Command::SettlePermission(request) => Ok(asking::settle(state, &request, env)),
        Command::AnswerTool { request, outcome } => Ok(answer::tool(state, &request, outcome, env)),
        Command::AnswerUserInput {
            request,
            answer,
            freeform,
        } => Ok(answer::user_input(state, &request, answer, freeform, env)),
        Command::AnswerExitPlanMode {
            request,
            answer,
            edited,
        } => plan::answered(state, &request, answer, edited, env),
        Command::ExitPlanModeFailed { request, why } => {
            Ok(plan::answer_failed(state, &request, &why, env))
        }
        Command::AnswerAutoModeSwitch { request, response } => {
            Ok(model_switch::answered(state, &request, response, env))
        }
        Command::Elicit(asked) => Ok(answer::elicit(*asked)),
        Command::AnswerElicitation {
            request,
            action,
            content,
        } => answer::elicitation(state, &request, action, content),

        Command::SetName { name, by } => Ok(settings::name(state, name, by)),
        Command::SetMode { mode, expected } => {
            settings::inherited::check(state, "mode", env)?;
            Ok(settings::mode(state, mode, expected, env))
        }
        Command::PauseAutopilot(paused) => {
            settings::inherited::check(state, "autopilot", env)?;
            Ok(autopilot::pause(state, paused, env))
        }
        Command::SetModel(choice) => Ok(settings::model(state, *choice)),
        Command::SetReasoningEffort {
            effort,
            default_model,
        } => Ok(settings::effort(state, effort, default_model)),
        Command::UpdateOptions(patch) => {
            settings::inherited::check(state, "options", env)?;
            guard_folders::check_move(state, patch.options.working_directory.as_ref())?;
            Ok(settings::options(state, &patch, env))
        }
        Command::SwitchMcpServer(name, switch) => {
            settings::inherited::check(state, "MCP servers", env)?;
            Ok(settings::mcp_server(state, name, switch))
        }
        Command::ChangePermissions(change) => {
            settings::inherited::check(state, "permissions", env)?;
            settings::permissions::change(state, change, env)
        }
        Command::Grant(grant) => Ok(answer::grant(state, &grant)),
        Command::SelectAgent(pick) => {
            settings::inherited::check(state, "agent that was started", env)?;
            settings::agent(state, pick)
        }
        Command::WriteTodos(inputs) => todos::write(state, inputs, env),
        Command::StoreTodos { by, base, list } => todos::store(state, by.as_ref(), base, list),
        Command::StartFleet(order) => fleet::start(state, order, env),
        Command::AdvanceFleet => fleet::advance(state, env),
        Command::WorkerNotStarted { todo, why } => Ok(fleet::not_started(state, todo, why)),
        Command::StopFleet => Ok(fleet::stop(state)),
        Command::SwitchSkill(switched) => Ok(skills::switch(state, switched)),
        Command::SkillsLoaded(loaded) => Ok(skills::found(loaded)),
        Command::PlanChanged(operation) => Ok(settings::plan(operation)),
        Command::FileChanged(changed) => Ok(settings::file(changed)),
        Command::SetWorkingDirectory(cwd) => {
            settings::inherited::check(state, "directories", env)?;
            guard_folders::check_move(state, Some(&cwd))?;
            Ok(settings::working_directory(state, cwd))
        }
        Command::RecordContext(context) => Ok(settings::context(state, context)),
        Command::Log {
            level,
            kind,
            message,
            url,
            tip,
            stored,
        } => Ok(settings::log(level, kind, message, url, tip, stored)),
    }
}

/// Ends a run of the loop. Stores and announces the end, then starts on waiting work or reports the
/// session idle.
fn rest(state: &State, decision: &mut Decision, outcome: LoopOutcome, env: &DecideEnv<'_>) {
    end_run(state, decision, LoopEnded::with(outcome), env);
}

/// Does the same with the end as it is stored.
fn end_run(state: &State, decision: &mut Decision, ended: LoopEnded, env: &DecideEnv<'_>) {
    let ended = research::end(state, decision, ended);
    let run = match ended.outcome {
        LoopOutcome::Failed if ended.limited => RunEnd::Limited,
        LoopOutcome::Done => RunEnd::Busy,
        LoopOutcome::Aborted => RunEnd::Aborted,
        LoopOutcome::Failed => RunEnd::Failed,
        LoopOutcome::Interrupted => RunEnd::No,
    };
    rest_after(state, decision, ended, run, env);
}

/// Ends a run because a person rejected a call. The model gets no further turn before a person sends
/// a message.
fn rest_rejected(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    let ended = LoopEnded::with(LoopOutcome::Done);
    rest_after(state, decision, ended, RunEnd::Rejected, env);
}

fn rest_after(
    state: &State,
    decision: &mut Decision,
    ended: LoopEnded,
    run: RunEnd,
    env: &DecideEnv<'_>,
) {
    let outcome = ended.outcome;
    decision.store(Durable::LoopEnded(ended));
    let place = decision.steps.len();
    autopilot::after_run(state, decision, run, place, env);
    let place = decision.steps.len();
    let aborted = matches!(outcome, LoopOutcome::Aborted).then_some(true);
    let goes_on = autopilot::may_begin(state, decision, env)
        && match outcome {
            // After a failed turn, a turn for a notification would fail as well.
            LoopOutcome::Done => {
                queue::take_next(state, decision, env) || tasks::wake(state, decision, env)
            }
            // An abort removed what its caller had queued; the rest is of others, or was sent since.
            LoopOutcome::Failed | LoopOutcome::Aborted => queue::take_next(state, decision, env),
            LoopOutcome::Interrupted => false,
        };
    // The model will be notified of agents that still work. The session is idle only after that.
    let deferred =
        aborted.is_none() && (state.tasks.has_agents_at_work() || state.has_fleet_at_work());
    let rests = !goes_on && !deferred;
    let before = decision.steps.len();
    if rests
        && run == RunEnd::Busy
        && autopilot::after_run(state, decision, RunEnd::Quiet, place, env)
    {
        // The loop goes on, so that nothing was idle.
        return;
    }
    let place = place + (decision.steps.len() - before);
    let idle = Ephemeral::AssistantIdle(AssistantIdle { aborted });
    decision.steps.insert(place, Step::Tell(idle));
    if rests {
        tell_idle(state, decision, aborted);
    }
}

/// Tells that the session is idle. In autopilot mode clients take an idle session with its mode for
/// a pause between two runs of the autopilot. Here it is idle only when the autopilot takes no turns
/// by itself, so the mode is left out.
fn tell_idle(state: &State, decision: &mut Decision, aborted: Option<bool>) {
    let mode = settings::mode_after(state, decision);
    decision.tell(Ephemeral::SessionIdle(Idle {
        aborted,
        mode: (mode != Mode::Autopilot).then_some(mode),
    }));
}

//! The short sentences that the kernel writes into the conversation.
//!
//! Recorded conversations contain them. If a sentence changes, old recordings no longer match.

mod agent;
mod autopilot;
pub mod beside;
pub mod compaction;
pub(crate) mod fleet;
pub mod instructions;
mod notice;
mod permission;
mod planning;
pub(crate) mod research;
pub(crate) mod room;
pub mod skill;

use loopd_proto::id::SessionId;
use loopd_proto::permission::PermissionRequest;

/// What people are told when limits are kept by estimates.
pub(crate) const USAGE_ESTIMATED: &str = "What a model call used is not known: the provider did not report it or reported what cannot be, or a reply broke off. \
     Such calls count with an estimate under the limits of this session, a token for every four bytes, or for every sixteen if fewer were reported.";

/// What people are told when notifications start no more runs.
pub(crate) fn woken_too_often(runs: u32) -> String {
    format!(
        "Background work that ended has let the agent go on {runs} times since the last message, as often as it may \
         (max_wakes). What ends from now on is told to it with the next message."
    )
}

pub use agent::{
    AGENT_CLOSED, AGENT_LOG_GONE, AGENT_LOST, AgentRun, started_facts, status_of, worked_in,
};
pub(crate) use agent::{agent_lost, command_ended};
pub use autopilot::NO_TASK_TO_COMPLETE;
pub(crate) use autopilot::{
    AUTOPILOT_WITHOUT_TOOL, COMPLETED_BY_SUBAGENT, FLEET_AT_WORK, GO_ON, OTHER_CALL_FAILED,
    STOPPED_BY_LIMIT, completed_in_vain, continued_in_vain, continued_too_often,
};
pub(crate) use notice::task_rested;
#[cfg(test)]
pub(crate) use permission::COULD_NOT_ASK;
pub use permission::denied_by_rules;
pub(crate) use permission::{asked_by_tool_rule, could_not_ask, warning_about};
pub(crate) use planning::{
    OTHER_PLAN_APPROVED, PlanNext, not_in_plan_mode, plan_answer_failed, plan_approved,
    plan_began_meanwhile, plan_mode_ended, plan_not_answered, plan_rejected, still_running,
};
pub use planning::{plan_mode, refused_while_planning};
pub(crate) use room::left_out;

use crate::guards::ClientGuards;

/// What people are told when calls wait for clients whose hooks guard the session.
pub(crate) fn guard_absent(missing: &ClientGuards, above: Option<&SessionId>) -> String {
    let who = missing.shown();
    if let Some(above) = above {
        return format!(
            "A tool call waits: the hooks of {who} guard the session {above}, to which this sub-agent \
             belongs, or this session itself, and no connection answers them now. Resume the session \
             with that app, or let it go on without these hooks with `loop hooks lift`."
        );
    }
    format!(
        "A tool call waits: the hooks of {who} guard this session, and no connection answers them now. \
         Resume the session with that app, or let it go on without these hooks with `loop hooks lift`."
    )
}

/// What people are told when a client whose hooks guarded the session has left it.
pub(crate) fn guard_left(name: &str) -> String {
    let who = ClientGuards::of([name]).shown();
    format!("The hooks of {who} do not guard this session any more: it has left the session.")
}

/// What people are told when somebody let the session go on without apps whose hooks guarded it.
pub(crate) fn guard_lifted(lifted: &ClientGuards) -> String {
    let who = lifted.shown();
    format!(
        "The hooks of {who} do not guard this session any more: somebody lifted them. They guard it again \
         when that app comes again; one that is there is still asked."
    )
}

/// What people are told when a session moves out of folders whose guards are in force.
pub(crate) fn guards_kept(folders: &[&str], cwd: &str) -> String {
    let folders = folders.join(" and ");
    format!(
        "The session works in {cwd} now. The guards of {folders} stay in force: hooks that guard, and rules \
         that deny or ask. For work without them, open a new session there."
    )
}

/// What people are told when guards that an app vouched for are not in force any more.
pub(crate) fn vouched_guards_left(folders: &[&str]) -> String {
    let folders = folders.join(" and ");
    format!(
        "The hooks of {folders} that guarded this session were changed, or are not named any more: a client \
         named other `hookDirectories`, or the same ones with what is in them now. What it named counts."
    )
}

/// What people are told when a resume turns off the hooks of files.
pub(crate) const HOOKS_OFF: &str = "The hooks of files do not run in this session any more, guards included: a client opened it with \
     `enableFileHooks` or `enableConfigDiscovery` set to false, as `loop --no-hooks` does. They run again \
     when it is opened with `enableFileHooks` set to true. Those of policy run always.";

/// What models read in the place of a message that hooks do not let through.
pub(crate) const PROMPT_BLOCKED: &str = "[A hook keeps this message of the user back.]";

/// What models read in the place of a message that no hook has let through.
pub(crate) const PROMPT_NOT_SEEN: &str = "[A message of the user is kept back: its turn ended before the hooks that see messages had let it through. The user has to send it again.]";

/// What the model is told about a failed call by hooks.
pub fn failure_guidance(tool: &str, guidance: &str) -> String {
    format!(
        "Tool \"{tool}\" failed. Additional guidance from postToolUseFailure hooks:\n{guidance}"
    )
}

/// What people are told when a hook that saw the result of a call stops the agent.
pub(crate) fn stopped_by_hook(reason: &str) -> String {
    format!("A hook stopped the agent after a tool call. {reason}")
}

/// What people are told when hooks have kept the loop from ending too often.
pub(crate) fn stop_block_limit(blocks: u32) -> String {
    format!(
        "Hooks kept the agent from stopping {blocks} times in a row; now it stops. \
         `stop_blocks` in the section [hooks] of config.toml sets the limit."
    )
}

/// The result of a call that an abort or a crash interrupted.
pub const INTERRUPTED: &str = "The execution of this tool, or a previous tool was interrupted.";

/// The result of a call that an answer made beyond the number that are run.
pub(crate) fn too_many_calls(most: usize) -> String {
    format!(
        "Not run: at most {most} calls of one answer are run. Make this one in a later answer if it is still needed."
    )
}

/// The error code of a call that an abort or a crash interrupted.
pub const INTERRUPTED_CODE: &str = "interrupted";

/// The most bytes of what a tool had done that the result of an interrupted call tells.
const LONGEST_LEFT: usize = 16 * 1024;

/// The result of a call that an abort interrupted, with what the tool had done until then.
pub(crate) fn interrupted_with(left: &str) -> String {
    let left = left.trim_end();
    if left.is_empty() {
        return INTERRUPTED.to_owned();
    }
    format!(
        "{INTERRUPTED} This is what there was until then:\n{}",
        end_of(left, LONGEST_LEFT)
    )
}

/// The result of a call that ended by itself while its turn was aborted.
pub(crate) fn ended_before_abort(result: &str) -> String {
    let result = result.trim_end();
    if result.is_empty() {
        return INTERRUPTED.to_owned();
    }
    format!(
        "{INTERRUPTED} This call had ended before, with this result:\n{}",
        end_of(result, LONGEST_LEFT)
    )
}

/// Returns the end of a long text, with a mark where it is cut.
pub fn end_of(text: &str, longest: usize) -> String {
    let from = text.len().saturating_sub(longest);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at));
    match from.and_then(|from| text.get(from..)) {
        Some(end) if end.len() < text.len() => {
            format!(
                "[the first {} bytes are left out]\n{end}",
                text.len() - end.len()
            )
        }
        Some(_) | None => text.to_owned(),
    }
}

/// The result of a call that may have started before a crash interrupted it.
pub const OUTCOME_UNKNOWN: &str = "The daemon stopped while this tool was running, so its outcome is unknown. \
     It may have taken effect in whole or in part; check before running it again.";

/// The result, in a copy that a client made, of a call that was running at that moment.
pub const RUNS_IN_SOURCE: &str = "This call was running in the session that this one was copied from when the copy was made. \
     Its result belongs to that session; check what it did before running it again.";

/// Why a background command of a copy has no exit code.
pub(crate) const TASK_IN_SOURCE: &str =
    "it belongs to the session that this one was copied from, where it was running";

/// Why a background command has no exit code: it ended with the daemon.
pub(crate) const SHELL_LOST: &str =
    "it was interrupted because the daemon stopped, and its outcome is unknown";

/// Why a background command has no exit code: it ended with the session.
pub(crate) const SHELL_CLOSED: &str = "it was stopped because the session was closed";

/// The result, in a fork, of the calls that created it. It is the same in each fork, so that all
/// forks share one beginning.
pub(crate) const FORKED: &str = "This call continues in the conversation that this one was forked from. Its result is not needed here.";

/// Tells the model what a person decided about a call after its turn was over.
pub(crate) fn late_permission(
    tool: &str,
    permission: &PermissionRequest,
    refusal: Option<&str>,
) -> String {
    let subject = match permission {
        PermissionRequest::Shell {
            full_command_text, ..
        } => full_command_text,
        PermissionRequest::Write { file_name, .. } => file_name,
        PermissionRequest::Read { path, .. } => path,
        PermissionRequest::Url { url, .. } => url,
        PermissionRequest::Mcp { tool_name, .. }
        | PermissionRequest::CustomTool { tool_name, .. }
        | PermissionRequest::Hook { tool_name, .. } => tool_name,
    };
    let asked = format!(
        "The user has now answered a permission request of an earlier turn, which was interrupted before the answer came. The call of {tool} ({subject}) did not run."
    );
    match refusal {
        None => format!("{asked} The user allows it: make the call again if it is still needed."),
        Some(refusal) => format!("{asked} The user does not allow it: {refusal}"),
    }
}

/// Why a slash command failed: nobody runs it any more.
pub(crate) const COMMAND_CLIENT_LEFT: &str = "the client that runs it left";

/// Why a slash command failed: the daemon or the session ended while it ran.
pub(crate) const COMMAND_INTERRUPTED: &str =
    "it was interrupted, and whether it took effect is unknown";

/// Says what a slash command of the queue has to say. People read it; the model does not.
pub(crate) fn command_said(command: &str, text: &str) -> String {
    format!("{command}\n{text}")
}

/// Says that a slash command failed. People read it; the model does not.
pub(crate) fn command_failed(command: &str, why: &str) -> String {
    format!("The command {command} failed: {why}")
}

/// Tells an agent that its next turn is the last one.
pub(crate) const LAST_TURN: &str = "<system_reminder>\nThis is your last step: no tool will run after it. Answer now with what you have, and say what is missing.\n</system_reminder>";

/// The warning of a permission request for a command in a shell that was changed.
pub(crate) const CHANGED_SHELL: &str = "An earlier command may have changed this shell, so names in the command may mean something else, and no rule for commands covers it.";

/// The error code of a call that a person rejected. Such a result ends the loop.
pub const REJECTED_CODE: &str = "rejected";

/// The code of a command that was not run because its shell is gone.
pub const SHELL_GONE_CODE: &str = "shell_gone";

pub(crate) const REJECTED_BY_USER: &str = "The user rejected this tool call.";

pub(crate) fn rejected_with_feedback(feedback: &str) -> String {
    format!("{REJECTED_BY_USER} User feedback: {feedback}")
}

/// The result of typing keys that make another line of the text, while deny rules are in force.
pub(crate) const TYPED_KEYS: &str = "Nothing was typed. Deny rules are in force, and they cannot be compared with keys that edit or recall a line, with control characters and with history expansion (`!x`, `^a^b`). Type one whole line that ends in {enter}; {ctrl-c} alone stops the program or drops the line.";

/// The result of typing after text that is not known, while deny rules are in force.
pub(crate) const TYPED_AFTER_UNKNOWN: &str = "Nothing was typed. Deny rules are in force, and the line that this would go on with is not known: keys edited it, or another call types into the same shell. Type {ctrl-c} alone to drop that line, wait for the result, then type one whole line that ends in {enter}.";

/// What the model reads when a hook keeps a call of an MCP tool from being made.
pub fn denied_by_mcp_hook(why: &str) -> String {
    format!("A hook did not let this call be made: {why}")
}

/// The result of a call whose tool was removed between the verdict and the run.
pub fn tool_is_gone(name: &str) -> String {
    format!("The tool '{name}' is no longer available: who provided it has left. Go on without it.")
}

/// The result of a question whose answer is one of the choices.
pub(crate) fn user_selected(answer: &str) -> String {
    format!("User selected: {answer}")
}

/// The result of a question whose answer is in a person's own words.
pub(crate) fn user_responded(answer: &str) -> String {
    format!("User responded: {answer}")
}

/// Tells the model how much of the session's limits is left.
pub(crate) fn limits_left(credits: f64) -> String {
    format!(
        "<session_limits_status>\nRemaining session limits: {} AI credits. Later session_limits_status messages \
         supersede earlier ones. Be frugal; avoid optional exploration and unnecessary tool calls.\n\
         </session_limits_status>",
        short_number(credits)
    )
}

/// Formats a number with at most two decimals and without trailing zeros.
pub(crate) fn short_number(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub fn image_at(path: &str) -> String {
    format!("Image file at path {path}")
}

//! What the autopilot tells the model and people.

/// The message that tells the model to go on.
pub(crate) const GO_ON: &str = "The task is not marked as complete, and nobody is there to answer. Go on with the work now.\n\
     - If you were planning, carry the plan out. If something is open, decide it yourself. If something failed, find another way.\n\
     - When everything that was asked for is done and checked, call task_complete with a summary. Do not call it while steps remain.\n\
     - If you cannot go on without something that only the user can give, call task_complete and say in `blocked` what you need.";

/// The result of a call of `task_complete` where the session does not offer it.
pub const NO_TASK_TO_COMPLETE: &str = "There is no task to mark as complete: the session is not in autopilot mode, or keeps this tool from you. Tell the user in your reply what you have done.";

/// The result of a call of `task_complete` by a sub-agent.
pub(crate) const COMPLETED_BY_SUBAGENT: &str = "Only the main agent marks the task as complete. Put what you have done into your last message, which the agent that started you reads.";

/// The result of a call of `task_complete` while the todos of a fleet are not done.
pub(crate) const FLEET_AT_WORK: &str = "The task is not marked as complete: a fleet carries out its todos, and has not ended. End your turn now. You are told when the fleet has ended; call task_complete after that.";

/// Why a call of `task_complete` does not count if another call of the same message failed. The model
/// and clients read it.
pub(crate) const OTHER_CALL_FAILED: &str = "The task is not marked as complete: another tool call of the same message failed. Look at its result, mend what is wrong, and then call task_complete again.";

/// What people are told if the model cannot have the tool.
pub(crate) const AUTOPILOT_WITHOUT_TOOL: &str = "The autopilot does not go on by itself: the options of this session keep the tool task_complete from the model. \
     Take it out of `excludedTools`, or replace the client's tool of that name.";

/// What people are told when a limit of the session has ended the work.
pub(crate) const STOPPED_BY_LIMIT: &str = "The agent stopped because a limit of the session is reached. When more is granted, it goes on with the same task.";

/// What people are told when the model was told to go on as often as it may be.
pub(crate) fn continued_too_often(times: u64) -> String {
    format!(
        "The agent was told to go on {times} times and has not marked the task as complete. \
         Send a message to go on; `maxContinues` sets the limit."
    )
}

/// What people are told when the model cannot call `task_complete` as it has to.
pub(crate) fn completed_in_vain(times: u64) -> String {
    format!(
        "The agent called task_complete {times} times in a row, and each call failed. \
         Look at what it has done, and send a message to go on."
    )
}

/// What people are told when the model only talks.
pub(crate) fn continued_in_vain(times: u64) -> String {
    format!(
        "The agent was told to go on {times} times in a row and called no tool. \
         Look at what it says, and send a message to go on."
    )
}

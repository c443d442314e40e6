//! The end of a research: one that ends by itself without its report has failed.

use loopd_proto::event::Durable;
use loopd_proto::event::fact::{LoopEnded, LoopOutcome};
use loopd_proto::event::session::Failure;
use loopd_proto::session::Mode;

use super::settings;
use crate::command::{CallOutcome, Decision, Step};
use crate::research;
use crate::state::State;
use crate::texts::research as texts;

/// The type of the error of a research without a report.
const FAILED: &str = "research";

/// Returns how a run ends. In autopilot mode the model is told to go on instead, and cannot mark the
/// task as complete before the report is written.
pub(super) fn end(state: &State, decision: &mut Decision, ended: LoopEnded) -> LoopEnded {
    let by_itself = ended.outcome == LoopOutcome::Done
        && settings::mode_after(state, decision) != Mode::Autopilot;
    let missing = state
        .missing_report()
        .filter(|_| by_itself && !writes(state, decision));
    let Some(report) = missing else {
        return ended;
    };
    decision.store(Durable::SessionError(Failure {
        error_type: FAILED.to_owned(),
        originating_message_id: state.origin(),
        error_code: Some("research_without_report".to_owned()),
        message: texts::no_report(report),
        stack: None,
        status_code: None,
        provider_call_id: None,
        url: None,
        eligible_for_auto_switch: None,
    }));
    LoopEnded::with(LoopOutcome::Failed)
}

/// Whether a step that is decided already says that the report was written.
fn writes(state: &State, decision: &Decision) -> bool {
    decision.steps.iter().any(|step| {
        let Step::Store(Durable::ToolComplete(complete)) = step else {
            return false;
        };
        let call = state
            .turn()
            .and_then(|turn| turn.call(&complete.tool_call_id));
        complete.success && call.is_some_and(|call| research::writes(&call.call))
    })
}

/// Returns why the task of a research cannot be marked as complete.
pub(super) fn not_complete(state: &State) -> Option<CallOutcome> {
    let report = state.missing_report()?;
    Some(CallOutcome::failure("failure", texts::not_complete(report)))
}

//! `report_intent`: the model says what it is about to do. It is offered while a research goes on.

use loopd_kernel::policy::grant::Grant;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{AssessContext, Need, Outcome, Tool, ToolContext};

pub const REPORT_INTENT: &str = "report_intent";

/// The tool `report_intent`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportIntent;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct ReportIntentArgs {
    /// What you are about to do, in at most four words, such as "Comparing sources".
    #[expect(dead_code, reason = "clients show it with the call")]
    intent: String,
}

impl Tool for ReportIntent {
    type Args = ReportIntentArgs;
    const NAME: &'static str = REPORT_INTENT;
    const DESCRIPTION: &'static str = "Tells the user in a few words what you are about to do. Call it together with other tools, when what you are at changes.";

    async fn need(&self, _args: &ReportIntentArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _: &Grant, _: ReportIntentArgs, _: &ToolContext) -> Outcome {
        Outcome::success("Intent logged")
    }
}

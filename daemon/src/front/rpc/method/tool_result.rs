//! `session.tools.handlePendingToolCall`: the result of a client's tool.

use loopd_proto::event::tool::ToolResult;
use loopd_proto::params::session::Success;
use loopd_proto::params::tool::{ClientToolResult, FullResult, HandleParams};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::picture;
use crate::tool::large_output;
use loopd_kernel::command::{Answer, CallOutcome, CallStatusReport, Command};

pub(super) async fn handle(context: Context, params: HandleParams) -> Result<Success, RpcError> {
    let session = context
        .asker(&params.session_id, &params.request_id)
        .await?;
    let request = params.request_id;
    let wanted = request.clone();
    let call = session
        .state(move |state| {
            let call = state.calls().find(|call| call.waits_for(&wanted))?;
            Some((call.call.name.clone(), call.call.arguments.clone()))
        })
        .await?;
    let Some((tool, arguments)) = call else {
        return Ok(Success { success: false });
    };
    let mut outcome = match (params.result, params.error) {
        (_, Some(error)) => thrown(&tool, &arguments, &error),
        (Some(result), None) => returned(result),
        (None, None) => returned(ClientToolResult::Text(String::new())),
    };
    picture::fit_results(&mut outcome.result).await;
    // A long result goes to a file, which must not hold secrets either.
    let redaction = session.view(|view| (view.redaction)()).await?;
    redaction.clean_in_place(&mut outcome.result.content);
    let scratch = context.app.services.scratch_folder(session.id());
    outcome.result.content = large_output::bound(
        outcome.result.content,
        &scratch,
        large_output::OutputLimits::default(),
    )
    .await;
    let done = session
        .command(Command::AnswerTool { request, outcome })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}

/// Builds the outcome of a tool that failed in the client. Users read the client's error text; the
/// model does not, because the text may hold what the model must not know.
fn thrown(tool: &str, arguments: &serde_json::Value, error: &str) -> CallOutcome {
    let mut outcome = CallOutcome::failure(
        "failure",
        format!(
            "Failed to execute `{tool}` tool with arguments: {arguments} due to error: Error: Tool execution failed"
        ),
    );
    tracing::debug!(tool, error, "a client's tool failed");
    outcome.result.detailed_content = Some("Tool execution failed".to_owned());
    outcome
}

fn returned(result: ClientToolResult) -> CallOutcome {
    match result {
        ClientToolResult::Text(text) => success(text),
        ClientToolResult::Other(value) => success(value.to_string()),
        ClientToolResult::Full(full) => typed(*full),
    }
}

fn success(text: String) -> CallOutcome {
    CallOutcome {
        status: CallStatusReport::Success,
        result: ToolResult {
            detailed_content: Some(text.clone()),
            content: text,
            ..ToolResult::default()
        },
        telemetry: None,
        delivered: Vec::new(),
        skill: None,
        stops: None,
    }
}

fn typed(full: FullResult) -> CallOutcome {
    match full.result_type.as_deref().unwrap_or("success") {
        "success" => {
            let mut outcome = success(full.text_result_for_llm);
            if full.session_log.is_some() {
                outcome.result.detailed_content = full.session_log;
            }
            outcome.result.binary_results_for_llm = full.binary_results_for_llm;
            outcome.telemetry = full.tool_telemetry;
            outcome
        }
        code => {
            let mut outcome = CallOutcome::failure(code, full.text_result_for_llm);
            outcome.result.detailed_content = full.error;
            outcome.telemetry = full.tool_telemetry;
            outcome
        }
    }
}

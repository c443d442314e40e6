//! Questions to the users of a session, and their answers.

use loopd_proto::event::ask::{ElicitationAction, ElicitationRequested};
use loopd_proto::id::RequestId;
use loopd_proto::params::session::Success;
use loopd_proto::params::ui::{
    ElicitationParams, ElicitationResult, HandleElicitationParams, HandleUserInputParams,
};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::{Answer, Command};

pub(super) async fn elicit(
    context: Context,
    params: ElicitationParams,
) -> Result<ElicitationResult, RpcError> {
    let session = context.session(&params.session_id)?;
    if !params.requested_schema.is_object() {
        return Err(RpcError::InvalidParams(
            "requestedSchema: a JSON schema of an object is expected".to_owned(),
        ));
    }
    if !session.view(|view| view.elicitation).await? {
        return Err(RpcError::Failed(
            "no client of this session can show a form; attach one with requestElicitation"
                .to_owned(),
        ));
    }
    let request: RequestId = context.app.services.clock.id().into();
    let mut asker = FormAsker {
        session: session.clone(),
        request: Some(request.clone()),
    };
    let form = ElicitationRequested {
        request_id: request,
        message: params.message,
        mode: None,
        requested_schema: Some(params.requested_schema),
        tool_call_id: None,
        elicitation_source: None,
        url: None,
    };
    let answer = session.elicit(form).await?;
    asker.request = None;
    Ok(ElicitationResult {
        action: answer.action,
        content: answer.content,
    })
}

/// Closes a form when its asker stops waiting: the request was cancelled, or its connection is gone.
struct FormAsker {
    session: SessionHandle,
    /// `None` once the form is answered.
    request: Option<RequestId>,
}

impl Drop for FormAsker {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // The call posts the command; nobody waits for the outcome.
            drop(self.session.command(Command::AnswerElicitation {
                request,
                action: ElicitationAction::Cancel,
                content: None,
            }));
        }
    }
}

pub(super) async fn handle_elicitation(
    context: Context,
    params: HandleElicitationParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session
        .command(Command::AnswerElicitation {
            request: params.request_id,
            action: params.result.action,
            content: params.result.content,
        })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn handle_user_input(
    context: Context,
    params: HandleUserInputParams,
) -> Result<Success, RpcError> {
    let session = context
        .asker(&params.session_id, &params.request_id)
        .await?;
    let done = session
        .command(Command::AnswerUserInput {
            request: params.request_id,
            answer: params.response.answer,
            freeform: params.response.was_freeform,
        })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}

//! `session.resume`.

use loopd_proto::event::session::WorkContext;
use loopd_proto::session::{SessionOpened, SessionResumeParams};

use super::session_create::{opened, working_directory};
use crate::agent::route::registry;
use crate::kernel::command::{Command, Resume};
use crate::provider::secret::Secret;
use crate::rpc::context::Context;
use crate::rpc::error::RpcError;
use crate::session::attach::{Attachment, PendingWork};
use crate::session::registry::Opened;

pub(super) async fn resume(
    context: Context,
    params: SessionResumeParams,
) -> Result<SessionOpened, RpcError> {
    let app = &context.app;
    registry::check(
        &params.options,
        params.options.providers.as_deref().unwrap_or_default(),
        params.options.models.as_deref().unwrap_or_default(),
    )
    .map_err(RpcError::InvalidParams)?;
    let id = params.session_id;
    let (session, found) = app.sessions.open(id.clone());
    let peer = context.connection.peer.id();
    let (from, attached, elicitation) = session
        .view(move |view| {
            let others = view.attached_besides(peer);
            (view.state.seq, others, view.elicitation)
        })
        .await
        .map_err(|_| crate::session::SessionError::NotFound(id.clone()))?;
    let was_active = found == Opened::Live && attached;
    let wanted = params.options.working_directory.as_deref();
    let cwd = wanted.map(|wanted| {
        working_directory(&context, Some(wanted))
            .to_string_lossy()
            .into_owned()
    });
    session
        .command(Command::Resume(Resume {
            options: params.options.clone(),
            working_directory: cwd,
            context: WorkContext::default(),
            was_active,
            already_in_use: false,
            continue_pending_work: params.continue_pending_work,
            announce: !params.disable_resume,
        }))
        .await?;
    context.connection.attach(id.clone());
    let pending = if params.continue_pending_work && !params.offer.observer {
        PendingWork::Continues
    } else {
        PendingWork::Waits
    };
    let elicitation = elicitation || params.offer.request_elicitation;
    let attachment = Attachment {
        connection: context.connection.clone(),
        offer: params.offer,
        options: params.options,
        api_token: params.git_hub_token.map(Secret::new),
        from,
        pending,
    };
    context.after_reply(move || {
        if let Err(error) = session.attach(attachment) {
            tracing::warn!(%error, "a session was gone before the one who resumed it could hear it");
        }
    });
    Ok(opened(app, id, elicitation))
}

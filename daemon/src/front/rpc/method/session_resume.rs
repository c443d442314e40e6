//! `session.resume`.

use std::path::PathBuf;

use loopd_proto::event::session::WorkContext;
use loopd_proto::session::{SessionOpened, SessionResumeParams};

use super::agent;
use super::host::check_session_files;
use super::policy;
use super::session_create::{opened, working_directory};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::attach::{Attachment, PendingWork};
use crate::session::registry::Opened;
use crate::tool::source::check_client_tools;
use crate::turn::route::registry;
use loopd_kernel::command::{Command, Resume};
use loopd_model::secret::Secret;

pub(super) async fn resume(
    context: Context,
    params: SessionResumeParams,
) -> Result<SessionOpened, RpcError> {
    let app = &context.app;
    check_session_files(&context.connection.launch())?;
    registry::check(
        &params.options,
        params.options.providers.as_deref().unwrap_or_default(),
        params.options.models.as_deref().unwrap_or_default(),
    )
    .map_err(RpcError::InvalidParams)?;
    let offered = params.offer.tools.as_deref().unwrap_or_default();
    check_client_tools(offered, &app.services.catalog).map_err(RpcError::InvalidParams)?;
    let id = params.session_id;
    let (session, found) = app.sessions.open(id.clone());
    let peer = context.connection.peer.id();
    // Who only joins again, after a broken connection, chooses nothing anew.
    let chooses = params.options.agent.is_some() && !params.disable_resume;
    let (from, attached, elicitation, (options, known_cwd)) = session
        .view(move |view| {
            let state = view.state;
            let options = chooses.then(|| state.options.clone());
            let others = view.attached_besides(peer);
            let cwd = PathBuf::from(&state.cwd);
            (state.seq, others, view.elicitation, (options, cwd))
        })
        .await
        .map_err(|_| crate::session::SessionError::NotFound(id.clone()))?;
    let was_active = found == Opened::Live && attached;
    let wanted = params.options.working_directory.as_deref();
    let cwd = wanted.map(|wanted| working_directory(&context, Some(wanted)));
    let works_in = cwd.as_ref().unwrap_or(&known_cwd);
    let managed = policy::managed(&context, &params.policy, works_in)?;
    let agent = match options {
        Some(options) => {
            let options = options.updated_by(params.options.clone());
            agent::wanted(&context, &options, works_in).await?
        }
        None => None,
    };
    session
        .command(Command::Resume(Resume {
            options: params.options.clone(),
            working_directory: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
            context: WorkContext::default(),
            agent,
            managed,
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

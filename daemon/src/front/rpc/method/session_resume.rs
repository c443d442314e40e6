//! `session.resume`.

use std::path::PathBuf;

use loopd_proto::event::session::WorkContext;
use loopd_proto::session::{SessionOpened, SessionOptions, SessionResumeParams};

use super::agent;
use super::daemon;
use super::hook_folders;
use super::host::check_session_files;
use super::policy;
use super::session_create::{opened, working_directory};
use super::session_options;
use super::trust_folder;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::session::clients::attach::{Attachment, PendingWork};
use crate::session::join::Joined;
use crate::tool::source::check_client_tools;
use crate::turn::route::registry;
use loopd_kernel::command::{AgentPick, AgentSources, Resume};
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
    session_options::check(&params.options)?;
    session_options::check_configuration(&params.options, &params.without_effect)?;
    let offered = params.offer.tools.as_deref().unwrap_or_default();
    session_options::check_tools(offered)?;
    check_client_tools(offered, &app.services.catalog).map_err(RpcError::InvalidParams)?;
    let mut params = params;
    if params.returns {
        forget_choices(&mut params.options);
    }
    let id = params.session_id.clone();
    let mut session = app.sessions.open(id.clone());
    let mut attempts = 1..agent::ATTEMPTS;
    let mut opened_again = false;
    let Joined {
        from,
        elicitation,
        options,
        kept,
    } = loop {
        let joined = async {
            let resume = wanted(&context, &session, &params).await?;
            Ok::<_, RpcError>(session.join(context.connection.id(), resume).await)
        };
        match joined.await {
            Ok(Err(error)) if agent::are_others(&error) && attempts.next().is_some() => {}
            // It ended by itself before it was joined.
            Ok(Err(_)) | Err(_) if session.is_closed() && !opened_again => {
                opened_again = true;
                session = app.sessions.open(id.clone());
            }
            joined => break joined??,
        }
    };
    if !params.returns {
        daemon::warn_of_config(&session, daemon::config_problem(&context).await).await;
        session_options::warn_of_context_tier(&session, &options).await;
        session_options::warn_of_members(&session, &params.without_effect).await;
        let offered = params.offer.tools.as_deref().unwrap_or_default();
        session_options::warn_of_tools(&context, &session, &options, offered).await?;
    }
    context.connection.attach(id.clone());
    if let Some(name) = &params.options.client_name {
        context.connection.set_name(name);
    }
    let pending = if params.continue_pending_work && !params.offer.observer {
        PendingWork::Continues
    } else {
        PendingWork::Waits
    };
    let elicitation = elicitation || params.offer.request_elicitation;
    let name = params.options.client_name.as_deref().unwrap_or_default();
    let attachment = Attachment {
        client: context.connection.client.clone(),
        launch: context.connection.launch(),
        name: name.trim().to_owned(),
        returns: params.returns,
        offer: params.offer,
        options,
        kept,
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

/// Drops the choices of a client that only attaches again after its connection broke.
fn forget_choices(options: &mut SessionOptions) {
    // What is in the folders of hooks now is not what the client looked at.
    options.hook_directories = None;
    options.agent = None;
    options.model = None;
    options.reasoning_effort = None;
    options.model_capabilities = None;
}

/// Returns what a resume asks of the session. The agent that it names is looked up among the agents
/// that exist now.
async fn wanted(
    context: &Context,
    session: &SessionHandle,
    params: &SessionResumeParams,
) -> Result<Resume, RpcError> {
    let chooses = params.options.agent.is_some();
    let seen = session.view(move |view| {
        let state = view.state;
        let chosen_from = chooses.then(|| (state.options.clone(), AgentSources::of(state)));
        (PathBuf::from(&state.cwd), chosen_from)
    });
    let (known_cwd, chosen_from) = seen.await?;
    let named = params.options.working_directory.as_deref();
    let cwd = named.map(|named| working_directory(context, Some(named)));
    if let Some(cwd) = &cwd {
        session_options::check_directory(named, cwd)?;
    }
    let works_in = cwd.as_ref().unwrap_or(&known_cwd);
    trust_folder::trust(context, params.trust_working_directory, works_in).await?;
    let managed = policy::managed(context, &params.policy, works_in)?;
    let mut options = params.options.clone();
    session_options::resolve_folders(&mut options, works_in);
    let named = params.options.hook_directories.as_deref();
    let vouched_hooks = hook_folders::vouched(context, named, works_in).await?;
    let agent = match chosen_from {
        Some((known, among)) => {
            let then = known.updated_by(options.clone());
            let choice =
                agent::wanted(context, &then, params.options.model.as_deref(), works_in).await?;
            choice.map(|choice| Box::new(AgentPick { choice, among }))
        }
        None => None,
    };
    options.hook_directories = hook_folders::names(vouched_hooks.as_deref());
    Ok(Resume {
        options,
        working_directory: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        context: WorkContext::default(),
        agent,
        managed,
        vouched_hooks,
        was_active: false,
        already_in_use: false,
        continue_pending_work: params.continue_pending_work,
        announce: !params.disable_resume,
    })
}

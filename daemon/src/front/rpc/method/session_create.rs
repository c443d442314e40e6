//! `session.create`.

use std::path::PathBuf;

use loopd_proto::event::session::WorkContext;
use loopd_proto::id::{Seq, SessionId};
use loopd_proto::permission::Permissions;
use loopd_proto::session::{
    Capabilities, SessionCreateParams, SessionOpened, SessionOptions, UiCapabilities,
};

use super::agent;
use super::daemon;
use super::hook_folders;
use super::host::check_session_files;
use super::policy;
use super::session_options;
use super::settings;
use super::trust_folder;
use crate::approvals;
use crate::client::{Lifecycle, LifecycleMetadata};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::server::Server;
use crate::session::clients::attach::{Attachment, PendingWork};
use crate::tool::source::check_client_tools;
use crate::turn::route::registry;
use loopd_kernel::command::{Command, Create};
use loopd_model::secret::Secret;

pub(super) async fn create(
    context: Context,
    mut params: SessionCreateParams,
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
    let name = params.name.as_deref().map(settings::checked_name);
    let name = name.transpose()?;
    let offered = params.offer.tools.as_deref().unwrap_or_default();
    session_options::check_tools(offered)?;
    check_client_tools(offered, &app.services.catalog).map_err(RpcError::InvalidParams)?;
    let id = match params.session_id {
        Some(id) => checked(id)?,
        None => app.services.clock.id().into(),
    };
    let named = params.options.working_directory.as_deref();
    let cwd = working_directory(&context, named);
    session_options::check_directory(named, &cwd)?;
    session_options::resolve_folders(&mut params.options, &cwd);
    let managed = policy::managed(&context, &params.policy, &cwd)?;
    let named = params.options.hook_directories.as_deref();
    let vouched = hook_folders::vouched(&context, named, &cwd).await?;
    params.options.hook_directories = hook_folders::names(vouched.as_deref());
    trust_folder::trust(&context, params.trust_working_directory, &cwd).await?;
    let agent = agent::wanted(
        &context,
        &params.options,
        params.options.model.as_deref(),
        &cwd,
    )
    .await?;
    let approved = approvals::standing(app.services.store.as_ref(), &cwd).await?;
    let Some(session) = app.sessions.start_new(id.clone()) else {
        return Err(exists(&id));
    };
    let tracks = params.options.enable_file_change_tracking;
    let tracks = tracks.unwrap_or(app.services.config.rewind.track_files);
    let created = session.command(Command::Create(Box::new(Create {
        options: SessionOptions {
            enable_file_change_tracking: Some(tracks),
            ..params.options.clone()
        },
        context: WorkContext {
            cwd: cwd.to_string_lossy().into_owned(),
            ..WorkContext::default()
        },
        permissions: Permissions {
            approved,
            directories: params
                .options
                .additional_directories
                .clone()
                .unwrap_or_default(),
            managed,
            ..Permissions::default()
        },
        agent,
        version: app.services.version.to_owned(),
        subagent: None,
        name,
        vouched_hooks: vouched.unwrap_or_default(),
    })));
    // The file is looked at beside the commit, so that nobody waits for both.
    let (created, config_problem) = tokio::join!(created, daemon::config_problem(&context));
    if let Err(error) = created {
        session.stop().await;
        return Err(match error {
            crate::session::SessionError::Store(error)
                if matches!(*error, loopd_store::StoreError::Conflict { .. }) =>
            {
                exists(&id)
            }
            error => error.into(),
        });
    }
    daemon::warn_of_config(&session, config_problem).await;
    session_options::warn_of_context_tier(&session, &params.options).await;
    session_options::warn_of_members(&session, &params.without_effect).await;
    let offered = params.offer.tools.as_deref().unwrap_or_default();
    session_options::warn_of_tools(&context, &session, &params.options, offered).await?;
    context.connection.attach(id.clone());
    if let Some(name) = &params.options.client_name {
        context.connection.set_name(name);
    }
    let now = app.services.clock.now();
    context.connection.launch().announce(&Lifecycle {
        kind: "session.created",
        session_id: &id,
        metadata: Some(LifecycleMetadata {
            start_time: now,
            modified_time: now,
            summary: None,
        }),
    });
    let elicitation = params.offer.request_elicitation;
    let name = params.options.client_name.as_deref().unwrap_or_default();
    let attachment = Attachment {
        client: context.connection.client.clone(),
        launch: context.connection.launch(),
        name: name.trim().to_owned(),
        returns: false,
        offer: params.offer,
        options: params.options,
        kept: Vec::new(),
        api_token: params.git_hub_token.map(Secret::new),
        from: Seq::START,
        pending: PendingWork::Waits,
    };
    context.after_reply(move || {
        if let Err(error) = session.attach(attachment) {
            tracing::warn!(%error, "a session was gone before its creator could hear it");
        }
    });
    Ok(opened(app, id, elicitation))
}

/// Checks an id that a client chose. It becomes the name of a folder, so it has to be plain.
fn checked(id: SessionId) -> Result<SessionId, RpcError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = id.as_str();
    if text.is_empty() || text.len() > 128 || !text.chars().all(plain) || text.starts_with('.') {
        return Err(RpcError::InvalidParams(
            "sessionId: use 1 to 128 letters, digits, `-`, `_` or `.`, not beginning with a dot"
                .to_owned(),
        ));
    }
    Ok(id)
}

fn exists(id: &SessionId) -> RpcError {
    RpcError::Failed(format!(
        "a session with the id {id} already exists; resume it, or choose another id"
    ))
}

/// Returns the working directory of a session: the wanted one, resolved against the launch's.
pub(super) fn working_directory(context: &Context, wanted: Option<&str>) -> PathBuf {
    match wanted {
        Some(wanted) => context.connection.launch().cwd.join(wanted),
        None => context.connection.launch().cwd.clone(),
    }
}

pub(super) fn opened(app: &Server, id: SessionId, elicitation: bool) -> SessionOpened {
    SessionOpened {
        workspace_path: Some(
            app.services
                .session_folder(&id)
                .to_string_lossy()
                .into_owned(),
        ),
        session_id: id,
        capabilities: Capabilities {
            ui: UiCapabilities {
                elicitation,
                mcp_apps: false,
            },
            extensions: false,
        },
    }
}

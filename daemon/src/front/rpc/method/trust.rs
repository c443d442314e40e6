//! Our own methods about what a folder would bring into its sessions, and whether the user trusts it.

use loopd_proto::params::trust::{
    TrustChanged, TrustItem, TrustItemKind, TrustSetParams, TrustShowParams, TrustShown,
};

use super::discover::{look, shown};
use super::discovery_problems::describe;
use crate::discovery::hooks::{GuardRecord, HookPlaces};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::trust::{
    self, ContentItem, ContentKind, ProjectContent, ProjectLookup, TrustedContent, project_root,
};

pub(super) async fn show(
    context: Context,
    params: TrustShowParams,
) -> Result<TrustShown, RpcError> {
    let found = content(&context, params.path.as_deref().unwrap_or(".")).await?;
    let trusted = TrustedContent::read(context.app.services.store.as_ref()).await?;
    let folder = found.folders.last().unwrap_or(&found.root);
    Ok(TrustShown {
        path: shown(folder),
        root: shown(&found.root),
        hash: found.hash().to_string(),
        trusted: trusted.covers_all(&found),
        items: found.items.iter().map(|it| item(it, &trusted)).collect(),
        missing: trusted.missing_from(&found).map(missing).collect(),
        problems: found.problems.iter().map(describe).collect(),
    })
}

pub(super) async fn set(
    context: Context,
    params: TrustSetParams,
) -> Result<TrustChanged, RpcError> {
    let found = content(&context, &params.path).await?;
    let now = found.hash();
    if now.as_str() != params.hash {
        return Err(RpcError::Failed(format!(
            "nothing was trusted: {} brings something else by now ({now}) than what was shown ({}); \
             look at it again with `loop trust`",
            found.root.display(),
            params.hash
        )));
    }
    trust::record(context.app.services.store.as_ref(), &found).await?;
    Ok(TrustChanged {
        path: shown(&found.root),
        items: found.items.len(),
    })
}

/// Reads what the project around a folder would bring.
pub(super) async fn content(context: &Context, path: &str) -> Result<ProjectContent, RpcError> {
    let launch = context.connection.launch();
    let folder = launch.cwd.join(path);
    let home = context.app.services.home.clone();
    let env = launch.env.clone();
    let plugins = launch.plugins();
    let read = look(move || {
        if !folder.is_dir() {
            return Err(folder);
        }
        let cwd = folder.canonicalize().unwrap_or(folder);
        let root = project_root(&cwd);
        let mut places = HookPlaces::of(&env, &home, &cwd, &root);
        places.plugins = plugins;
        Ok(ProjectContent::read(&ProjectLookup { places, root, cwd }))
    });
    read.await?.map_err(|folder| {
        RpcError::InvalidParams(format!("path: {} is no folder", folder.display()))
    })
}

fn missing(guard: &GuardRecord) -> TrustItem {
    TrustItem {
        kind: TrustItemKind::Hook,
        file: shown(&guard.file),
        line: Some(guard.line),
        name: guard.shown(),
        detail: guard.command.clone(),
        trusted: true,
        hash: guard.hash.to_string(),
    }
}

fn item(item: &ContentItem, trusted: &TrustedContent) -> TrustItem {
    TrustItem {
        kind: match item.kind {
            ContentKind::Hook => TrustItemKind::Hook,
            ContentKind::Agent => TrustItemKind::Agent,
            ContentKind::McpServer => TrustItemKind::McpServer,
            ContentKind::Permissions => TrustItemKind::Permissions,
            ContentKind::HookSwitch => TrustItemKind::HookSwitch,
            ContentKind::Command => TrustItemKind::Command,
            ContentKind::Skill => TrustItemKind::Skill,
        },
        file: shown(&item.file),
        line: item.line,
        name: item.name.clone(),
        detail: item.detail.clone(),
        trusted: trusted.covers(&item.folder, &item.hash),
        hash: item.hash.to_string(),
    }
}

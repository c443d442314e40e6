//! Our own methods about the worktrees that were made for agents.

use std::collections::HashSet;
use std::path::Path;

use loopd_proto::id::SessionId;
use loopd_proto::params::server::NoParams;
use loopd_proto::params::worktree::{
    Worktree, WorktreeContents, WorktreeList, WorktreeRemoveParams,
};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_exec::worktree::{Contents, Force, WorktreeEntry, WorktreeError};

pub(super) async fn list(context: Context, _: NoParams) -> Result<WorktreeList, RpcError> {
    let config = &context.app.services.config;
    let env = context.connection.launch().child_environment(config);
    let worktrees = &context.app.services.worktrees;
    let entries = worktrees.list(&live(&context), &env).await?;
    Ok(WorktreeList {
        worktrees: entries.into_iter().map(shown).collect(),
    })
}

pub(super) async fn remove(context: Context, params: WorktreeRemoveParams) -> Result<(), RpcError> {
    let config = &context.app.services.config;
    let env = context.connection.launch().child_environment(config);
    let force = if params.force { Force::Yes } else { Force::No };
    let worktrees = &context.app.services.worktrees;
    let live = live(&context);
    worktrees.remove(&params.id, force, &live, &env).await?;
    Ok(())
}

fn live(context: &Context) -> HashSet<SessionId> {
    context.app.sessions.ids().into_iter().collect()
}

fn shown(entry: WorktreeEntry) -> Worktree {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Worktree {
        id: entry.id,
        path: text(&entry.path),
        repository: entry.repository.as_deref().map(text),
        commit: entry.commit,
        session_id: entry.session,
        created_at: entry.made,
        usage: entry.usage,
        contents: match entry.contents {
            Contents::Unchanged => WorktreeContents::Unchanged {},
            Contents::Changed(changes) => WorktreeContents::Changed {
                files: changes.files,
                more_files: changes.more_files,
                commits: changes.commits,
                branch: changes.branch,
            },
            Contents::Unclear(why) => WorktreeContents::Unclear { why },
        },
    }
}

impl From<WorktreeError> for RpcError {
    fn from(error: WorktreeError) -> Self {
        Self::Failed(error.to_string())
    }
}

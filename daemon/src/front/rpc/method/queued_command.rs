//! Slash commands of the daemon and of files that run from the queue of a session, in the name of an
//! attached client.

use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::fact::slash_name;
use loopd_proto::id::SessionId;
use loopd_proto::params::command::Invoked;

use super::commands;
use crate::client::ClientId;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::server::Server;
use crate::session::queued_command::DaemonCommands;
use loopd_kernel::command::CommandOutcome;

/// The commands of a daemon. Its sessions hold them, and the daemon holds its sessions.
pub struct QueuedCommands(Weak<Server>);

impl QueuedCommands {
    pub fn of(server: &Arc<Server>) -> Self {
        Self(Arc::downgrade(server))
    }
}

impl DaemonCommands for QueuedCommands {
    fn run(
        &self,
        client: ClientId,
        session: SessionId,
        line: String,
    ) -> BoxFuture<'static, Result<CommandOutcome, String>> {
        let server = self.0.upgrade();
        async move {
            let connection = server.as_ref().and_then(|it| it.connection_of(client));
            let (Some(server), Some(connection)) = (server, connection) else {
                return Err("the client in whose name it ran has left".to_owned());
            };
            let context = Context::new(server, connection);
            let ran = run(&context, &session, &line).await;
            ran.map_err(|error| error.to_string())
        }
        .boxed()
    }
}

async fn run(context: &Context, id: &SessionId, line: &str) -> Result<CommandOutcome, RpcError> {
    let session = context.session(id)?;
    let name = slash_name(line);
    let input = line.trim_start_matches('/').trim_start();
    let input = input.strip_prefix(name).unwrap_or_default().trim();
    let ran = commands::run(context, &session, name, input, None).await?;
    Ok(match ran {
        Invoked::Text { text, .. } => CommandOutcome {
            said: Some(text),
            message: None,
        },
        Invoked::Completed { message, .. } => CommandOutcome {
            said: message,
            message: None,
        },
        Invoked::AgentPrompt {
            prompt,
            display_prompt,
            notice,
            run_scope,
            ..
        } => CommandOutcome {
            said: notice,
            message: Some(Box::new(commands::message(
                context,
                prompt,
                display_prompt,
                run_scope,
            ))),
        },
    })
}

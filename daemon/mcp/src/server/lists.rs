//! What a connected server offers, asked for again when it says that it has changed.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::config::ServerConfig;
use crate::connection::{CallError, Connection};
use crate::prompts::ServerPrompt;
use crate::tools::ServerTool;

/// The shortest time between two lists that a server wants to be asked for.
const BETWEEN_LISTS: Duration = Duration::from_secs(1);

/// A list that has come.
pub(super) enum Listed {
    /// The tools that can be used, and what is wrong with others.
    Tools(Result<(Vec<ServerTool>, Vec<String>), CallError>),
    Prompts(Vec<ServerPrompt>),
}

/// The lists of one connection. One that does not come holds up no other.
pub(super) struct Lists<'a> {
    connection: &'a Arc<Connection>,
    config: &'a ServerConfig,
    /// When to ask again; `None` if nothing has changed.
    again_at: Option<Instant>,
    not_before: Instant,
    tools: Option<BoxFuture<'a, Listed>>,
    prompts: Option<BoxFuture<'a, Listed>>,
    /// Whether the prompts have changed while they were asked for.
    prompts_again: bool,
}

impl<'a> Lists<'a> {
    /// Begins with the prompts: the tools were listed before.
    pub(super) fn new(connection: &'a Arc<Connection>, config: &'a ServerConfig) -> Self {
        let mut lists = Self {
            connection,
            config,
            again_at: None,
            not_before: Instant::now(),
            tools: None,
            prompts: None,
            prompts_again: false,
        };
        lists.ask_for_prompts();
        lists
    }

    /// Notes that the lists have changed. A server that never stops saying so is asked now and then.
    pub(super) fn ask_again(&mut self) {
        self.again_at
            .get_or_insert(self.not_before.max(Instant::now()));
    }

    fn ask_for_prompts(&mut self) {
        let listed = self.connection.list_prompts(self.config);
        self.prompts = Some(listed.map(Listed::Prompts).boxed());
    }

    /// Waits for the next list. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Listed {
        loop {
            tokio::select! {
                listed = ready(&mut self.tools) => {
                    self.tools = None;
                    return listed;
                }
                listed = ready(&mut self.prompts) => {
                    self.prompts = None;
                    if std::mem::take(&mut self.prompts_again) {
                        self.ask_for_prompts();
                    }
                    return listed;
                }
                () = until(self.again_at), if self.tools.is_none() => {
                    self.again_at = None;
                    self.not_before = Instant::now() + BETWEEN_LISTS;
                    let listed = self.connection.list_tools(self.config);
                    self.tools = Some(listed.map(Listed::Tools).boxed());
                    if self.prompts.is_some() {
                        self.prompts_again = true;
                    } else {
                        self.ask_for_prompts();
                    }
                }
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Waits for a future that is there.
async fn ready(future: &mut Option<BoxFuture<'_, Listed>>) -> Listed {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

//! Slash commands: lists them, and runs one here or in the client that offers it.
//!
//! A client's command replaces a built-in command of the same name.

use loopd_proto::params::command::{
    CommandInfo, CommandKind, Commands, ExecuteParams, Executed, HandlePendingParams, InvokeParams,
    Invoked, ListParams, Reported,
};
use loopd_proto::session::ClientCommand;

use super::builtin::{self, Builtin};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::{Answer, Command, Send, SendPlace};

pub(super) async fn list(context: Context, params: ListParams) -> Result<Commands, RpcError> {
    let session = context.session(&params.session_id)?;
    let brought = brought(&session).await?;
    let mut commands: Vec<CommandInfo> = Vec::new();
    if params.include_builtins {
        let ours = builtin::ALL
            .iter()
            .filter(|ours| find(&brought, ours.name).is_none());
        commands.extend(ours.map(Builtin::describe));
    }
    if params.include_client_commands {
        commands.extend(brought.into_iter().map(describe));
    }
    Ok(Commands { commands })
}

fn describe(command: ClientCommand) -> CommandInfo {
    CommandInfo {
        name: command.name,
        description: command.description,
        kind: CommandKind::Client,
        input: None,
        allow_during_agent_execution: true,
    }
}

/// Returns the commands that the clients of a session offer.
pub(super) async fn brought(session: &SessionHandle) -> Result<Vec<ClientCommand>, RpcError> {
    Ok(session.view(|view| (view.commands)()).await?)
}

fn find<'a>(brought: &'a [ClientCommand], name: &str) -> Option<&'a ClientCommand> {
    let mut commands = brought.iter();
    commands.find(|command| command.name.eq_ignore_ascii_case(name))
}

/// Returns a command's name without its slash.
fn named<'a>(member: &str, given: &'a str) -> Result<&'a str, RpcError> {
    let name = given.trim().trim_start_matches('/');
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(RpcError::InvalidParams(format!(
            "{member}: one word is expected, the name of a command"
        )));
    }
    Ok(name)
}

pub(super) async fn invoke(context: Context, params: InvokeParams) -> Result<Invoked, RpcError> {
    let session = context.session(&params.session_id)?;
    let name = named("name", &params.name)?;
    run(&context, &session, name, params.input.trim()).await
}

async fn run(
    context: &Context,
    session: &SessionHandle,
    name: &str,
    input: &str,
) -> Result<Invoked, RpcError> {
    let brought = brought(session).await?;
    if let Some(command) = find(&brought, name) {
        let ran = session.run_client_command(command.name.clone(), input.to_owned());
        return match ran.await? {
            Ok(()) => Ok(Invoked::Completed { message: None }),
            Err(why) => Err(RpcError::Failed(why)),
        };
    }
    match builtin::find(name) {
        Some(builtin) => builtin.run(context, session, input).await,
        None => Err(RpcError::Failed(format!(
            "there is no command /{name}; /help lists those there are"
        ))),
    }
}

/// Runs a command to its end, and sends the model what the command wants it to get.
pub(super) async fn execute(context: Context, params: ExecuteParams) -> Result<Executed, RpcError> {
    let session = context.session(&params.session_id)?;
    let name = named("commandName", &params.command_name)?;
    let error = match run(&context, &session, name, params.args.trim()).await {
        Ok(Invoked::AgentPrompt {
            prompt,
            display_prompt,
            ..
        }) => {
            let send = Command::Send(Send {
                id: None,
                prompt,
                display_prompt: Some(display_prompt),
                attachments: Vec::new(),
                agent_mode: None,
                required_tool: None,
                request_headers: std::collections::BTreeMap::new(),
                source: None,
                place: SendPlace::Enqueue,
                sender: Some(context.caller()),
            });
            session.command(send).await?;
            None
        }
        Ok(Invoked::Text { .. } | Invoked::Completed { .. }) => None,
        Err(RpcError::Failed(why)) => Some(why),
        Err(error) => return Err(error),
    };
    Ok(Executed { error })
}

/// Takes a client's report that its command has run. If nobody waits for it any more, that is no
/// error of the client, which may have been slow; the reply says so all the same.
pub(super) async fn handle_pending(
    context: Context,
    params: HandlePendingParams,
) -> Result<Reported, RpcError> {
    let session = context.session(&params.session_id)?;
    let (request, error) = (params.request_id, params.error);
    let ran = session.client_command_ran(request.clone(), error.clone());
    let mut waited_for = ran.await?;
    if !waited_for {
        let handled = session.command(Command::CommandHandled {
            request,
            stop: false,
            error,
        });
        waited_for = handled.await?.answer == Answer::Accepted(true);
    }
    Ok(Reported {
        success: true,
        waited_for: (!waited_for).then_some(false),
    })
}

//! The todo list of a session. It is read from the state, so that no database is opened for it.

use loopd_proto::event::todo::TodoList;
use loopd_proto::id::SessionId;
use loopd_proto::params::session::Of;
use loopd_proto::params::todo::{TodoRows, TodoRowsWithDependencies, TodosListed};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

async fn list(context: &Context, session: &SessionId) -> Result<TodoList, RpcError> {
    let session = context.session(session)?;
    Ok(session.state(|state| state.todos.list.clone()).await?)
}

pub(super) async fn rows(context: Context, params: Of) -> Result<TodoRows, RpcError> {
    let list = list(&context, &params.session_id).await?;
    Ok(TodoRows::from(&list))
}

pub(super) async fn rows_with_dependencies(
    context: Context,
    params: Of,
) -> Result<TodoRowsWithDependencies, RpcError> {
    let list = list(&context, &params.session_id).await?;
    let TodoRows { rows } = TodoRows::from(&list);
    Ok(TodoRowsWithDependencies {
        rows,
        dependencies: list.dependencies,
    })
}

pub(super) async fn listed(context: Context, params: Of) -> Result<TodosListed, RpcError> {
    let list = list(&context, &params.session_id).await?;
    Ok(TodosListed {
        remaining: list.remaining(),
        list,
    })
}

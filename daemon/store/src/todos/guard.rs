//! What SQL of a model may do: read and change rows, and make tables, indexes and views of its own.
//! SQLite asks about every action when it prepares a statement. What is not named here is refused.

use rusqlite::hooks::{AuthAction, AuthContext};

use super::tables::{TODO_DEPS, TODOS};

/// The pragmas that only describe tables.
const PRAGMAS: [&str; 6] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "foreign_key_list",
];

/// The functions that reach outside the database. Most of them are not compiled in.
const FUNCTIONS: [&str; 8] = [
    "load_extension",
    "readfile",
    "writefile",
    "lsdir",
    "edit",
    "fts3_tokenizer",
    "fts5_insttoken",
    "sqlite_log",
];

/// Returns why an action is refused.
pub(super) fn judge(context: &AuthContext<'_>) -> Result<(), String> {
    match context.action {
        AuthAction::Select
        | AuthAction::Recursive
        | AuthAction::Read { .. }
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::DropView { .. }
        | AuthAction::Reindex { .. } => Ok(()),
        AuthAction::DropTable { table_name }
        | AuthAction::AlterTable { table_name, .. }
        | AuthAction::CreateIndex { table_name, .. }
        | AuthAction::DropIndex { table_name, .. } => own(table_name),
        AuthAction::Function { function_name } => {
            if FUNCTIONS
                .iter()
                .any(|it| it.eq_ignore_ascii_case(function_name))
            {
                return Err(format!("the function {function_name} is not allowed"));
            }
            Ok(())
        }
        AuthAction::Pragma { pragma_name, .. } => {
            if PRAGMAS
                .iter()
                .any(|it| it.eq_ignore_ascii_case(pragma_name))
            {
                return Ok(());
            }
            Err(format!(
                "PRAGMA {pragma_name} is not allowed; those that describe tables are: {}",
                PRAGMAS.join(", ")
            ))
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Err(
            "other databases cannot be used; this session has one database of its own".to_owned(),
        ),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => Err(
            "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not allowed: each call is one transaction"
                .to_owned(),
        ),
        AuthAction::CreateTrigger { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::DropTempTrigger { .. } => Err("triggers are not allowed".to_owned()),
        AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempView { .. }
        | AuthAction::DropTempIndex { .. } => {
            Err("temporary tables are not allowed; make an ordinary one".to_owned())
        }
        AuthAction::CreateVtable { .. } | AuthAction::DropVtable { .. } => {
            Err("virtual tables are not allowed".to_owned())
        }
        AuthAction::Analyze { .. } => Err("ANALYZE is not allowed".to_owned()),
        _ => Err("this statement is not allowed".to_owned()),
    }
}

/// Refuses changes of the two tables that the session itself reads.
fn own(table: &str) -> Result<(), String> {
    let is = |name: &str| table.eq_ignore_ascii_case(name);
    if is(TODOS) || is(TODO_DEPS) {
        return Err(format!(
            "the table {table} belongs to the session: change its rows, not the table; make a table of your own for more"
        ));
    }
    Ok(())
}

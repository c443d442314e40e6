//! Looks for text in logs, the newest event of each session first, within a bound of time.

use std::time::Instant;

use loopd_proto::id::Seq;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::error::Failure;
use super::read;
use crate::{LogFindings, LogSearch, SessionRecord, StoredEvent};

#[expect(
    clippy::disallowed_methods,
    reason = "the time is looked at between the rows of a query"
)]
pub(super) fn run(connection: &mut Connection, search: &LogSearch) -> Result<LogFindings, Failure> {
    let until = Instant::now() + search.within;
    let is_late = || Instant::now() > until;
    let mut findings = LogFindings {
        found: Vec::new(),
        complete: true,
    };
    let records = read::list(connection)?;
    for record in records.into_iter().filter(|record| record.agent.is_none()) {
        if findings.found.len() == search.limit || is_late() {
            findings.complete = false;
            break;
        }
        match newest(connection, &record, search, &is_late)? {
            Looked::Found(event) => findings.found.push((record, event)),
            Looked::Nothing => {}
            Looked::Late => {
                findings.complete = false;
                break;
            }
        }
    }
    Ok(findings)
}

/// What was found in one log.
enum Looked {
    Found(StoredEvent),
    Nothing,
    Late,
}

fn newest(
    connection: &Connection,
    record: &SessionRecord,
    search: &LogSearch,
    is_late: &impl Fn() -> bool,
) -> Result<Looked, Failure> {
    let Some((first, last)) = read::positions(connection, &record.id)? else {
        return Ok(Looked::Nothing);
    };
    let kinds = vec!["?"; search.kinds.len()].join(", ");
    let mut statement = connection.prepare_cached(&format!(
        "SELECT position, json FROM event
         WHERE position > ? AND position <= ? AND kind IN ({kinds}) ORDER BY position DESC"
    ))?;
    let range = [first, last].map(Value::Integer).into_iter();
    let kinds = search
        .kinds
        .iter()
        .map(|kind| Value::Text((*kind).to_owned()));
    let mut rows = statement.query(params_from_iter(range.chain(kinds)))?;
    while let Some(row) = rows.next()? {
        if is_late() {
            return Ok(Looked::Late);
        }
        let json = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        if (search.fits)(json) {
            let seq = (row.get::<_, i64>(0)? - first).unsigned_abs();
            let before = Seq(seq.saturating_sub(1));
            let found = read::events(connection, &record.id, before, 1)?.pop();
            return Ok(found.map_or(Looked::Nothing, Looked::Found));
        }
    }
    Ok(Looked::Nothing)
}

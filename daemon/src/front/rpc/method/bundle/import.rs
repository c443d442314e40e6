//! Makes a session of a bundle: first everything is checked, then it is written where nobody sees it, and
//! one transaction makes it a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::event::import::Imported;
use loopd_proto::event::rewind::REWOUND;
use loopd_proto::event::{Durable, Head, Visibility, read_durable, write};
use loopd_proto::id::{EventId, Seq, SessionId};
use loopd_proto::params::bundle::ImportedSession;
use loopd_store::{Batch, SessionRecord, StoreError, StoredEvent};

use super::super::discover::{look, shown};
use super::super::session_create::checked;
use super::super::session_fork::leave_agents;
use super::super::workspace::{files::OwnFolder, own_folder};
use super::format::{BundleError, End, Header};
use super::read::{Piece, Reader};
use super::upload::Upload;
use super::{RpcError, files};
use crate::front::rpc::context::Context;
use crate::tool::capture::Captures;
use loopd_kernel::rewind::{Rewinds, counts};

/// What the record of a session says that is not one yet: no list shows it.
const UNFINISHED: &str = "import";
/// How many bytes of events go to the store at once.
const BATCH: usize = 4 * 1024 * 1024;

/// Where the session of a bundle goes.
#[derive(Clone)]
struct Target {
    /// Its new id, if it does not keep its own.
    id: Option<SessionId>,
    cwd: PathBuf,
    /// The folder with the folders of all sessions.
    folders: PathBuf,
}

impl Target {
    fn id(&self, header: &Header) -> SessionId {
        self.id.clone().unwrap_or_else(|| header.session_id.clone())
    }

    /// Opens a bundle. Blocks.
    fn open(&self, upload: &Upload) -> Result<Reader, BundleError> {
        let folder = |header: &Header| shown(&self.folders.join(self.id(header).as_str()));
        Reader::new(upload.open()?, folder)
    }
}

pub(super) async fn import(
    context: &Context,
    upload: Upload,
    new_id: bool,
    cwd: PathBuf,
) -> Result<ImportedSession, RpcError> {
    let services = &context.app.services;
    let target = Target {
        id: new_id.then(|| services.clock.id().into()),
        cwd,
        folders: services.sessions_folder(),
    };
    let upload = Arc::new(upload);
    let bundle = {
        let (target, upload) = (target.clone(), upload.clone());
        look(move || check(target.open(&upload)?)).await??
    };
    let id = checked(target.id(&bundle.header))?;
    refuse_known(context, &id).await?;
    clean_up(context).await?;
    let reader = {
        let (target, upload) = (target.clone(), upload.clone());
        look(move || target.open(&upload)).await??
    };
    if let Err(error) = make(context, reader, &bundle, &id, &target.cwd).await {
        give_up(context, &id).await;
        return Err(error);
    }
    if let Err(error) = look(move || upload.remove()).await? {
        tracing::warn!(%error, "an imported bundle could not be removed; it is removed later");
    }
    let session = context.app.sessions.open_fork(id.clone());
    leave_agents(&session).await?;
    session.stop().await;
    Ok(ImportedSession {
        session_id: id,
        events: bundle.size.events,
        files: bundle.size.files,
        working_directory: shown(&target.cwd),
        left_out: bundle.left_out,
    })
}

/// What a whole bundle has.
struct Checked {
    header: Header,
    size: End,
    /// The last event that clients see and that no rewind took back: what comes next follows it.
    tip: Option<EventId>,
    left_out: Vec<String>,
}

/// Reads all of a bundle.
fn check(mut reader: Reader) -> Result<Checked, BundleError> {
    let mut left_out = Vec::new();
    let mut visible = Vec::new();
    let mut rewinds = Rewinds::default();
    while let Some(piece) = reader.next()? {
        match piece {
            Piece::Event(event) => {
                if let (REWOUND, Ok((_, Durable::Rewound(rewound)))) =
                    (&*event.kind, read_durable(&event.json))
                {
                    rewinds.push(&rewound, event.seq, event.seq);
                }
                if event.visible == Visibility::Public {
                    visible.push((event.seq, event.id));
                }
            }
            Piece::File(..) => {}
            Piece::LeftOut(told) => left_out = told,
        }
    }
    let size = reader.seen();
    if size.events == 0 {
        return Err(BundleError::Refused("the bundle has no events".to_owned()));
    }
    let hidden = rewinds.hidden();
    let mut counted = visible.into_iter().filter(|(seq, _)| counts(&hidden, *seq));
    Ok(Checked {
        header: reader.header,
        size,
        tip: counted.next_back().map(|(_, id)| id),
        left_out,
    })
}

/// Refuses a session that is here: an import never overwrites one.
async fn refuse_known(context: &Context, id: &SessionId) -> Result<(), RpcError> {
    let stored = context.app.services.store.record(id).await?;
    if stored.is_some() || context.app.sessions.get(id).is_some() {
        return Err(exists(id));
    }
    Ok(())
}

fn exists(id: &SessionId) -> RpcError {
    RpcError::Failed(format!(
        "the session {id} is here already, and an import overwrites nothing; import it with a new id (newId), or \
         delete the one that is here first"
    ))
}

/// Removes what imports left that were cut off. There is only one import at a time.
async fn clean_up(context: &Context) -> Result<(), RpcError> {
    let store = &context.app.services.store;
    for record in store.list().await? {
        if record.agent.as_deref() == Some(UNFINISHED) && record.parent.is_none() {
            store.delete(&record.id).await?;
        }
    }
    Ok(())
}

/// Removes what an import that failed has written, as far as that works.
async fn give_up(context: &Context, id: &SessionId) {
    if let Err(error) = clean_up(context).await {
        tracing::warn!(%error, "events of an import that failed stay until the next one");
    }
    // If somebody else has made a session with this id meanwhile, the files are of that.
    if refuse_known(context, id).await.is_ok()
        && let Err(error) = context.app.services.remove_session_folder(id).await
    {
        tracing::warn!(%error, "the files of an import that failed are still there");
    }
}

/// Writes events and files, and makes them a session.
async fn make(
    context: &Context,
    mut reader: Reader,
    bundle: &Checked,
    id: &SessionId,
    cwd: &Path,
) -> Result<(), RpcError> {
    let services = &context.app.services;
    // A session without a record has no files: what is there is of one that could not be removed.
    let removed = services.remove_session_folder(id).await;
    removed.map_err(|error| RpcError::Failed(error.to_string()))?;
    let hidden = SessionRecord {
        agent: Some(UNFINISHED.to_owned()),
        ..record(context, &bundle.header, services.clock.id().into(), cwd)
    };
    let own = own_folder(context, id, "");
    let mut after = Seq::START;
    loop {
        let own = own.clone();
        let (back, events) = look(move || next_events(reader, &own)).await?;
        reader = back;
        let events = events?;
        let Some(last) = events.last().map(|event| event.seq) else {
            break;
        };
        append(context, &hidden, after, events).await?;
        after = last;
    }
    let imported = imported_event(context, bundle, after.next(), cwd)?;
    append(context, &hidden, after, vec![imported]).await?;
    let through = after.next();
    let folder = services.session_folder(id);
    look(move || Captures::begin_at(&folder, through.next()))
        .await?
        .map_err(|error| RpcError::Failed(format!("the import cannot be recorded: {error}")))?;
    let record = record(context, &bundle.header, id.clone(), cwd);
    let made = services.store.fork(record, &hidden.id, through).await;
    if let Err(StoreError::SessionExists { .. }) = &made {
        return Err(exists(id));
    }
    made?;
    services.store.delete(&hidden.id).await?;
    Ok(())
}

async fn append(
    context: &Context,
    record: &SessionRecord,
    after: Seq,
    events: Vec<StoredEvent>,
) -> Result<(), RpcError> {
    let batch = Batch {
        record: record.clone(),
        after,
        events,
    };
    Ok(context.app.services.store.append(batch).await?)
}

/// Reads the next events, and writes the files that come after them. Blocks.
fn next_events(
    mut reader: Reader,
    own: &OwnFolder,
) -> (Reader, Result<Vec<StoredEvent>, RpcError>) {
    let mut events = Vec::new();
    let mut bytes = 0;
    let done = loop {
        if bytes >= BATCH {
            break Ok(());
        }
        match reader.next() {
            Ok(Some(Piece::Event(event))) => {
                bytes += event.json.len();
                events.push(event);
            }
            Ok(Some(Piece::File(path, content))) => {
                if let Err(error) = files::write(own, &path, &content) {
                    break Err(error.into());
                }
            }
            Ok(Some(Piece::LeftOut(_))) => {}
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        }
    };
    (reader, done.map(|()| events))
}

fn record(context: &Context, header: &Header, id: SessionId, cwd: &Path) -> SessionRecord {
    SessionRecord {
        id,
        created_ms: header.created_at.0,
        modified_ms: context.app.services.clock.now().0,
        name: header.name.clone(),
        summary: header.summary.clone(),
        cwd: Some(shown(cwd)),
        parent: None,
        client_name: header.client_name.clone(),
        git_root: None,
        repository: None,
        branch: None,
        agent: None,
        event_count: 0,
    }
}

/// Makes the event that says that the log before it was written elsewhere. It is stored in one with that log,
/// so that nothing which was approved there counts here for a moment.
fn imported_event(
    context: &Context,
    bundle: &Checked,
    seq: Seq,
    cwd: &Path,
) -> Result<StoredEvent, RpcError> {
    let clock = &context.app.services.clock;
    let head = Head {
        id: clock.id().into(),
        timestamp: clock.now(),
        parent_id: bundle.tip.clone(),
        agent_id: None,
        ephemeral: None,
    };
    let header = &bundle.header;
    let event = Durable::Imported(Imported {
        from_session_id: header.session_id.clone(),
        from_directory: header.directory.clone(),
        exported_at: header.exported_at,
        exported_by: header.by.clone(),
        working_directory: shown(cwd),
    });
    let json = write(&head, &event).map_err(|error| RpcError::Failed(error.to_string()))?;
    Ok(StoredEvent {
        seq,
        id: head.id,
        kind: event.kind().into(),
        visible: event.visibility(),
        json: json.into(),
    })
}

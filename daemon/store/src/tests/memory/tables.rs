//! The maps, and how a write changes them.

use std::collections::BTreeMap;

use loopd_proto::id::{Seq, SessionId};
use serde_json::Value;

use super::Fault;
use crate::{Batch, LogFindings, LogSearch, SessionRecord, StoreError, StoredEvent, Visibility};

#[derive(Clone)]
pub(super) enum Write {
    Append(Batch),
    Delete(SessionId),
    Truncate(SessionRecord, Seq),
    Fork(SessionRecord, SessionId, Seq),
    Fact(String, String, Option<Value>),
}

impl Write {
    pub(super) fn is_large(&self) -> bool {
        matches!(self, Self::Append(batch) if batch.events.iter().any(|event| event.json.len() >= 1 << 20))
    }

    /// What a store keeps of it that stops in the middle.
    pub(super) fn half(&self) -> Self {
        let mut half = self.clone();
        if let Self::Append(batch) = &mut half {
            batch.events.truncate(1);
        }
        half
    }
}

type Session = (SessionRecord, Vec<StoredEvent>);

#[derive(Clone)]
pub(super) struct Tables {
    fault: Option<Fault>,
    sessions: BTreeMap<String, Session>,
    facts: BTreeMap<(String, String), Value>,
}

impl Tables {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        Self {
            fault,
            sessions: BTreeMap::new(),
            facts: BTreeMap::new(),
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn apply(&mut self, write: &Write) -> Result<u64, StoreError> {
        match write {
            Write::Append(batch) => self.append(batch),
            Write::Delete(id) => {
                let removed = self.sessions.remove(id.as_str());
                if self.has(Fault::DeletesTooMuch) {
                    let first = id.as_str().get(..1).unwrap();
                    self.sessions.retain(|other, _| !other.starts_with(first));
                }
                Ok(removed.map_or(0, |_| 1))
            }
            Write::Truncate(record, after) => {
                let keeps_record = self.has(Fault::TruncatesWithoutRecord);
                let (old, events) = (self.sessions.get_mut(record.id.as_str()))
                    .ok_or_else(|| no_session(&record.id))?;
                check_end(&record.id, *after, events.len(), |end| after.0 <= end)?;
                let keep = usize::try_from(after.0).unwrap();
                let removed = events.len() - keep;
                events.truncate(keep);
                if !keeps_record {
                    *old = record.clone();
                }
                old.event_count = after.0;
                Ok(removed as u64)
            }
            Write::Fork(record, from, through) => {
                let (_, source) =
                    (self.sessions.get(from.as_str())).ok_or_else(|| no_session(from))?;
                check_end(from, *through, source.len(), |end| through.0 <= end)?;
                let exists = self.sessions.contains_key(record.id.as_str());
                if exists && !self.has(Fault::ForksOverOther) {
                    let session = record.id.clone();
                    return Err(StoreError::SessionExists { session });
                }
                let mut events = source.clone();
                if !self.has(Fault::CopiesWholeLog) {
                    events.truncate(usize::try_from(through.0).unwrap());
                }
                let copied = events.len() as u64;
                self.put(record, events);
                Ok(copied)
            }
            Write::Fact(scope, key, value) => {
                let scope = if self.has(Fault::IgnoresScope) {
                    ""
                } else {
                    scope
                };
                let place = (scope.to_owned(), key.clone());
                match value {
                    Some(value) => self.facts.insert(place, value.clone()),
                    None => self.facts.remove(&place),
                };
                Ok(1)
            }
        }
    }

    fn append(&mut self, batch: &Batch) -> Result<u64, StoreError> {
        let id = &batch.record.id;
        let mut events = self.events(id);
        if !self.has(Fault::IgnoresPosition) {
            check_end(id, batch.after, events.len(), |end| batch.after.0 == end)?;
        }
        let mut expected = batch.after;
        for event in &batch.events {
            expected = expected.next();
            if event.seq != expected {
                // Thrown away with the trial, unless the fault keeps it.
                self.put(&batch.record, events);
                return Err(StoreError::Gap {
                    session: id.clone(),
                    expected,
                    found: event.seq,
                });
            }
            events.push(event.clone());
        }
        if self.has(Fault::ShowsEverything) {
            for event in &mut events {
                event.visible = Visibility::Public;
            }
        }
        self.put(&batch.record, events);
        Ok(batch.events.len() as u64)
    }

    fn put(&mut self, record: &SessionRecord, events: Vec<StoredEvent>) {
        let mut record = record.clone();
        if !(self.has(Fault::BelievesCount) && record.event_count > 0) {
            record.event_count = events.len() as u64;
        }
        self.sessions
            .insert(record.id.to_string(), (record, events));
    }

    fn events(&self, id: &SessionId) -> Vec<StoredEvent> {
        let session = self.sessions.get(id.as_str());
        session
            .map(|(_, events)| events.clone())
            .unwrap_or_default()
    }

    pub(super) fn load(&self, id: &SessionId) -> Option<Session> {
        let mut session = self.sessions.get(id.as_str()).cloned();
        if let (Some((_, events)), true) = (&mut session, self.has(Fault::LoadsWithoutLastEvent)) {
            events.pop();
        }
        session
    }

    pub(super) fn record(&self, id: &SessionId) -> Option<SessionRecord> {
        Some(self.sessions.get(id.as_str())?.0.clone())
    }

    pub(super) fn read(&self, id: &SessionId, after: Seq, limit: usize) -> Vec<StoredEvent> {
        let limit = if self.has(Fault::IgnoresLimit) {
            usize::MAX
        } else {
            limit
        };
        let later = |event: &StoredEvent| event.seq > after;
        let events = self.events(id).into_iter();
        events.filter(later).take(limit).collect()
    }

    pub(super) fn list(&self) -> Vec<SessionRecord> {
        let mut records: Vec<_> = self
            .sessions
            .values()
            .map(|(record, _)| record.clone())
            .collect();
        records.sort_by_key(|record| record.modified_ms);
        if !self.has(Fault::ListsOldestFirst) {
            records.reverse();
        }
        records
    }

    pub(super) fn find_by_prefix(&self, prefix: &str) -> Vec<SessionId> {
        let records = self.sessions.values().map(|(record, _)| record);
        records
            .filter(|record| record.id.as_str().starts_with(prefix))
            .filter(|record| record.agent.is_none() || self.has(Fault::FindsAgents))
            .map(|record| record.id.clone())
            .take(2)
            .collect()
    }

    pub(super) fn find_newest(&self, search: &LogSearch) -> LogFindings {
        let mut findings = LogFindings {
            found: Vec::new(),
            complete: true,
        };
        for record in self.list() {
            if record.agent.is_some() {
                continue;
            }
            if findings.found.len() == search.limit {
                findings.complete = false;
                break;
            }
            let fits = |event: &StoredEvent| {
                search.kinds.contains(&&*event.kind) && (search.fits)(&event.json)
            };
            let mut fitting = self.events(&record.id).into_iter().filter(fits);
            let found = if self.has(Fault::FindsOldest) {
                fitting.next()
            } else {
                fitting.next_back()
            };
            findings.found.extend(found.map(|event| (record, event)));
        }
        findings
    }

    pub(super) fn facts(&self, scope: &str) -> Vec<(String, Value)> {
        let scope = if self.has(Fault::IgnoresScope) {
            ""
        } else {
            scope
        };
        let facts = self.facts.iter().filter(|((of, _), _)| of == scope);
        facts
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect()
    }

    pub(super) fn size_of(&self, id: &SessionId) -> u64 {
        let characters = self.has(Fault::CountsCharacters);
        let events = self.events(id).into_iter();
        let sizes = events.map(|event| {
            if characters {
                event.json.chars().count() as u64
            } else {
                event.json.len() as u64
            }
        });
        sizes.sum()
    }

    pub(super) fn sizes(&self) -> Vec<(SessionId, u64)> {
        let records = self.sessions.values().map(|(record, _)| record);
        let sizes = records.map(|record| (record.id.clone(), self.size_of(&record.id)));
        sizes.collect()
    }
}

fn check_end(
    session: &SessionId,
    expected: Seq,
    length: usize,
    fits: impl Fn(u64) -> bool,
) -> Result<(), StoreError> {
    let end = length as u64;
    if fits(end) {
        return Ok(());
    }
    Err(StoreError::Conflict {
        session: session.clone(),
        expected,
        found: Seq(end),
    })
}

fn no_session(session: &SessionId) -> StoreError {
    StoreError::NoSession {
        session: session.clone(),
    }
}

//! What a session shares with all agents below it: those who listen, the slots, and the questions
//! that agents have for its clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use loopd_proto::id::{RequestId, SessionId};
use loopd_proto::permission::PermissionRequest;
use loopd_proto::session::ClientOffer;
use parking_lot::{Mutex, MutexGuard};

use crate::client::{Class, Client, Notice};
use crate::publish::Audience;
use crate::session::SessionHandle;
use crate::session::questions::answers;
use crate::subagent::Slots;
use loopd_kernel::questions::{OpenQuestion, Questions};

/// One tree of agents, made with the first of them.
pub struct Tree {
    /// The session at the top.
    pub(in crate::session) top: SessionHandle,
    pub(in crate::session) audience: Audience,
    pub(in crate::session) slots: Slots,
    /// What the agents' states have open, as far as it is committed.
    questions: Mutex<Table>,
}

/// A committed question of an agent that the clients at the top have to answer.
#[derive(Clone)]
pub struct TreeQuestion {
    /// The session that waits for the answer. Its state says whether the question is open.
    pub session: SessionHandle,
    pub(in crate::session) question: OpenQuestion,
    /// The event that asks, as it was stored, if it is shown to clients.
    pub(in crate::session) line: Option<Arc<str>>,
}

type Table = BTreeMap<RequestId, TreeQuestion>;

impl Tree {
    pub(in crate::session) fn new(
        top: SessionHandle,
        audience: Audience,
        slots: Slots,
    ) -> Arc<Self> {
        Arc::new(Self {
            top,
            audience,
            slots,
            questions: Mutex::default(),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.questions.lock()
    }

    /// Takes over the questions that an agent has open after a commit; `new` tells of one that was
    /// not open before. Nobody joins as long as the guard lives, so that the table and the events
    /// that the agent publishes are one to those who do. No guard when nothing has changed.
    pub(in crate::session) fn committed(
        &self,
        session: &SessionId,
        open: &Questions,
        new: impl Fn(&OpenQuestion) -> TreeQuestion,
    ) -> Option<MutexGuard<'_, Table>> {
        let mut table = self.table();
        let before = table.len();
        table.retain(|request, asked| asked.session.id() != session || open.get(request).is_some());
        let mut changed = table.len() != before;
        for question in open.iter() {
            if !table.contains_key(&question.request) {
                table.insert(question.request.clone(), new(question));
                changed = true;
            }
        }
        changed.then_some(table)
    }

    /// Shows everybody what an agent had asked before it was reopened.
    pub(in crate::session) fn reopened(&self, asked: Vec<TreeQuestion>) {
        let mut table = self.table();
        for asked in asked {
            if let Some(notice) = asked.notice(&self.top) {
                self.audience.tell(Class::Event, &notice);
            }
            table.insert(asked.question.request.clone(), asked);
        }
    }

    /// An agent has ended, and nobody waits for what it asked.
    pub(in crate::session) fn left(&self, session: &SessionId) {
        self.table()
            .retain(|_, asked| asked.session.id() != session);
    }

    /// Lets somebody listen to the session at the top, and shows it what it can answer.
    pub(in crate::session) fn join(&self, client: Arc<dyn Client>, offer: &ClientOffer) {
        let table = self.table();
        let asked = table.values();
        for asked in asked.filter(|asked| answers(offer, &asked.question.asks)) {
            if let Some(notice) = asked.notice(&self.top) {
                client.tell(Class::Event, &notice);
            }
        }
        self.audience.join(client);
    }

    /// Who waits for the answer to a request.
    pub fn who_asked(&self, request: &RequestId) -> Option<SessionHandle> {
        self.table()
            .get(request)
            .map(|question| question.session.clone())
    }

    /// All open questions, in the order of their ids.
    pub fn questions(&self) -> Vec<(RequestId, TreeQuestion)> {
        let table = self.table();
        table
            .iter()
            .map(|(request, question)| (request.clone(), question.clone()))
            .collect()
    }
}

impl TreeQuestion {
    /// The permission that is asked for, if it is one.
    pub fn permission(&self) -> Option<&PermissionRequest> {
        self.question.asks.permission()
    }

    /// Shows the question to clients of the session at the top.
    fn notice<'a>(&'a self, top: &'a SessionHandle) -> Option<Notice<'a>> {
        let line = self.line.as_ref()?;
        Some(Notice::event(top.id(), line))
    }
}

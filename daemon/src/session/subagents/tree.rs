//! What a session shares with all sub-agents below it: the audience, the slots, and the questions
//! of the sub-agents to its clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use loopd_proto::id::{RequestId, SessionId};
use loopd_proto::permission::PermissionRequest;
use loopd_proto::session::ClientOffer;
use parking_lot::{Mutex, MutexGuard};

use crate::client::{Class, Client, Notice};
use crate::publish::Audience;
use crate::session::SessionHandle;
use crate::session::budget::TreeBudget;
use crate::session::questions::answers;
use crate::subagent::Slots;
use crate::tool::capture::Captures;
use loopd_kernel::questions::{OpenQuestion, Questions};

/// One tree of sub-agents; made with the first of them.
pub struct Tree {
    /// The session at the top.
    pub(in crate::session) top: SessionHandle,
    pub(in crate::session) audience: Audience,
    pub(in crate::session) slots: Slots,
    /// The model calls of the whole tree.
    pub(in crate::session) budget: Arc<TreeBudget>,
    /// Where earlier versions of files are kept.
    pub(in crate::session) captures: Captures,
    /// The questions that are open in the committed states of the sub-agents.
    questions: Mutex<Table>,
}

/// A committed question of a sub-agent that the clients of the session at the top must answer.
#[derive(Clone)]
pub struct TreeQuestion {
    /// The session that waits for the answer. Its state says whether the question is open.
    pub session: SessionHandle,
    pub(in crate::session) question: OpenQuestion,
    /// The stored event of the question, if clients see it.
    pub(in crate::session) line: Option<Arc<str>>,
}

type Table = BTreeMap<RequestId, TreeQuestion>;

impl Tree {
    pub(in crate::session) fn new(
        top: SessionHandle,
        audience: Audience,
        slots: Slots,
        budget: Arc<TreeBudget>,
        captures: Captures,
    ) -> Arc<Self> {
        Arc::new(Self {
            top,
            audience,
            slots,
            budget,
            captures,
            questions: Mutex::default(),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.questions.lock()
    }

    /// Replaces the open questions of a sub-agent after a commit; `new` makes the entry of a
    /// question that was not open before. No client can join while the guard lives, so that a
    /// joining client finds table and published events consistent. Returns no guard if nothing has
    /// changed.
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

    /// Shows all clients the questions of a reopened sub-agent.
    pub(in crate::session) fn reopened(&self, asked: Vec<TreeQuestion>) {
        let mut table = self.table();
        for asked in asked {
            if let Some(notice) = asked.notice(&self.top) {
                self.audience.tell(Class::Event, &notice);
            }
            table.insert(asked.question.request.clone(), asked);
        }
    }

    /// Drops the questions of a sub-agent that has ended.
    pub(in crate::session) fn left(&self, session: &SessionId) {
        self.table()
            .retain(|_, asked| asked.session.id() != session);
    }

    /// Adds a client to the audience at the top, and shows it the questions that it can answer.
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

    /// Returns the session that waits for the answer to a request.
    pub fn who_asked(&self, request: &RequestId) -> Option<SessionHandle> {
        self.table()
            .get(request)
            .map(|question| question.session.clone())
    }

    /// Lists all open questions, ordered by id.
    pub fn questions(&self) -> Vec<(RequestId, TreeQuestion)> {
        let table = self.table();
        table
            .iter()
            .map(|(request, question)| (request.clone(), question.clone()))
            .collect()
    }
}

impl TreeQuestion {
    /// Returns the permission that the question asks for, if it asks for one.
    pub fn permission(&self) -> Option<&PermissionRequest> {
        self.question.asks.permission()
    }

    /// Makes the notification that shows the question to clients of the session at the top.
    fn notice<'a>(&'a self, top: &'a SessionHandle) -> Option<Notice<'a>> {
        let line = self.line.as_ref()?;
        Some(Notice::event(top.id(), line))
    }
}

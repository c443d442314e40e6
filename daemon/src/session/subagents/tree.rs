//! What a session shares with all agents below it: its clients' ears, the slots, and the questions
//! that agents have for its clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopd_proto::event::fact::Asked;
use loopd_proto::id::{RequestId, SessionId};
use loopd_proto::permission::PermissionRequest;

use crate::publish::Audience;
use crate::session::SessionHandle;
use crate::subagent::Slots;

/// One tree of agents, made with the first of them.
pub struct Tree {
    /// The session at the top.
    pub(in crate::session) top: SessionHandle,
    pub(in crate::session) audience: Audience,
    pub(in crate::session) slots: Slots,
    questions: Mutex<BTreeMap<RequestId, TreeQuestion>>,
}

/// A question of an agent that the clients at the top have to answer.
#[derive(Clone)]
pub struct TreeQuestion {
    /// The session that waits for the answer.
    pub session: SessionHandle,
    /// The event that asks, as the clients at the top are shown it.
    pub(in crate::session) line: Arc<str>,
    pub(in crate::session) asks: Asks,
}

/// What kind of answer is wanted.
#[derive(Clone)]
pub enum Asks {
    Permission(Box<PermissionRequest>),
    /// A client has to run this tool.
    Tool(String),
    Person(Box<Asked>),
}

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

    fn table(&self) -> MutexGuard<'_, BTreeMap<RequestId, TreeQuestion>> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::session) fn asked(&self, request: RequestId, question: TreeQuestion) {
        self.table().insert(request, question);
    }

    pub(in crate::session) fn answered(&self, request: &RequestId) {
        self.table().remove(request);
    }

    /// Forgets what an agent asked that does not wait any more.
    pub(in crate::session) fn keep_only(
        &self,
        session: &SessionId,
        open: impl Fn(&RequestId) -> bool,
    ) {
        self.table()
            .retain(|request, question| question.session.id() != session || open(request));
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
        match &self.asks {
            Asks::Permission(request) => Some(request),
            Asks::Tool(_) | Asks::Person(_) => None,
        }
    }
}

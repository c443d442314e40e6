//! The parameters of `session.create` and `session.resume`: options, offer and policy of a client, and a few
//! members of their own.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use super::members::{self, Request, WithoutEffect};
use super::{ClientOffer, PolicyParams, SessionOptions, refuse_unknown};
use crate::id::SessionId;
use crate::json::group;

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCreateParams {
    pub session_id: Option<SessionId>,
    pub git_hub_token: Option<String>,
    /// The name of the session.
    pub name: Option<String>,
    pub trust_working_directory: Option<WorkingDirectoryTrust>,
    /// The members that have no effect.
    #[serde(skip)]
    pub without_effect: Vec<WithoutEffect>,
    #[serde(flatten)]
    pub policy: PolicyParams,
    #[serde(flatten)]
    pub options: SessionOptions,
    #[serde(flatten)]
    pub offer: ClientOffer,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionResumeParams {
    pub session_id: SessionId,
    pub git_hub_token: Option<String>,
    #[serde(flatten)]
    pub policy: PolicyParams,
    pub continue_pending_work: bool,
    /// Joins without a `session.resume` event.
    pub disable_resume: bool,
    /// Our own member: the client comes back after its connection broke. It takes back no choice that was
    /// made meanwhile, and stands in the place of the broken connection.
    #[serde(rename = "loopdReturns", skip_serializing_if = "std::ops::Not::not")]
    pub returns: bool,
    pub trust_working_directory: Option<WorkingDirectoryTrust>,
    /// The members that have no effect.
    #[serde(skip)]
    pub without_effect: Vec<WithoutEffect>,
    #[serde(flatten)]
    pub options: SessionOptions,
    #[serde(flatten)]
    pub offer: ClientOffer,
}

/// How far an app trusts the working directory of a session for its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkingDirectoryTrust {
    Session,
    User,
}

/// The members of `session.create` alone.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CreateFields {
    session_id: Option<SessionId>,
    git_hub_token: Option<String>,
    name: Option<String>,
    trust_working_directory: Option<WorkingDirectoryTrust>,
}

/// The members of `session.resume` alone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeFields {
    session_id: SessionId,
    #[serde(default)]
    git_hub_token: Option<String>,
    #[serde(default)]
    continue_pending_work: bool,
    #[serde(default)]
    disable_resume: bool,
    #[serde(default, rename = "loopdReturns")]
    returns: bool,
    #[serde(default)]
    trust_working_directory: Option<WorkingDirectoryTrust>,
}

/// Returns the members that only this request has.
#[cfg(test)]
pub(super) fn own_members(request: Request) -> &'static [&'static str] {
    match request {
        Request::Create => members::members_of::<CreateFields>(),
        Request::Resume | Request::Send | Request::Update => members::members_of::<ResumeFields>(),
    }
}

impl<'de> Deserialize<'de> for SessionCreateParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Box::<RawValue>::deserialize(deserializer)?;
        refuse_unknown(&object)?;
        let without_effect = members::checked(Request::Create, &object)?;
        let own: CreateFields = group(&object)?;
        Ok(Self {
            session_id: own.session_id,
            git_hub_token: own.git_hub_token,
            name: own.name,
            trust_working_directory: own.trust_working_directory,
            without_effect,
            policy: group(&object)?,
            options: group(&object)?,
            offer: group(&object)?,
        })
    }
}

impl<'de> Deserialize<'de> for SessionResumeParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Box::<RawValue>::deserialize(deserializer)?;
        refuse_unknown(&object)?;
        let without_effect = members::checked(Request::Resume, &object)?;
        let own: ResumeFields = group(&object)?;
        Ok(Self {
            session_id: own.session_id,
            git_hub_token: own.git_hub_token,
            policy: group(&object)?,
            continue_pending_work: own.continue_pending_work,
            disable_resume: own.disable_resume,
            returns: own.returns,
            trust_working_directory: own.trust_working_directory,
            without_effect,
            options: group(&object)?,
            offer: group(&object)?,
        })
    }
}

//! The skills of a session.

use loopd_proto::event::skill::SkillSwitched;
use loopd_proto::params::session::Of;
use loopd_proto::params::skill::{
    InvokedSkill, InvokedSkills, SkillDiagnostics, SkillList, SkillParams,
};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::session::skills::commands_of;
use crate::skill::SkillView;
use loopd_kernel::command::Command;

/// Looks the skills of a session up, and tells its clients what was not known.
pub(super) async fn look(session: &SessionHandle) -> Result<SkillView, RpcError> {
    let lookup = session.view(|view| (view.skill_lookup)()).await?;
    let Some(lookup) = lookup else {
        // There can be none, or the session is a sub-agent, which has those of its parent.
        return Ok(session.view(|view| (view.skills)()).await?);
    };
    let (skills, news) = lookup.run().await;
    for command in commands_of(news) {
        session.command(command).await?;
    }
    Ok(skills)
}

pub(super) async fn list(context: Context, params: Of) -> Result<SkillList, RpcError> {
    let session = context.session(&params.session_id)?;
    let skills = look(&session).await?;
    Ok(SkillList {
        skills: skills.describe(),
    })
}

pub(super) async fn ensure_loaded(context: Context, params: Of) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    look(&session).await?;
    Ok(())
}

pub(super) async fn reload(context: Context, params: Of) -> Result<SkillDiagnostics, RpcError> {
    let session = context.session(&params.session_id)?;
    session
        .view(|view| view.skill_cell.forget_provided())
        .await?;
    let skills = look(&session).await?;
    Ok(SkillDiagnostics {
        warnings: skills.set().warnings.clone(),
        errors: skills.set().errors.clone(),
    })
}

pub(super) async fn enable(context: Context, params: SkillParams) -> Result<(), RpcError> {
    switch(&context, params, true).await
}

pub(super) async fn disable(context: Context, params: SkillParams) -> Result<(), RpcError> {
    switch(&context, params, false).await
}

async fn switch(context: &Context, params: SkillParams, enabled: bool) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    let skills = look(&session).await?;
    let Some(skill) = skills.get(&params.name) else {
        return Err(RpcError::Failed(format!(
            "this session has no skill {}; session.skills.list tells which it has",
            params.name
        )));
    };
    let name = skill.definition.name.clone();
    let switched = SkillSwitched { name, enabled };
    session.command(Command::SwitchSkill(switched)).await?;
    Ok(())
}

pub(super) async fn invoked(context: Context, params: Of) -> Result<InvokedSkills, RpcError> {
    let session = context.session(&params.session_id)?;
    let skills = session.state(|state| {
        let loaded = state.skills.loaded().iter();
        let loaded = loaded.map(|skill| InvokedSkill {
            name: skill.invoked.name.clone(),
            path: skill.invoked.path.clone(),
            content: skill.invoked.content.clone(),
            allowed_tools: skill.invoked.allowed_tools.clone(),
            disable_model_invocation: skill.invoked.disable_model_invocation,
            invoked_at_turn: u64::from(skill.turn),
        });
        loaded.collect()
    });
    Ok(InvokedSkills {
        skills: skills.await?,
    })
}

//! Methods that find skills, agents, instructions and MCP servers on disk.

pub use crate::event::mcp::{McpSource, McpTransport};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SkillsParams {
    pub project_paths: Option<Vec<String>>,
    pub skill_directories: Option<Vec<String>>,
    pub exclude_host_skills: bool,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentsParams {
    pub project_paths: Option<Vec<String>>,
    pub exclude_host_agents: bool,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstructionsParams {
    pub project_paths: Option<Vec<String>>,
    pub exclude_host_instructions: bool,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpParams {
    pub working_directory: Option<String>,
}

/// The names of the disabled skills; replaces the previous list.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisabledSkillsParams {
    pub disabled_skills: Vec<String>,
}

/// The skills that were found, and the errors of those that could not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Skills {
    pub skills: Vec<Skill>,
    pub errors: Vec<String>,
}

/// Where a skill comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillSource {
    Project,
    /// A folder of the project above that of the session.
    Inherited,
    PersonalCopilot,
    PersonalAgents,
    Plugin,
    /// A folder that a client or the environment names.
    Custom,
    /// A client, which has the text and no file.
    Sdk,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    pub name: String,
    pub command_name: Option<String>,
    pub description: String,
    pub source: SkillSource,
    pub user_invocable: bool,
    pub enabled: bool,
    pub path: Option<String>,
    pub project_path: Option<String>,
    pub plugin_name: Option<String>,
    pub argument_hint: Option<String>,
    /// Our own member: why the skill cannot be used, for example for want of trust.
    pub unavailable: Option<String>,
}

/// The paths that are searched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Paths<P> {
    pub paths: Vec<P>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillPath {
    pub path: String,
    pub scope: SkillSource,
    pub preferred_for_creation: bool,
    pub project_path: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Agents {
    pub agents: Vec<Agent>,
}

/// Where an agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentSource {
    User,
    Project,
    Plugin,
    Builtin,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub path: Option<String>,
    pub id: String,
    pub source: Option<AgentSource>,
    pub user_invocable: Option<bool>,
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
    pub mcp_servers: Option<serde_json::Value>,
    pub skills: Option<Vec<String>>,
    pub prompt: Option<String>,
}

/// Names the folder whose agents are listed.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FolderAgentsParams {
    /// The directory of the caller's launch when absent.
    pub working_directory: Option<String>,
}

/// The agents that a session in a folder would have, and what is wrong with files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FolderAgents {
    pub agents: Vec<FolderAgent>,
    pub problems: Vec<FileProblem>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FolderAgent {
    #[serde(flatten)]
    pub agent: Agent,
    pub built_in: bool,
    /// Whether a person may let it answer in place of the default agent.
    pub selectable: bool,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPath {
    pub path: String,
    pub scope: AgentSource,
    pub preferred_for_creation: bool,
    pub project_path: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Instructions {
    pub sources: Vec<Instruction>,
}

/// The kind of file that instructions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionKind {
    Home,
    Repo,
    /// A file for agents in general, or for those of one vendor.
    Model,
    /// A file of `.github/instructions`.
    Vscode,
    /// A file of a folder below that of the session.
    NestedAgents,
    /// A file that another one imports.
    ChildInstructions,
}

/// Where instructions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionLocation {
    User,
    Repository,
    /// A folder between the root of the repository and that of the session.
    WorkingDirectory,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instruction {
    pub id: String,
    pub label: String,
    pub source_path: String,
    pub content: String,
    #[serde(rename = "type")]
    pub kind: InstructionKind,
    pub location: InstructionLocation,
    /// The files that they apply to; all when absent.
    pub apply_to: Option<Vec<String>>,
    pub description: Option<String>,
    pub project_path: Option<String>,
}

/// Whether a path names a file or a directory of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathKind {
    File,
    Directory,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstructionPath {
    pub path: String,
    pub location: InstructionLocation,
    pub kind: PathKind,
    pub preferred_for_creation: bool,
    pub project_path: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct McpServers {
    pub servers: Vec<McpServer>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    pub name: String,
    #[serde(rename = "type")]
    pub transport: Option<McpTransport>,
    pub source: McpSource,
    pub source_plugin: Option<String>,
    pub enabled: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProblemsParams {
    /// The folder of a session; the directory of the launch when absent.
    pub working_directory: Option<String>,
}

/// The files that cannot be used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Problems {
    pub problems: Vec<FileProblem>,
}

/// A file that cannot be used, or not in full.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileProblem {
    pub file: String,
    /// The line, from 1 on.
    pub line: Option<usize>,
    pub message: String,
}

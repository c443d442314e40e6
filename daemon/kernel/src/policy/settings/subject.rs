//! What a rule of settings is about: the names that other programs have for tools.

use loopd_proto::permission::PermissionRule;

use super::NotEnforced;
use super::instead::everything;

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    Shell,
    Read,
    /// A tool that searches; with a path it is about reading that path.
    Search(&'static str),
    Write,
    Url,
    /// A server of tools, or `server/tool`; all servers if nothing is named.
    Mcp(Option<String>),
    /// A tool that needs no permission otherwise.
    Tool(&'static str),
}

/// Names of tools, in small letters, and what they are about here.
const NAMES: &[(&[&str], Subject)] = &[
    (&["bash", "shell", "powershell"], Subject::Shell),
    (&["read", "view", "ls", "notebookread"], Subject::Read),
    (&["grep"], Subject::Search("grep")),
    (&["glob"], Subject::Search("glob")),
    (
        &[
            "edit",
            "write",
            "multiedit",
            "notebookedit",
            "create",
            "apply_patch",
        ],
        Subject::Write,
    ),
    (&["webfetch", "web_fetch", "url"], Subject::Url),
    (&["mcp"], Subject::Mcp(None)),
    (&["agent", "task"], Subject::Tool("task")),
    (&["todowrite"], Subject::Tool("todowrite")),
    (&["todoread"], Subject::Tool("todoread")),
    (&["askuserquestion", "ask_user"], Subject::Tool("ask_user")),
    (
        &["exitplanmode", "exit_plan_mode"],
        Subject::Tool("exit_plan_mode"),
    ),
    (&["bashoutput", "read_bash"], Subject::Tool("read_bash")),
    (
        &["killshell", "killbash", "stop_bash"],
        Subject::Tool("stop_bash"),
    ),
    (
        &["agentoutput", "taskoutput", "read_agent"],
        Subject::Tool("read_agent"),
    ),
    (&["taskstop", "stop_agent"], Subject::Tool("stop_agent")),
    (&["sql"], Subject::Tool("sql")),
];

/// Names of tools of other programs, in small letters. There is nothing here that does the same.
const ELSEWHERE: &[&str] = &[
    "croncreate",
    "crondelete",
    "cronlist",
    "monitor",
    "pushnotification",
    "remotetrigger",
    "sendmessage",
    "taskcreate",
    "taskget",
    "tasklist",
    "taskupdate",
    "teamcreate",
    "teamdelete",
    "enterplanmode",
    "enterworktree",
    "exitworktree",
    "listmcpresources",
    "listmcpresourcestool",
    "lsp",
    "readmcpresource",
    "readmcpresourcetool",
    "skill",
    "slashcommand",
    "toolsearch",
    "web_search",
    "websearch",
];

/// How many letters may differ in a name that people are reminded of.
const MOST_WRONG: usize = 2;

impl Subject {
    /// Returns what the name of a tool is about. Capital letters do not matter.
    pub(super) fn of(name: &str) -> Result<Self, NotEnforced> {
        if let Some(tool) = name.strip_prefix("mcp__") {
            return of_server(tool);
        }
        let small = name.to_lowercase();
        let known = NAMES.iter().find(|(names, _)| names.contains(&&*small));
        if let Some((_, subject)) = known {
            return Ok(subject.clone());
        }
        if ELSEWHERE.contains(&&*small) {
            return Err(NotEnforced {
                why: "is about a tool that there is not here".to_owned(),
                instead: Vec::new(),
            });
        }
        // A name that is only similar may be about something else.
        let names = NAMES.iter().flat_map(|(names, _)| names.iter());
        let near = names.map(|name| (distance(&small, name), name));
        let near = near.filter(|(wrong, name)| *wrong <= MOST_WRONG && *wrong * 2 <= name.len());
        let hint = match near.min() {
            Some((_, name)) => format!("did you mean `{name}`?"),
            None => {
                "there are Bash, Read, Edit, Write, WebFetch, Task and mcp__server__tool".to_owned()
            }
        };
        Err(NotEnforced {
            why: format!("is about no tool that rules can name ({hint})"),
            instead: everything(),
        })
    }

    /// Returns the kind of the rules about it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Read | Self::Search(_) => "read",
            Self::Write => "write",
            Self::Url => "url",
            Self::Mcp(_) => "mcp",
            Self::Tool(_) => "tool",
        }
    }

    /// Returns the rule for everything that it is about.
    pub(super) fn whole(&self) -> PermissionRule {
        let (kind, argument) = match self {
            Self::Shell | Self::Read | Self::Write | Self::Url => (self.kind(), None),
            Self::Mcp(server) => ("mcp", server.clone()),
            Self::Search(tool) | Self::Tool(tool) => ("tool", Some((*tool).to_owned())),
        };
        PermissionRule {
            kind: kind.to_owned(),
            argument,
        }
    }
}

/// Reads what stands after `mcp__`: a server, or a server and a tool.
fn of_server(tool: &str) -> Result<Subject, NotEnforced> {
    let tool = tool.strip_suffix("__*").unwrap_or(tool);
    if matches!(tool, "" | "*") {
        return Ok(Subject::Mcp(None));
    }
    let (server, name) = match tool.split_once("__") {
        Some((server, name)) => (server, Some(name)),
        None => (tool, None),
    };
    let is_pattern = |text: &str| text.is_empty() || text.contains(['*', '?', '[', '{', ',', ' ']);
    let wider = if is_pattern(server) {
        Subject::Mcp(None)
    } else if name.is_some_and(is_pattern) {
        Subject::Mcp(Some(server.to_owned()))
    } else {
        let named = tool.replacen("__", "/", 1);
        return Ok(Subject::Mcp(Some(named)));
    };
    Err(NotEnforced {
        why: "has a pattern; `*` may stand only for all tools of a server, as in `mcp__server__*`"
            .to_owned(),
        instead: vec![wider.whole()],
    })
}

/// Returns how many letters have to be changed, added or left out to make one name of another.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = at;
        let mut left = at + 1;
        let mut next = vec![left];
        for (place, same) in other.iter().enumerate() {
            let above = row.get(place + 1).copied().unwrap_or_default();
            let changed = before + usize::from(letter != *same);
            left = changed.min(above + 1).min(left + 1);
            next.push(left);
            before = above;
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

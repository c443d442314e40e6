use super::*;

/// A wish that owns what it is about: at first, none at all.
struct Case {
    requested: Option<&'static str>,
    policy: ModelPolicy,
    preferred: Option<&'static str>,
    session: &'static str,
    available: Vec<ModelInfo>,
    settings: AgentSettings,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            requested: None,
            policy: ModelPolicy::Inherit,
            preferred: None,
            session: "claude-sonnet-4.5",
            available: models([
                "text-embedding-3-small",
                "gpt-5",
                "gpt-5-mini",
                "gemini-2.5-pro",
                "claude-sonnet-4.5",
                "claude-haiku-4.5",
                "claude-opus-4.1",
            ]),
            settings: AgentSettings::default(),
        }
    }
}

impl Case {
    fn choose(&self) -> Result<Choice, ModelRefusal> {
        choose(&Wish {
            requested: self.requested,
            policy: &self.policy,
            preferred: self.preferred,
            session_model: self.session,
            available: &self.available,
            settings: &self.settings,
        })
    }

    /// What it comes to when there is nothing to say about it.
    fn model(&self) -> String {
        let choice = self.choose().unwrap();
        assert_eq!(choice.note, None);
        choice.model
    }
}

fn models(ids: impl IntoIterator<Item = impl Into<String>>) -> Vec<ModelInfo> {
    let info = |id: String| ModelInfo {
        name: format!("The {id}"),
        id,
        vision: false,
        images: loopd_kernel::model::ImageLimits::default(),
        max_context_tokens: None,
        max_output_tokens: None,
        reasoning_efforts: Vec::new(),
    };
    ids.into_iter().map(|id| info(id.into())).collect()
}

fn named(model: &str) -> ModelPolicy {
    ModelPolicy::Named(model.to_owned())
}

#[test]
fn without_any_wish_the_session_has_its_model_used() {
    let mut case = Case::default();
    assert_eq!(case.model(), "claude-sonnet-4.5");
    case.available.clear();
    assert_eq!(case.model(), "claude-sonnet-4.5");
}

#[test]
fn a_call_gets_what_it_asks_for_however_it_is_written() {
    let mut case = Case::default();
    for (wanted, found) in [
        ("gpt-5", "gpt-5"),
        ("GPT-5", "gpt-5"),
        ("The gpt-5-mini", "gpt-5-mini"),
        ("haiku", "claude-haiku-4.5"),
        ("small", "claude-haiku-4.5"),
        ("inherit", "claude-sonnet-4.5"),
        (" ", "claude-sonnet-4.5"),
    ] {
        case.requested = Some(wanted);
        assert_eq!(case.model(), found);
    }
    case.available = models(["work/gpt-5", "home/qwen3"]);
    case.requested = Some("qwen3");
    assert_eq!(case.model(), "home/qwen3");
    // The session's own is there, whatever the list says.
    case.requested = Some(case.session);
    assert_eq!(case.model(), "claude-sonnet-4.5");
}

#[test]
fn a_call_that_asks_for_an_unknown_model_is_told_which_there_are() {
    let mut case = Case {
        requested: Some("gpt-9"),
        ..Case::default()
    };
    let text = case.choose().unwrap_err().to_string();
    let listed = text.contains("`gpt-9`") && text.contains("claude-opus-4.1");
    assert!(listed, "{text}");
    case.available = models((0..1_000).map(|number| format!("m{number}")));
    let text = case.choose().unwrap_err().to_string();
    assert!(text.ends_with("m39 and 960 more"), "{text}");
    // Nobody knows which there are: the provider will say.
    case.available.clear();
    assert_eq!(case.model(), "gpt-9");
}

#[test]
fn a_costly_model_is_lowered_to_that_of_the_session_unless_that_is_one() {
    let mut case = Case::default();
    case.settings.costly_models = vec!["*Opus*".to_owned(), "gpt-5".to_owned()];
    case.requested = Some("claude-opus-4.1");
    let lowered = case.choose().unwrap();
    assert_eq!(lowered.model, "claude-sonnet-4.5");
    assert!(lowered.note.unwrap().contains("costly"));
    case.requested = Some("gpt-5-mini");
    assert_eq!(case.model(), "gpt-5-mini");
    // What is chosen without being named is not costly either.
    case.requested = Some("other-family");
    assert_eq!(case.model(), "gemini-2.5-pro");
    case.requested = Some("claude-opus-4.1");
    case.session = "gpt-5";
    assert_eq!(case.model(), "claude-opus-4.1");
    // What people set for an agent is theirs to pay for.
    case.session = "claude-sonnet-4.5";
    case.requested = None;
    case.preferred = Some("claude-opus-4.1");
    assert_eq!(case.model(), "claude-opus-4.1");
}

#[test]
fn small_is_what_people_set_else_what_a_name_says() {
    let mut case = Case {
        policy: ModelPolicy::Small,
        ..Case::default()
    };
    for (session, small) in [
        ("claude-sonnet-4.5", "claude-haiku-4.5"),
        ("gpt-5", "gpt-5-mini"),
        ("grok-4", "gpt-5-mini"),
        ("o4-mini", "o4-mini"),
    ] {
        case.session = session;
        assert_eq!(case.model(), small);
    }
    case.session = "gpt-5";
    case.settings.small_model = Some("gemini-2.5-pro".to_owned());
    assert_eq!(case.model(), "gemini-2.5-pro");
    case.settings.small_model = Some("gone".to_owned());
    assert_eq!(case.model(), "gpt-5-mini");
    case.available = models(["gemini-2.5-pro", "gpt-5", "text-embedding-3-small"]);
    assert_eq!(case.model(), "gpt-5");
    case.available.clear();
    assert_eq!(case.model(), "gone", "believed while nobody knows");
}

#[test]
fn another_family_is_one_that_others_made() {
    let mut case = Case {
        policy: ModelPolicy::OtherFamily,
        ..Case::default()
    };
    for (session, other) in [
        ("claude-sonnet-4.5", "gpt-5"),
        ("azure/gpt-5", "gemini-2.5-pro"),
        ("o3", "gemini-2.5-pro"),
    ] {
        case.session = session;
        assert_eq!(case.model(), other);
    }
    case.session = "claude-sonnet-4.5";
    case.available = models(["claude-haiku-4.5", "house-model"]);
    case.settings.critic_model = Some("not-there".to_owned());
    assert_eq!(case.model(), "claude-sonnet-4.5");
    case.settings.critic_model = Some("house-model".to_owned());
    assert_eq!(case.model(), "house-model");
}

#[test]
fn what_people_set_goes_before_what_the_author_wants_and_neither_breaks_a_session() {
    let mut case = Case {
        policy: named("opus"),
        ..Case::default()
    };
    assert_eq!(case.model(), "claude-opus-4.1");
    case.preferred = Some("gpt-5");
    assert_eq!(case.model(), "gpt-5");
    case.preferred = Some("small");
    assert_eq!(case.model(), "claude-haiku-4.5");
    case.requested = Some("gemini-2.5-pro");
    assert_eq!(case.model(), "gemini-2.5-pro");
    case.requested = None;
    case.preferred = Some("gone");
    let choice = case.choose().unwrap();
    assert_eq!(choice.model, "claude-opus-4.1");
    assert!(choice.note.unwrap().contains("`gone`"));
    case.preferred = None;
    case.policy = named("gpt-9");
    for available in [case.available.clone(), Vec::new()] {
        case.available = available;
        let choice = case.choose().unwrap();
        assert_eq!(choice.model, "claude-sonnet-4.5");
        assert!(choice.note.unwrap().contains("`gpt-9`"));
    }
}

#[test]
fn names_tell_families_and_sizes_by_whole_words() {
    for (name, made_by) in [
        ("gpt-4o", Some("gpt")),
        ("gpt4all", Some("gpt")),
        ("o4-mini", Some("gpt")),
        ("qwen3-coder", Some("qwen")),
        ("phind-34b", None),
        ("models/gemini-2.5-flash", Some("gemini")),
        ("anthropic.claude-opus-4", Some("claude")),
        ("claude-proxy/llama3.1", Some("llama")),
        ("scripted", None),
    ] {
        assert_eq!(family(name), made_by, "{name}");
    }
    assert!(is_small("gemini-2.5-flash") && !is_small("gemini-2.5-pro"));
    assert!(!is_chat("gpt-4o-mini-tts") && is_chat("gpt-4o-mini"));
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, text, expected) in [
        ("opus", "opus", true),
        ("opus", "claude-opus", false),
        ("*opus*", "claude-opus-4", true),
        ("claude-*-4", "claude-opus-4", true),
        ("claude-*-4", "claude-opus-4.1", false),
        ("a*b*c", "aXbXbc", true),
        ("a*a", "a", false),
        ("*", "", true),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
    }
}

//! Guesses from the name of a model: its vendor, whether it is small, whether it is a chat model.

/// Words in the names of small and fast models.
const SMALL: [&str; 6] = ["mini", "haiku", "flash", "small", "lite", "nano"];

/// Words in the names of models that are not chat models.
const NO_CHAT: [&str; 13] = [
    "embedding",
    "embeddings",
    "embed",
    "rerank",
    "moderation",
    "tts",
    "whisper",
    "transcribe",
    "audio",
    "realtime",
    "image",
    "video",
    "guard",
];

/// The families, and how words in the names of their models begin.
const FAMILIES: [(&str, &[&str]); 12] = [
    ("claude", &["claude", "sonnet", "opus", "haiku"]),
    ("gpt", &["gpt", "chatgpt", "codex", "o1", "o3", "o4"]),
    ("gemini", &["gemini", "gemma"]),
    ("grok", &["grok"]),
    ("llama", &["llama", "codellama"]),
    (
        "mistral",
        &["mistral", "mixtral", "ministral", "codestral", "devstral"],
    ),
    ("qwen", &["qwen", "qwq"]),
    ("deepseek", &["deepseek"]),
    ("phi", &["phi"]),
    ("kimi", &["kimi", "moonshot"]),
    ("glm", &["glm"]),
    ("command", &["command", "cohere"]),
];

/// Splits a name into words, in lower case.
fn words(model: &str) -> impl Iterator<Item = String> + '_ {
    model
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Returns whether a name contains a whole word: `mini` is in `o4-mini`, but not in `gemini`.
pub(super) fn has_word(model: &str, wanted: &str) -> bool {
    words(model).any(|word| word == wanted)
}

pub(super) fn is_small(model: &str) -> bool {
    SMALL.iter().any(|small| has_word(model, small))
}

/// Returns whether the model may be chosen automatically.
pub(super) fn is_chat(model: &str) -> bool {
    !NO_CHAT.iter().any(|word| has_word(model, word))
}

/// Returns the family of a model, if its name shows it.
pub(super) fn family(model: &str) -> Option<&'static str> {
    // The provider in `azure/gpt-5` says nothing about the family.
    let own = model.rsplit('/').next().unwrap_or(model);
    words(own).find_map(|word| {
        let begins = |start: &&str| {
            let rest = word.strip_prefix(start);
            // A digit may follow, as in `gpt4` and `qwen3`; a letter may not: `phind` is not `phi`.
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
        };
        let found = FAMILIES
            .iter()
            .find(|(_, starts)| starts.iter().any(&begins));
        found.map(|(family, _)| *family)
    })
}

use super::*;

#[test]
fn rules_are_read_as_words() {
    let words = |text: &str| Rule::parse(text).map(|rule| (rule.program, rule.words));
    let parts = |program: &str, words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Ok((program.to_owned(), words))
    };
    assert_eq!(words("rm -rf"), parts("rm", &["-rf"]));
    assert_eq!(words("git push:*"), parts("git", &["push"]));
    assert_eq!(words(" rm  'a b' *"), parts("rm", &["a b"]));
    assert_eq!(words("rm '-rf"), Err(RuleError::Quote));
    assert_eq!(words("'git push'"), Err(RuleError::QuotedProgram));
    assert_eq!(words("'/opt/my tool' x"), parts("/opt/my tool", &["x"]));
    assert_eq!(words("rm,curl"), Err(RuleError::Several));
    assert_eq!(words("rm -rf, curl"), Err(RuleError::Several));
    assert_eq!(words("gcc -Wl,-x"), parts("gcc", &["-Wl,-x"]));
    assert_eq!(words("curl | sh"), Err(RuleError::Operator('|')));
    assert_eq!(words("A=b rm"), Err(RuleError::Assignment));
    assert_eq!(words(""), Err(RuleError::Empty));
    assert_eq!(words(":*"), Err(RuleError::Empty));
    assert_eq!(words("* -rf"), Err(RuleError::AnyProgram));
}

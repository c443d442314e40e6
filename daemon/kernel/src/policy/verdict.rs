//! The verdict of a judge about a request, and the combined verdict of several judges.

use loopd_proto::permission::PermissionRule;

/// The verdict of a judge about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Ask,
    /// Denied by these rules.
    Deny(Vec<PermissionRule>),
}

impl Verdict {
    /// Combines the verdicts of two judges: the stricter one wins. All rules that deny are kept.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::Deny(mut rules), Self::Deny(more)) => {
                rules.extend(more);
                Self::Deny(rules)
            }
            (Self::Deny(rules), Self::Ask | Self::Allow)
            | (Self::Ask | Self::Allow, Self::Deny(rules)) => Self::Deny(rules),
            (Self::Ask, Self::Ask | Self::Allow) | (Self::Allow, Self::Ask) => Self::Ask,
            (Self::Allow, Self::Allow) => Self::Allow,
        }
    }

    pub(super) fn denied_by(rule: &PermissionRule) -> Self {
        Self::Deny(vec![rule.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deny(kind: &str) -> Verdict {
        Verdict::denied_by(&PermissionRule {
            kind: kind.to_owned(),
            argument: None,
        })
    }

    #[test]
    fn the_strictest_verdict_wins_and_every_rule_that_denies_is_kept() {
        let (allow, ask) = (|| Verdict::Allow, || Verdict::Ask);
        let (read, write) = (|| deny("read"), || deny("write"));
        let table = [
            (allow(), allow(), allow()),
            (allow(), ask(), ask()),
            (ask(), ask(), ask()),
            (allow(), read(), read()),
            (ask(), read(), read()),
        ];
        for (one, other, both) in table {
            assert_eq!(one.clone().meet(other.clone()), both);
            assert_eq!(other.meet(one), both, "the order does not matter");
        }
        let Verdict::Deny(rules) = read().meet(ask()).meet(write()).meet(allow()) else {
            unreachable!("two judges deny it");
        };
        let kinds: Vec<&str> = rules.iter().map(|rule| rule.kind.as_str()).collect();
        assert_eq!(kinds, ["read", "write"]);
    }
}

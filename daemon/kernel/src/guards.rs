//! The apps whose hooks guard a session, be they there or not.

use std::collections::BTreeMap;

use loopd_proto::event::hook::{ClientGuard, GuardingApp};

/// How many clients of which app guard a session.
///
/// An app is known by its `clientName`, the only thing of a client that outlives its connection; of
/// clients with the same name, or without one, as many are waited for as were attached at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientGuards(BTreeMap<String, u32>);

/// A client came whose hooks guard the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardJoined {
    /// All clients that answer hooks now, this one included.
    pub present: ClientGuards,
    /// The name of the client if its connection broke and it comes back: it is nobody new, even if the
    /// broken connection still counts as one.
    pub returns: Option<String>,
}

/// A client whose hooks guard the session leaves it by its own will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardLeft {
    pub name: String,
    /// Whether other clients use the session.
    pub others_stay: bool,
}

/// Which guards somebody lifts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiftScope {
    /// Those of apps that are not there.
    Gone,
    /// Those of apps that are there, too.
    All,
}

/// What became of the guards when somebody lifted them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiftedGuards {
    pub lifted: ClientGuards,
    /// Those that stay, because their apps are there.
    pub stay: ClientGuards,
}

impl ClientGuards {
    /// Counts clients by their names.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut guards = Self::default();
        for name in names {
            *guards.0.entry(name.to_owned()).or_default() += 1;
        }
        guards
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many clients guard.
    pub fn count(&self) -> u32 {
        self.0.values().sum()
    }

    /// Returns those that are not among the clients that are there.
    #[must_use]
    pub fn missing_from(&self, present: &Self) -> Self {
        let wanted = self.0.iter();
        let missing = wanted.map(|(name, count)| {
            let count = count.saturating_sub(present.of_name(name));
            (name.clone(), count)
        });
        Self(missing.filter(|(_, count)| *count > 0).collect())
    }

    /// Returns what lifting them comes to while these clients are there.
    pub(crate) fn lifted(&self, scope: LiftScope, present: &Self) -> LiftedGuards {
        let lifted = match scope {
            LiftScope::All => self.clone(),
            LiftScope::Gone => self.missing_from(present),
        };
        LiftedGuards {
            stay: self.missing_from(&lifted),
            lifted,
        }
    }

    /// Returns these and others together.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        for (name, count) in &others.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
        self
    }

    /// Returns the guards after a client came. A client with a new name takes the place of one without
    /// a name that is missing: that one may have been anybody.
    #[must_use]
    pub(crate) fn after_join(&self, joined: &GuardJoined) -> Self {
        let mut after = self.clone();
        let mut new = 0;
        for (name, &count) in &joined.present.0 {
            let known = self.of_name(name);
            let is_back = known > 0 && joined.returns.as_ref() == Some(name);
            let count = if is_back { known } else { known.max(count) };
            if !name.is_empty() {
                new += count - known;
            }
            after.0.insert(name.clone(), count);
        }
        let nameless = after.of_name("").saturating_sub(joined.present.of_name(""));
        after.take("", nameless.min(new));
        after
    }

    /// Returns the guards without one client of this name.
    #[must_use]
    pub(crate) fn after_leave(&self, name: &str) -> Self {
        let mut after = self.clone();
        after.take(name, 1);
        after
    }

    pub(crate) fn of_event(event: &ClientGuard) -> Self {
        if !event.by_client {
            return Self::default();
        }
        if event.apps.is_empty() {
            return Self::of([""]);
        }
        let apps = event.apps.iter();
        Self(apps.map(|app| (app.name.clone(), app.count)).collect())
    }

    pub(crate) fn event(&self) -> ClientGuard {
        let is_nameless = *self == Self::of([""]);
        ClientGuard {
            by_client: !self.is_empty(),
            apps: if is_nameless { Vec::new() } else { self.apps() },
        }
    }

    /// Lists the apps for the wire.
    pub fn apps(&self) -> Vec<GuardingApp> {
        let apps = self.0.iter().map(|(name, &count)| GuardingApp {
            name: name.clone(),
            count,
        });
        apps.collect()
    }

    /// Names the apps for people.
    pub fn shown(&self) -> String {
        let apps = self.0.iter().map(|(name, count)| {
            let app = if name.is_empty() {
                "an app".to_owned()
            } else {
                format!("the app `{name}`")
            };
            match count {
                0 | 1 => app,
                many => format!("{app} ({many} of its clients)"),
            }
        });
        let apps: Vec<String> = apps.collect();
        if apps.is_empty() {
            return "an app".to_owned();
        }
        apps.join(" and ")
    }

    fn of_name(&self, name: &str) -> u32 {
        self.0.get(name).copied().unwrap_or_default()
    }

    fn take(&mut self, name: &str, fewer: u32) {
        let left = self.of_name(name).saturating_sub(fewer);
        if left == 0 {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joins(guards: &[&str], present: &[&str], returns: Option<&str>) -> ClientGuards {
        let guards = ClientGuards::of(guards.iter().copied());
        guards.after_join(&GuardJoined {
            present: ClientGuards::of(present.iter().copied()),
            returns: returns.map(str::to_owned),
        })
    }

    #[test]
    fn who_is_waited_for() {
        let names = |text: &'static str| -> Vec<&'static str> {
            let names = text.split_whitespace();
            names.map(|name| name.trim_matches('-')).collect()
        };
        // A dash is a client without a name.
        let table = [
            ("", "a", None, "a"),
            ("", "- -", None, "- -"),
            ("a", "b", None, "a b"),
            ("a", "a a", None, "a a"),
            // The broken connection has not been noticed yet.
            ("a", "a a", Some("a"), "a"),
            ("- -", "-", None, "- -"),
            // Whoever has no name may have become somebody with one.
            ("-", "a", None, "a"),
            ("- a", "a", None, "- a"),
            ("- - a", "a b", None, "- a b"),
        ];
        for (guards, present, returns, wanted) in table {
            let after = joins(&names(guards), &names(present), returns);
            let wanted = ClientGuards::of(names(wanted));
            assert_eq!(after, wanted, "{guards:?} and {present:?}");
        }
    }

    #[test]
    fn only_guards_of_apps_that_are_gone_are_lifted_unless_all_are() {
        use LiftScope::{All, Gone};
        let of = |names: &'static str| {
            let names = names.split_whitespace();
            ClientGuards::of(names.map(|name| name.trim_matches('-')))
        };
        // A dash is a client without a name.
        let table = [
            ("a", Gone, "", "a", ""),
            ("a", Gone, "a", "", "a"),
            ("a b", Gone, "b", "a", "b"),
            ("- - a", Gone, "- c", "- a", "-"),
            ("a b", All, "b", "a b", ""),
            ("", All, "b", "", ""),
        ];
        for (guards, scope, present, lifted, stay) in table {
            let wanted = LiftedGuards {
                lifted: of(lifted),
                stay: of(stay),
            };
            let found = of(guards).lifted(scope, &of(present));
            assert_eq!(found, wanted, "{guards:?} while {present:?} are there");
        }
    }

    #[test]
    fn guards_are_the_same_after_their_event() {
        for names in [&[][..], &[""], &["", ""], &["a"], &["", "a", "a"]] {
            let guards = ClientGuards::of(names.iter().copied());
            assert_eq!(ClientGuards::of_event(&guards.event()), guards);
        }
        let left = ClientGuards::of(["a", "a", "b"]).after_leave("a");
        assert_eq!(left, ClientGuards::of(["a", "b"]));
        assert_eq!(
            left.after_leave("a").after_leave("a"),
            ClientGuards::of(["b"])
        );
    }

    #[test]
    fn the_missing_are_named() {
        let guards = ClientGuards::of(["", "a", "a"]);
        let missing = guards.missing_from(&ClientGuards::of(["a", "c"]));
        assert_eq!(missing.shown(), "an app and the app `a`");
        let missing = guards.missing_from(&ClientGuards::of([""]));
        assert_eq!(missing.shown(), "the app `a` (2 of its clients)");
    }
}

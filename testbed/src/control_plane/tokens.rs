//! The tokens by which the harness' own control plane authenticates its users.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::users::User;

/// A token for each user.
pub(super) struct Tokens(Vec<(User, String)>);

impl Tokens {
    /// Generates random tokens: other users of the machine can connect to its loopback addresses
    /// too.
    pub(super) fn generate() -> Result<Self> {
        let token = |user| {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).context("no random numbers")?;
            Ok((user, hex::encode(bytes)))
        };
        User::ALL.into_iter().map(token).collect::<Result<_>>().map(Self)
    }

    /// Returns the content of the API server's token file.
    pub(super) fn file(&self) -> String {
        self.0.iter().fold(String::new(), |mut file, (user, token)| {
            let name = user.name();
            // Writing to a string can't fail.
            let _ = writeln!(file, "{token},{name},{name},\"{}\"", user.group());
            file
        })
    }

    /// Returns a kubeconfig with a context for each user, named like the user, and with `current`
    /// as its current context.
    pub(super) fn kubeconfig(&self, server: &str, authority: &str, current: User) -> Value {
        let named = |user: User, key: &str, value: Value| json!({"name": user.name(), key: value});
        let users = self.0.iter().map(|(user, token)| named(*user, "user", json!({"token": token})));
        let contexts = User::ALL.map(|user| named(user, "context", json!({"cluster": "e2e", "user": user.name()})));
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": current.name(),
            "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": authority}}],
            "users": users.collect::<Vec<_>>(), "contexts": contexts,
        })
    }

    /// Returns a kubeconfig with only this user, for a server without TLS.
    pub(super) fn kubeconfig_of(&self, user: User, server: &str) -> Value {
        let tokens = self.0.iter().filter(|(holder, _)| *holder == user);
        let users = tokens.map(|(_, token)| json!({"name": user.name(), "user": {"token": token}}));
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": user.name(),
            "clusters": [{"name": "e2e", "cluster": {"server": server}}],
            "users": users.collect::<Vec<_>>(),
            "contexts": [{"name": user.name(), "context": {"cluster": "e2e", "user": user.name()}}],
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kube::config::Kubeconfig;

    use super::*;

    #[test]
    fn every_user_has_a_token_of_their_own() {
        let tokens = Tokens::generate().unwrap();
        let distinct: BTreeSet<&str> = tokens.0.iter().map(|(_, token)| token.as_str()).collect();
        assert_eq!(distinct.len(), User::ALL.len());
        let file = tokens.file();
        let tenant = file.lines().find(|line| line.contains(",tenant,")).unwrap();
        assert!(tenant.ends_with(",\"stowage:tenants\"") && !file.contains(",\"\""), "{file}");
    }

    #[test]
    fn the_kubeconfig_has_a_context_for_every_user() {
        let config = Tokens::generate().unwrap().kubeconfig("https://127.0.0.1:1", "ca.crt", User::Admin);
        let config: Kubeconfig = serde_json::from_value(config).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("admin"));
        let named: Vec<&str> = config.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!(named, User::ALL.map(User::name));
    }

    #[test]
    fn a_kubeconfig_of_one_user_holds_no_other_token() {
        let tokens = Tokens::generate().unwrap();
        let config = tokens.kubeconfig_of(User::Operator, "http://127.0.0.1:1").to_string();
        let told: Vec<User> =
            tokens.0.iter().filter(|(_, token)| config.contains(token)).map(|(user, _)| *user).collect();
        assert_eq!(told, [User::Operator]);
    }
}

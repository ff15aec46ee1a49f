//! What a cluster serves instead of a kind that it does not serve.

use super::discovery::Served;
use crate::model::GroupKind;

/// Kinds that are named at most.
const NAMED_MAX: usize = 3;

impl Served {
    /// Returns what is served that somebody may have meant by a kind which is not, written `policy/v1 PodDisruptionBudget`, the most
    /// likely first: other versions of it, the same kind in other groups, a kind of the group that is written in another way.
    pub fn closest(&self, wanted: &GroupKind) -> Vec<String> {
        let mut found: Vec<(u8, String)> = Vec::new();
        for (kind, served) in self.kinds.iter() {
            let is_kind = kind.kind.eq_ignore_ascii_case(&wanted.kind);
            let rank = match kind.group == wanted.group {
                true if kind.kind == wanted.kind => 0,
                true if is_kind || served.plural.eq_ignore_ascii_case(&wanted.kind) => 1,
                false if is_kind => 2,
                _ => continue,
            };
            for version in &served.versions {
                let version = match kind.group.as_str() {
                    "" => version.clone(),
                    group => format!("{group}/{version}"),
                };
                found.push((rank, format!("{version} {}", kind.kind)));
            }
        }
        found.sort();
        let best = found.first().map(|(rank, _)| *rank);
        found.retain(|(rank, _)| Some(*rank) == best);
        let texts = found.into_iter().map(|(_, text)| text);
        texts.take(NAMED_MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::model::{Scope, ServedKind};

    #[rstest]
    #[case("policy", "PodDisruptionBudget", &["policy/v1 PodDisruptionBudget"])]
    #[case("extensions", "Ingress", &["networking.k8s.io/v1 Ingress"])]
    #[case("", "configmaps", &["v1 ConfigMap"])]
    #[case("", "Configmap", &["v1 ConfigMap"])]
    #[case("example.com", "Cart", &[])]
    fn the_closest_is_what_was_meant(
        #[case] group: &str,
        #[case] kind: &str,
        #[case] expected: &[&str],
    ) {
        let served = |group: &str, kind: &str, plural: &str| {
            let served = ServedKind {
                scope: Scope::Namespaced,
                plural: plural.to_owned(),
                versions: vec!["v1".to_owned()],
            };
            (GroupKind::new(group, kind), served)
        };
        let kinds = [
            served("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
            served("networking.k8s.io", "Ingress", "ingresses"),
            served("", "ConfigMap", "configmaps"),
        ];
        let served = Served {
            kinds: Arc::new(kinds.into()),
            ..Served::default()
        };
        assert_eq!(served.closest(&GroupKind::new(group, kind)), expected);
    }
}

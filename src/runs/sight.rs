//! From where a guard is asked: now, right before the work, or ahead, before the deploy has changed anything.

use std::collections::BTreeSet;

use super::effects::ResourceKind;
use super::rights::is_of_kubernetes;
use crate::expression::Expression;

/// What of the cluster is not yet as a migration will find it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// Lookups whose answers are not final.
    pub open: Open,
    /// Whether programs that this deploy brings may install kinds by then.
    pub is_late: bool,
    /// Kinds that this deploy installs by then: `apiVersion` and `kind`.
    pub installs: BTreeSet<(String, String)>,
    /// Whether only the guard is asked, and not whether the work can be done: who asks is not who would do it.
    pub guard_alone: bool,
}

/// Lookups whose answers are not final.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Open {
    /// None: what is seen now is what counts.
    #[default]
    None,
    /// These.
    Some(BTreeSet<String>),
    /// All of them.
    All,
}

impl Open {
    /// Returns whether what is seen now is what counts.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Returns whether what an expression comes to now is not final.
    pub fn concerns(&self, text: &str) -> bool {
        !self.is_none()
            && Expression::compile(text).is_ok_and(|expression| self.concerns_any([&expression]))
    }

    /// Returns whether what one of some expressions comes to now is not final.
    pub fn concerns_any<'a>(&self, expressions: impl IntoIterator<Item = &'a Expression>) -> bool {
        let paths: Vec<_> = expressions
            .into_iter()
            .flat_map(Expression::paths)
            .collect();
        let mut named = paths
            .iter()
            .filter(|path| path.first().is_some_and(|root| root == "objects"))
            .map(|path| path.get(1));
        named.any(|lookup| match (self, lookup) {
            (Self::None, _) => false,
            // One that is picked by a computed name may be any.
            (Self::All, _) | (Self::Some(_), None) => true,
            (Self::Some(open), Some(lookup)) => open.contains(lookup),
        })
    }
}

impl Sight {
    /// Returns whether a kind that is not served may be by then; `closest` is what is served instead.
    pub fn may_install(&self, kind: &ResourceKind, closest: &[String]) -> bool {
        let named = (kind.api_version.clone(), kind.kind.clone());
        let group = kind.api_version.rsplit_once('/').map_or("", |it| it.0);
        self.installs.contains(&named)
            || (self.is_late && closest.is_empty() && !is_of_kubernetes(group))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Open::None, "objects.a != null", false)]
    #[case(Open::Some(["a".to_owned()].into()), "objects.a != null", true)]
    #[case(Open::Some(["a".to_owned()].into()), "objects.b != null", false)]
    #[case(Open::Some(["a".to_owned()].into()), "objects[params.which] != null", true)]
    #[case(Open::All, "objects.b != null", true)]
    #[case(Open::All, "params.size == '1'", false)]
    fn an_expression_is_open_by_the_lookups_that_it_names(
        #[case] open: Open,
        #[case] text: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(open.concerns(text), expected);
    }

    #[test]
    fn a_late_step_may_write_what_programs_install_but_nothing_that_kubernetes_has_dropped() {
        let kind = |api_version: &str, kind: &str| ResourceKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
        let mut sight = Sight {
            is_late: true,
            ..Sight::default()
        };
        assert!(sight.may_install(&kind("example.com/v1", "Cart"), &[]));
        assert!(!sight.may_install(&kind("policy/v1beta1", "PodSecurityPolicy"), &[]));
        let other = ["example.com/v2 Cart".to_owned()];
        assert!(!sight.may_install(&kind("example.com/v1", "Cart"), &other));
        sight.is_late = false;
        assert!(!sight.may_install(&kind("example.com/v1", "Cart"), &[]));
        sight.installs = [("example.com/v1".to_owned(), "Cart".to_owned())].into();
        assert!(sight.may_install(&kind("example.com/v1", "Cart"), &[]));
    }
}

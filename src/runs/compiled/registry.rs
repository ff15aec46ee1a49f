//! The list of what is compiled in, and the way from a name to its type.

use serde_json::Value;

use super::hand_over::HandOver;
use super::{CompiledMigration, NeededRight};
use crate::runs::effects::Effects;
use crate::runs::steps::{StepContext, StepResult};

macro_rules! registry {
    ($($migration:ty),+ $(,)?) => {
        /// Returns the names that definitions may use.
        pub fn names() -> &'static [&'static str] {
            &[$(<$migration>::NAME),+]
        }

        /// Returns the rights that one of them needs.
        ///
        /// # Errors
        ///
        /// When there is none of this name, or `with` is wrong, in words.
        pub fn access(name: &str, with: &Value) -> Result<Vec<NeededRight>, String> {
            match name {
                $(<$migration>::NAME => <$migration>::access(with),)+
                _ => Err(unknown(name)),
            }
        }

        /// Attempts one of them once.
        pub async fn attempt<E: Effects>(
            name: &str,
            context: &StepContext<'_, E>,
            with: &Value,
        ) -> StepResult {
            match name {
                $(<$migration>::NAME => <$migration>::attempt(context, with).await,)+
                _ => StepResult::Fail { message: unknown(name) },
            }
        }
    };
}

fn unknown(name: &str) -> String {
    format!(
        "no migration `{name}` is compiled into this version; there are {}",
        names().join(", ")
    )
}

registry![HandOver];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_validation_knows_is_what_is_registered() {
        assert_eq!(names(), crate::model::migration::COMPILED);
    }

    #[test]
    fn a_migration_says_what_it_needs_and_what_is_wrong_with_what_it_is_given() {
        let side =
            serde_json::json!({"apiVersion": "a.example.com/v1", "kind": "A", "id": "/spec/id"});
        let needed = access("hand-over", &serde_json::json!({"from": side, "to": side})).unwrap();
        assert_eq!(needed[0].verbs, ["list", "patch", "delete"]);
        assert_eq!(needed[1].verbs, ["list"]);
        assert!(access("hand-over", &Value::Null).is_err());
        assert!(
            access("guess", &Value::Null)
                .unwrap_err()
                .contains("hand-over")
        );
    }
}

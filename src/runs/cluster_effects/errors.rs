//! What an error of the cluster means for a step: above all, whether the write may have been done.

use crate::cluster::ClusterError;
use crate::runs::effects::EffectError;

/// How to get a right that is missing.
const WAY_OUT: &str = "`fairway migration rbac` prints the Role that is missing";

/// Says what an error means for a request that reads: nothing was done in any case.
pub(super) fn of_read(error: ClusterError) -> EffectError {
    match error {
        ClusterError::Unavailable { .. }
        | ClusterError::Timeout { .. }
        | ClusterError::AnswerInvalid { .. } => transient(&error),
        ClusterError::Other { status, .. } if status >= 500 => transient(&error),
        error => certain(&error),
    }
}

/// Says what an error means for a request that writes.
pub(super) fn of_write(error: ClusterError) -> EffectError {
    match error {
        error if error.is_without_effect() => transient(&error),
        ClusterError::Unavailable { .. }
        | ClusterError::Timeout { .. }
        | ClusterError::AnswerInvalid { .. }
        | ClusterError::AnswerTooLarge { .. } => EffectError::Lost(error.to_string()),
        // The server may fail after it has stored the object.
        ClusterError::Other { status, .. } if status >= 500 => EffectError::Lost(error.to_string()),
        error => certain(&error),
    }
}

/// Says what an error means for a creation: a conflict is an object that is there.
pub(super) fn of_creation(error: ClusterError) -> EffectError {
    match of_write(error) {
        EffectError::Conflict(message) if message.contains("already exists") => {
            EffectError::Exists(message)
        }
        error => error,
    }
}

/// What is certain: the server said no, or was not asked.
fn certain(error: &ClusterError) -> EffectError {
    let message = error.to_string();
    match error {
        ClusterError::NotFound { .. } => EffectError::NotFound(message),
        ClusterError::KindUnknown { .. } => EffectError::KindUnknown(message),
        ClusterError::Forbidden { .. } => EffectError::Forbidden(format!("{message}; {WAY_OUT}")),
        // For a list: the token that asks for the next page is too old.
        ClusterError::Conflict { .. } | ClusterError::Expired { .. } => {
            EffectError::Conflict(message)
        }
        ClusterError::ClaimLost { .. } => EffectError::ClaimLost(message),
        // Credentials are renewed.
        ClusterError::Unauthorized { .. }
        | ClusterError::GroupUnavailable { .. }
        | ClusterError::TooManyRequests { .. } => transient(error),
        _ => EffectError::Refused(message),
    }
}

fn transient(error: &ClusterError) -> EffectError {
    EffectError::Transient {
        message: error.to_string(),
        retry_after: error.retry_after(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn unavailable(reached: bool) -> ClusterError {
        ClusterError::Unavailable {
            request: "patch Deployment a".to_owned(),
            message: "connection refused".to_owned(),
            retry_after: None,
            reached,
        }
    }

    #[test]
    fn only_a_write_can_be_lost_and_only_where_it_was_sent() {
        let timeout = || ClusterError::Timeout {
            request: "patch Deployment a".to_owned(),
            after: Duration::from_secs(15),
        };
        assert!(matches!(of_write(timeout()), EffectError::Lost(_)));
        assert!(matches!(of_read(timeout()), EffectError::Transient { .. }));
        assert!(matches!(of_write(unavailable(true)), EffectError::Lost(_)));
        assert!(matches!(
            of_write(unavailable(false)),
            EffectError::Transient { .. }
        ));
        assert!(matches!(
            of_read(unavailable(true)),
            EffectError::Transient { .. }
        ));
        let busy = ClusterError::TooManyRequests {
            request: "patch Deployment a".to_owned(),
            retry_after: Some(Duration::from_secs(3)),
        };
        let EffectError::Transient { retry_after, .. } = of_write(busy) else {
            panic!("a server that turns a request away has not done it");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_missing_right_is_told_with_the_way_out() {
        let forbidden = ClusterError::Forbidden {
            request: "patch Deployment default/a".to_owned(),
            message: "deployments.apps \"a\" is forbidden".to_owned(),
        };
        let EffectError::Forbidden(message) = of_write(forbidden) else {
            panic!("it is forbidden");
        };
        assert!(message.contains("deployments.apps") && message.contains("fairway migration rbac"));
    }

    #[test]
    fn only_a_creation_finds_that_something_exists() {
        let conflict = |message: &str| ClusterError::Conflict {
            request: "create Job a".to_owned(),
            message: message.to_owned(),
        };
        let exists = of_creation(conflict("jobs.batch \"a\" already exists"));
        assert!(matches!(exists, EffectError::Exists(_)));
        assert!(matches!(
            of_creation(conflict("the quota was changed")),
            EffectError::Conflict(_)
        ));
    }
}

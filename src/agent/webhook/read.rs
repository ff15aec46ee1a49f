//! What a source and its Secret say about the webhook.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::model::api::{GitReference, ReleaseSourceSpec};
use crate::server::webhook::{Followed, FollowedReference, KeyError, Keys, RepositoryName};

/// Reads the tokens of a webhook from its Secret.
///
/// # Errors
///
/// When a token is missing or unusable.
pub fn keys_of(secret: &Secret) -> Result<Keys, KeyError> {
    let value = |key: &str| {
        let ByteString(bytes) = secret.data.as_ref()?.get(key)?;
        Some(bytes.as_slice())
    };
    // Emptied is as good as taken out.
    let previous = value("tokenPrevious").filter(|previous| !previous.is_empty());
    Keys::new(value("token"), previous)
}

/// Returns what deliveries are compared with.
pub(super) fn followed(spec: &ReleaseSourceSpec) -> Followed {
    let GitReference {
        branch,
        tag,
        semver,
        commit,
    } = &spec.reference;
    let reference = match (branch, tag, semver, commit) {
        (_, _, _, Some(_)) => FollowedReference::Commit,
        (_, _, Some(_), None) => FollowedReference::AnyTag,
        (_, Some(tag), None, None) => FollowedReference::Tag(tag.clone()),
        (Some(branch), None, None, None) => FollowedReference::Branch(branch.clone()),
        (None, None, None, None) => FollowedReference::Branch("main".to_owned()),
    };
    Followed {
        repository: RepositoryName::of(&spec.url),
        reference,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!({"branch": "next"}), FollowedReference::Branch("next".to_owned()))]
    #[case(json!({"tag": "v1"}), FollowedReference::Tag("v1".to_owned()))]
    #[case(json!({"semver": "1.x"}), FollowedReference::AnyTag)]
    #[case(json!({"commit": "0123456789012345678901234567890123456789"}), FollowedReference::Commit)]
    #[case(json!({}), FollowedReference::Branch("main".to_owned()))]
    fn what_is_followed_is_what_is_fetched(
        #[case] given: Value,
        #[case] reference: FollowedReference,
    ) {
        let spec = json!({"url": "https://git.example.com/m.git", "ref": given});
        let followed = followed(&serde_json::from_value(spec).unwrap());
        assert_eq!(followed.reference, reference);
        assert!(followed.repository.is_some());
        let local = json!({"url": "/srv/modules", "ref": given});
        let followed = super::followed(&serde_json::from_value(local).unwrap());
        assert_eq!(followed.repository, None, "nobody announces a directory");
    }

    #[test]
    fn an_emptied_previous_token_is_none() {
        let secret = |previous: &[u8]| Secret {
            data: Some(
                [
                    ("token".to_owned(), ByteString(b"0123456789abcdef".to_vec())),
                    ("tokenPrevious".to_owned(), ByteString(previous.to_vec())),
                ]
                .into(),
            ),
            ..Secret::default()
        };
        let paths = |secret: &Secret| keys_of(secret).unwrap().paths("n", "s").len();
        assert_eq!(paths(&secret(b"")), 1);
        assert_eq!(paths(&secret(b"fedcba9876543210")), 2);
        assert!(keys_of(&secret(b"short")).is_err());
        assert!(keys_of(&Secret::default()).is_err());
    }
}

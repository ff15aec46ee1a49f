//! What was committed, in its stored form.

use crate::model::Digest;
use crate::model::api::{CommittedRecord, DeployRecord, OnceRunRecord, TargetStatus};
use crate::model::migration::DeployAction;
use crate::plan::hooks::{BegunDeploy, Committed, CommittedComponent, CommittedGlobal, Once};

/// Reads what a target has committed. A name that is none is passed over: what it is about is deployed anew.
pub(super) fn committed_of(status: &TargetStatus) -> Committed {
    let digest = |text: &Option<String>| text.clone().map(Digest::from_text);
    let components = status.components.iter().filter_map(|record| {
        let begun = digest(&record.begun).map(|digest| BegunDeploy {
            digest,
            action: record.begun_as.unwrap_or(DeployAction::Upgrade),
        });
        let component = CommittedComponent {
            digest: digest(&record.digest),
            version: record.version.clone(),
            begun,
        };
        Some((record.name.parse().ok()?, component))
    });
    let once_runs = status.once_runs.iter();
    Committed {
        once: Once {
            begun: once_runs
                .map(|one| (one.run.clone(), one.uid.clone()))
                .collect(),
            doubts: status.once_doubts.iter().cloned().collect(),
        },
        components: components.collect(),
        global: status
            .deploy
            .as_ref()
            .map_or_else(CommittedGlobal::default, |deploy| CommittedGlobal {
                pre: digest(&deploy.pre),
                post: digest(&deploy.post),
                action: deploy.action,
                components: deploy.components.clone(),
            }),
        undo_on_remove: status
            .undo_on_remove
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect(),
    }
}

/// Puts what is committed into a status.
pub(super) fn committed_to(committed: &Committed, status: &mut TargetStatus) {
    let text = |digest: &Digest| digest.to_string();
    let components = committed.components.iter();
    status.components = components
        .map(|(name, component)| CommittedRecord {
            name: name.to_string(),
            digest: component.digest.as_ref().map(text),
            version: component.version.clone(),
            begun: component.begun.as_ref().map(|begun| text(&begun.digest)),
            begun_as: component.begun.as_ref().map(|begun| begun.action),
        })
        .collect();
    let names = committed.undo_on_remove.iter();
    status.undo_on_remove = names.map(ToString::to_string).collect();
    let global = &committed.global;
    status.deploy = (*global != CommittedGlobal::default()).then(|| DeployRecord {
        pre: global.pre.as_ref().map(text),
        post: global.post.as_ref().map(text),
        action: global.action,
        components: global.components.clone(),
    });
    let begun = committed.once.begun.iter();
    status.once_runs = begun
        .map(|(run, uid)| OnceRunRecord {
            run: run.clone(),
            uid: uid.clone(),
        })
        .collect();
    status.once_doubts = committed.once.doubts.iter().cloned().collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::migration::DeployComponent;

    #[test]
    fn what_is_committed_survives_being_stored() {
        let digest = |text: &str| Some(Digest::from_text(text));
        let component = CommittedComponent {
            digest: digest("v1:one"),
            version: Some("1.2.3".to_owned()),
            begun: Some(BegunDeploy {
                digest: Digest::from_text("v1:two"),
                action: DeployAction::Install,
            }),
        };
        let committed = Committed {
            once: Once {
                begun: [("modules.home.bill-1".to_owned(), "uid".to_owned())].into(),
                doubts: ["mail".to_owned()].into(),
            },
            components: [("components/logging".parse().unwrap(), component)].into(),
            global: CommittedGlobal {
                pre: digest("v1:three"),
                post: None,
                action: Some(DeployAction::Upgrade),
                components: vec![DeployComponent {
                    name: "components/logging".to_owned(),
                    from: None,
                    to: Some("1.2.3".to_owned()),
                    action: DeployAction::Install,
                }],
            },
            undo_on_remove: ["components/logging".parse().unwrap()].into(),
        };
        let mut status = TargetStatus::default();
        committed_to(&committed, &mut status);
        assert_eq!(committed_of(&status), committed);
    }

    #[test]
    fn nothing_is_stored_of_nothing() {
        let mut status = TargetStatus::default();
        committed_to(&Committed::default(), &mut status);
        assert_eq!(status, TargetStatus::default());
        assert_eq!(committed_of(&status), Committed::default());
    }
}

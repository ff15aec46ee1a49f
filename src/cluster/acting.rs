//! As whom something is done: the agent itself, or an account that it acts for.
//!
//! What a repository says is read and done through an [`Acting`], which can only be made by saying as whom. The agent's own records go
//! through [`Cluster`]. An account is named by the header `Impersonate-User` alone: the API server adds the groups of a ServiceAccount
//! by itself, and asks for the right to `impersonate` that one account and nothing else. The connections underneath are shared, so
//! that an account costs none of its own.
//!
//! What cannot be used is never replaced by the agent's own rights: a connection that acts as nobody refuses everything.

use http::{HeaderValue, Request};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::client::Body;

use super::connection::Cluster;
use super::error::ClusterError;
use crate::model::{Account, NameError};

/// A connection for what a repository says. Cloning is cheap.
#[derive(Clone)]
pub struct Acting {
    /// Sends what is done as whom it is done.
    cluster: Cluster,
    /// The process itself, which looks whether the account is there.
    own: Cluster,
    who: Who,
}

#[derive(Clone)]
enum Who {
    Itself,
    Account(Account),
    Nobody(NameError),
}

impl Cluster {
    /// Returns the connection on which what a repository says is done with the rights of this connection itself.
    pub fn acting_as_itself(&self) -> Acting {
        Acting {
            cluster: self.clone(),
            own: self.clone(),
            who: Who::Itself,
        }
    }

    /// Returns the connection on which what a repository says is done with the rights of an account. Nothing is asked; see
    /// [`Acting::confirm`].
    pub fn acting_as(&self, account: Account) -> Acting {
        let client = self.raw().clone();
        let namespace = client.default_namespace().to_owned();
        let user = HeaderValue::try_from(account.user()).expect("names of accounts are ASCII");
        let service = tower::service_fn(move |mut request: Request<Body>| {
            request.headers_mut().insert(IMPERSONATE_USER, user.clone());
            let client = client.clone();
            async move { client.send(request).await }
        });
        Acting {
            cluster: self.through(kube::Client::new(service, namespace)),
            own: self.clone(),
            who: Who::Account(account),
        }
    }

    /// Returns a connection on which nothing is done, since nobody can be called as a source names its account.
    pub fn acting_as_nobody(&self, reason: NameError) -> Acting {
        let message = reason.to_string();
        let service = tower::service_fn(move |_: Request<Body>| {
            let message = message.clone();
            async move { Err::<http::Response<Body>, _>(tower::BoxError::from(message)) }
        });
        let namespace = self.raw().default_namespace().to_owned();
        Acting {
            cluster: self.through(kube::Client::new(service, namespace)),
            own: self.clone(),
            who: Who::Nobody(reason),
        }
    }
}

/// The header by which the API server takes a request as somebody else's.
const IMPERSONATE_USER: &str = "impersonate-user";

// === impl Acting ===

impl Acting {
    /// Returns the connection for what is done. The agent's own records do not go through it.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the same for another connection to the cluster: one that was put under a claim.
    #[must_use]
    pub fn on(&self, cluster: &Cluster) -> Self {
        match &self.who {
            Who::Itself => cluster.acting_as_itself(),
            Who::Account(account) => cluster.acting_as(account.clone()),
            Who::Nobody(reason) => cluster.acting_as_nobody(reason.clone()),
        }
    }

    /// Returns the account, where it is not the process itself.
    pub fn account(&self) -> Option<&Account> {
        match &self.who {
            Who::Account(account) => Some(account),
            Who::Itself | Who::Nobody(_) => None,
        }
    }

    /// Returns whether nothing can be done, since the account cannot be one.
    pub fn is_nobody(&self) -> bool {
        matches!(self.who, Who::Nobody(_))
    }

    /// Makes sure that the account is there, and that the API server takes what is sent for its. Asks nothing where the process acts
    /// as itself.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Account`] with the way out, or why that could not be found out.
    pub async fn confirm(&self) -> Result<(), ClusterError> {
        let account = match &self.who {
            Who::Itself => return Ok(()),
            Who::Account(account) => account,
            Who::Nobody(reason) => {
                return Err(ClusterError::Account {
                    account: format!("`{}`", reason.name),
                    message: format!("{reason}; change spec.serviceAccountName"),
                });
            }
        };
        let (namespace, name) = (account.namespace(), account.name());
        let refused = |message: String| ClusterError::Account {
            account: account.to_string(),
            message,
        };
        match self.own.get::<ServiceAccount>(namespace, name).await {
            Ok(Some(_)) => {}
            Ok(None) => {
                return Err(refused(format!(
                    "there is no such ServiceAccount: kubectl -n {namespace} create serviceaccount {name}"
                )));
            }
            Err(ClusterError::Forbidden { message, .. }) => {
                return Err(refused(self.not_allowed(account, &message).await));
            }
            Err(error) => return Err(error),
        }
        match self.cluster.user().await {
            Ok(user) if user == account.user() => Ok(()),
            Ok(user) => Err(refused(format!(
                "requests as {} arrive as those of {user}; something between here and the API server drops the header \
                 Impersonate-User",
                account.user()
            ))),
            Err(ClusterError::Forbidden { message, .. }) => {
                Err(refused(self.not_allowed(account, &message).await))
            }
            Err(error) => Err(error),
        }
    }

    /// Words the right that is missing, with the lines that grant it to whoever this process is.
    async fn not_allowed(&self, account: &Account, message: &str) -> String {
        let (namespace, name) = (account.namespace(), account.name());
        let user = self.own.user().await.unwrap_or_default();
        let subject = match user.strip_prefix("system:serviceaccount:") {
            Some(own) => format!("--serviceaccount={own}"),
            None if user.is_empty() => format!("--serviceaccount={namespace}:fairway"),
            None => format!("--user={user}"),
        };
        format!(
            "{message}; to allow it: kubectl -n {namespace} create role fairway-impersonate-{name} --verb=get,impersonate \
             --resource=serviceaccounts --resource-name={name} && kubectl -n {namespace} create rolebinding \
             fairway-impersonate-{name} --role=fairway-impersonate-{name} {subject}"
        )
    }
}

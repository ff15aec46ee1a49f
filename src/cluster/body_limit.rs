//! A layer that ends an answer which grows beyond its limit, so that no server can fill our memory.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use http_body_util::Limited;
use kube::client::Body;
use tower::{BoxError, Service};

use crate::model::limits;

/// Wraps the body of each answer in its limit.
#[derive(Debug, Clone)]
pub(super) struct BodyLimit<S> {
    inner: S,
}

impl<S> BodyLimit<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, B> Service<Request<Body>> for BodyLimit<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Limited<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let limit = size_limit(request.uri());
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| Limited::new(body, limit))) })
    }
}

/// A watch is one answer that goes on; it has a limit of its own.
fn size_limit(uri: &Uri) -> usize {
    let is_watch = uri
        .query()
        .is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
    if is_watch {
        limits::WATCH_SIZE_MAX
    } else {
        limits::RESPONSE_SIZE_MAX
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/api/v1/configmaps?limit=500", limits::RESPONSE_SIZE_MAX)]
    #[case("/api/v1/configmaps?watch=true&limit=500", limits::WATCH_SIZE_MAX)]
    #[case(
        "/api/v1/configmaps?labelSelector=watch%3Dtrue",
        limits::RESPONSE_SIZE_MAX
    )]
    fn only_a_watch_may_be_long(#[case] uri: &str, #[case] limit: usize) {
        assert_eq!(size_limit(&uri.parse().unwrap()), limit);
    }
}

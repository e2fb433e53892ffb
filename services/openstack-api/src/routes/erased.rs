//! A handler without its type, so that axum's services are compiled once and not once for each route.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;

type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler of a route. Its type does not depend on the handler's arguments.
pub(super) struct ErasedHandler<S>(Arc<dyn Fn(Request, S) -> Answer + Send + Sync>);

impl<S: 'static> ErasedHandler<S> {
    pub(super) fn new<H: Handler<T, S>, T: 'static>(handler: H) -> Self {
        ErasedHandler(Arc::new(move |request, state| {
            Box::pin(handler.clone().call(request, state))
        }))
    }
}

impl<S> Clone for ErasedHandler<S> {
    fn clone(&self) -> Self {
        ErasedHandler(self.0.clone())
    }
}

impl<S: Send + Sync + 'static> Handler<(), S> for ErasedHandler<S> {
    type Future = Answer;

    fn call(self, request: Request, state: S) -> Answer {
        (self.0)(request, state)
    }
}

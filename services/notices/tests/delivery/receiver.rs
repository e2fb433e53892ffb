//! A small HTTP server that records requests and answers as a test tells it to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A recorded POST request.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

#[derive(Clone, Default)]
pub(crate) struct Receiver {
    posts: Arc<Mutex<Vec<Post>>>,
    answers: Arc<Mutex<VecDeque<StatusCode>>>,
    refuses: Arc<Mutex<Option<String>>>,
    /// Whether requests are left without an answer.
    holds: Arc<watch::Sender<bool>>,
}

impl Receiver {
    /// Starts the server; returns it and its URL.
    pub(crate) async fn start() -> (Receiver, String) {
        let receiver = Receiver::default();
        let router = Router::new().route("/hook", post(take)).with_state(receiver.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
        tokio::spawn(async { axum::serve(listener, router).await });
        (receiver, url)
    }

    /// Sets the next answers; later requests are answered with 204.
    pub(crate) fn answers(&self, statuses: &[u16]) {
        let statuses = statuses.iter().map(|status| StatusCode::from_u16(*status).unwrap());
        self.answers.lock().unwrap().extend(statuses);
    }

    /// Answers every request whose body contains `word` with 400.
    pub(crate) fn refuses(&self, word: &str) {
        *self.refuses.lock().unwrap() = Some(word.to_owned());
    }

    /// Answers nothing until [`Receiver::go_on`] is called.
    pub(crate) fn hold(&self) {
        self.holds.send_replace(true);
    }

    pub(crate) fn go_on(&self) {
        self.holds.send_replace(false);
    }

    pub(crate) fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap().clone()
    }
}

async fn take(State(receiver): State<Receiver>, headers: HeaderMap, body: String) -> Response {
    let is_refused = receiver.refuses.lock().unwrap().as_ref().is_some_and(|it| body.contains(it));
    receiver.posts.lock().unwrap().push(Post { headers, body });
    let _ = receiver.holds.subscribe().wait_for(|holds| !holds).await;
    if is_refused {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let status = receiver.answers.lock().unwrap().pop_front().unwrap_or(StatusCode::NO_CONTENT);
    let elsewhere = [(header::LOCATION, "/hook")];
    (status, elsewhere, "x".repeat(100_000)).into_response()
}

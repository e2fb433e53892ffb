use http::Request;

use super::*;

fn limiter(text: &str) -> Limiter {
    Limiter::new(toml::from_str(text).unwrap())
}

fn named(name: &str) -> Caller {
    Caller::named(name.to_owned())
}

/// Sends requests until one is refused; returns how many were accepted, and the refusal.
fn taken(limiter: &Limiter, caller: &Caller, method: &Method) -> (usize, ApiError) {
    for number in 0..100_000 {
        if let Err(why) = limiter.seat(caller, method) {
            return (number, why);
        }
    }
    panic!("there is no limit");
}

#[test]
fn each_authenticated_caller_has_a_rate_of_its_own() {
    let limiter = limiter("reads_per_second = 5\nwrites_per_second = 1");
    let (reads, why) = taken(&limiter, &named("ann"), &Method::GET);
    assert!((20..25).contains(&reads), "{reads}");
    assert_eq!(why.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(why.retry_after, Some(1));
    assert_eq!(taken(&limiter, &named("ann"), &Method::PUT).0, 4, "writes are counted apart");
    assert_eq!(taken(&limiter, &named("bob"), &Method::PUT).0, 4, "and others' too");
}

#[test]
fn without_authentication_rates_are_limited_only_if_configured() {
    let free = limiter("");
    for _ in 0..20_000 {
        free.seat(&Caller::anyone(), &Method::PUT).unwrap();
    }
    let (writes, _) = taken(&free, &named("ann"), &Method::PUT);
    assert!((2000..2500).contains(&writes), "{writes}");
    let reported = limiter("writes_per_second = 2");
    assert_eq!(taken(&reported, &Caller::anyone(), &Method::PUT).0, 8);
}

#[test]
fn seats_are_free_again_after_the_request() {
    let limiter = limiter("requests_at_once = 3\nrequests_at_once_each = 2");
    let seat = |name: &str| limiter.seat(&named(name), &Method::GET);
    let anns = [seat("ann").unwrap(), seat("ann").unwrap()];
    let why = seat("ann").unwrap_err();
    assert_eq!((why.status, why.retry_after), (StatusCode::SERVICE_UNAVAILABLE, Some(1)));
    assert!(why.message.starts_with("you have 2 requests in progress"), "{why}");
    let bobs = seat("bob").unwrap();
    let why = seat("bob").unwrap_err();
    assert_eq!(why.message, "too many requests are in progress");
    drop((anns, bobs));
    seat("ann").unwrap();
}

#[test]
fn the_memory_for_callers_is_bounded() {
    let limiter = limiter("");
    for number in 0..50_000 {
        limiter.seat(&named(&number.to_string()), &Method::GET).unwrap();
    }
    assert!(limiter.sent.lock().unwrap().len() <= 2 * CALLERS);
}

#[test]
fn a_url_or_headers_that_are_too_long_are_refused() {
    let limiter = limiter("url = 10\nheaders = 20");
    let check = |uri: &str, value: &str| {
        let headers = [("a", value)].into_iter().filter(|(_, value)| !value.is_empty());
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let checked = limiter.check_head(&uri.parse().unwrap(), &headers.collect());
        checked.map_err(|why| why.status.as_u16())
    };
    assert_eq!(check("/123456789", ""), Ok(()));
    assert_eq!(check("/1234567890", ""), Err(414));
    assert_eq!(check("/1234?1234", ""), Ok(()));
    assert_eq!(check("/1234?12345", ""), Err(414));
    assert_eq!(check("/", "123456789012345"), Ok(()));
    assert_eq!(check("/", "1234567890123456"), Err(431));
}

#[test]
fn the_address_from_a_proxy_counts_only_if_the_proxy_is_trusted() {
    let from = |forwarded, reported: &str| {
        let request = Request::builder().header("x-forwarded-for", reported).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let proxy: SocketAddr = "10.0.0.9:1".parse().unwrap();
        parts.extensions.insert(ConnectInfo(proxy));
        parts.extensions.insert((Scheme::Http, forwarded));
        source(&parts).to_string()
    };
    assert_eq!(from(Forwarded::Ignored, "192.0.2.1"), "10.0.0.9");
    assert_eq!(from(Forwarded::Believed, "192.0.2.1"), "192.0.2.1");
    assert_eq!(from(Forwarded::Believed, "198.51.100.1, 192.0.2.1"), "192.0.2.1");
    assert_eq!(from(Forwarded::Believed, "nonsense"), "10.0.0.9");
}

/// An answer of this many bytes, after the limits of the caller were applied.
async fn answered(limiter: &Limiter, name: &str, bytes: usize) -> Response {
    let seat = limiter.seat(&named(name), &Method::GET).unwrap();
    seat.hold_answer(Response::new(Body::from("x".repeat(bytes))), true).await
}

#[tokio::test]
async fn a_caller_that_reads_no_answers_gets_no_more_of_them() {
    let limiter = limiter("bytes_in_flight_each = 100000");
    let untaken =
        [answered(&limiter, "ann", 50_000).await, answered(&limiter, "ann", 50_000).await];
    let late = answered(&limiter, "ann", 50_000).await;
    assert_eq!(late.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answered(&limiter, "bob", 50_000).await.status(), StatusCode::OK);
    assert_eq!(answered(&limiter, "ann", 100).await.status(), StatusCode::OK, "it is small");
    for answer in untaken {
        assert_eq!(answer.body().size_hint().exact(), Some(50_000));
        assert_eq!(to_bytes(answer.into_body(), usize::MAX).await.unwrap().len(), 50_000);
    }
    assert_eq!(answered(&limiter, "ann", 50_000).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_memory_of_a_parsed_body_is_counted() {
    let limiter = limiter("bytes_in_flight_each = 1000000");
    let seat = |name: &str| limiter.seat(&named(name), &Method::PUT).unwrap();
    let (first, second) = (seat("ann"), seat("ann"));
    first.hold_body(1000, 0).unwrap();
    first.hold_body(1000, 5000).unwrap();
    second.hold_body(1000, 0).unwrap_err();
    seat("bob").hold_body(1000, 0).unwrap();
    drop(first);
    second.hold_body(1000, 5000).unwrap();
    // The answer to a change is sent whatever the number of bytes in flight.
    let answer = Response::new(Body::from("x".repeat(10_000)));
    assert_eq!(second.hold_answer(answer, false).await.status(), StatusCode::OK);
}

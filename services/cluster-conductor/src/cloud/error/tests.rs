//! Errors as a table: the problem that people see, and the retry.

use openstack::{Interface, Refusal, Request, Service};

use super::*;

fn request() -> Request {
    Request { method: "GET".parse().unwrap(), path: "/servers".to_owned(), id: "r".to_owned() }
}

fn answer(message: &str) -> Box<Refusal> {
    Box::new(Refusal {
        service: Service::Compute,
        request: request(),
        status: 400.try_into().unwrap(),
        message: message.to_owned(),
    })
}

fn busy() -> CloudError {
    CloudError::Busy { answer: answer("later"), retry_after: Some(Duration::from_secs(7)) }
}

fn malformed() -> CloudError {
    let reason = "not JSON".to_owned();
    CloudError::Malformed { service: Service::Compute, request: request(), reason }
}

/// Describes an error: when it is retried, and whether it stays until people act.
fn described(error: &CloudWorkError) -> String {
    let failure = error.failure("do it");
    assert!(failure.problem.message.starts_with("cannot do it: "), "{failure:?}");
    let retry = match (failure.is_transient, failure.problem.is_final) {
        (true, false) => "soon",
        (false, false) => "later",
        (false, true) => "final",
        (true, true) => "soon and final",
    };
    format!("{} {retry}", failure.problem.reason)
}

#[test]
fn an_error_of_the_cloud_says_who_must_act_and_whether_it_is_retried() {
    let (service, reason) = (Service::Compute, "why".to_owned());
    let (host, region, text) = ("nova".to_owned(), "any".to_owned(), "a/b".to_owned());
    let interface = Interface::Public;
    let (why, request) = (reason.clone(), request());
    let rows = [
        (CloudError::Unreachable { service, request, reason: why }, "CloudUnreachable soon"),
        (CloudError::Untrusted { service, host, reason }, "CloudUntrusted final"),
        (busy(), "CloudBusy soon"),
        (CloudError::Failed(answer("")), "CloudFailed soon"),
        (CloudError::Unauthorized(answer("")), "CloudCredentialsRefused final"),
        (CloudError::Forbidden(answer("")), "CloudForbids final"),
        // The object that is used or missing may be in the middle of its creation or deletion.
        (CloudError::NotFound(answer("")), "NotThere soon"),
        (CloudError::Conflict(answer("")), "InUse soon"),
        (CloudError::QuotaExceeded(answer("")), "QuotaExceeded final"),
        (CloudError::Refused(answer("")), "CloudRefused final"),
        (CloudError::InvalidId { service, text }, "CloudRefused final"),
        (malformed(), "CloudUnreadable later"),
        (CloudError::NoEndpoint { service, region, interface }, "NoService final"),
    ];
    for (error, want) in rows {
        assert_eq!(described(&error.into()), want);
    }
}

#[test]
fn each_other_error_says_who_must_act_and_whether_it_is_retried() {
    let text = || "x".to_owned();
    let machine = || "w-0".parse::<MemberName>().unwrap();
    let key = Key::Network;
    let pod = (text(), text());
    let roleless = TenancyError::Roleless {
        user: text(),
        user_id: text(),
        project: text(),
        project_id: text(),
    };
    let rows: [(CloudWorkError, &str); 16] = [
        (TenancyError::KeystoneFailed(busy()).into(), "CloudBusy soon"),
        // A token that Keystone refuses is refused again.
        (TenancyError::KeystoneFailed(CloudError::NotFound(answer(""))).into(), "NotThere final"),
        (roleless.into(), "NoRole final"),
        (TenancyError::Bound { project: text() }.into(), "OtherProject final"),
        (TenancyError::Nowhere.into(), "OtherProject final"),
        (StoreError::Stale.into(), "StoreFailed soon"),
        (CloudWorkError::NoSuch { setting: "image_id", given: text() }, "NoSuchObject final"),
        (CloudWorkError::NameTaken { host: text() }, "NameTaken final"),
        (CloudWorkError::DependencyMissing(key.clone()), "Waiting soon"),
        (CloudWorkError::Roleless { roles: text() }, "NoRole final"),
        (MemberConfigError::Waits(key).into(), "Waiting soon"),
        (MemberConfigError::NoListener.into(), "NoNodesListener final"),
        (KeysError::Store(StoreError::Stale).into(), "KeysFailed soon"),
        (
            CloudWorkError::EvictionBlocked { machine: machine(), pod: pod.0, why: pod.1, more: 2 },
            "DrainHeld soon",
        ),
        (CloudWorkError::AddOn(text()), "AddOnRefused final"),
        (CloudWorkError::Silent, "ApiSilent soon"),
    ];
    for (error, want) in rows {
        assert_eq!(described(&error), want, "{error}");
    }
}

#[test]
fn a_busy_service_decides_when_the_call_is_repeated() {
    let wait = Some(Duration::from_secs(7));
    let rows: [(CloudWorkError, Option<Duration>); 4] = [
        (busy().into(), wait),
        (TenancyError::KeystoneFailed(busy()).into(), wait),
        (CloudError::Failed(answer("")).into(), None),
        (CloudWorkError::Silent, None),
    ];
    for (error, retry_after) in rows {
        assert_eq!(error.failure("do it").retry_after, retry_after, "{error}");
    }
}

#[test]
fn a_cloud_that_failed_at_an_object_is_not_asked_again_at_once() {
    let no_host = "No valid host was found.";
    let failed = CloudError::Failed(answer("boom"));
    let text = failed.to_string();
    let rows: [(CloudWorkError, Option<&str>); 6] = [
        (failed.into(), Some(&text)),
        (CloudError::Refused(answer(no_host)).into(), Some(no_host)),
        (CloudError::Conflict(answer(no_host)).into(), Some(no_host)),
        (CloudError::Conflict(answer("in use")).into(), None),
        (CloudError::Forbidden(answer(no_host)).into(), None),
        (CloudWorkError::AddOn(no_host.to_owned()), None),
    ];
    for (error, want) in rows {
        assert_eq!(error.failure("do it").create_failure.as_deref(), want, "{error}");
    }
}

//! Limits that an administrator sets on the page of quotas.

use crate::fixture::{Auth, ConsoleFixture};

#[tokio::test]
async fn setting_one_limit_keeps_the_others() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    for user in ["", "mia"] {
        for limit in [("vms", "5"), ("gpus", "2"), ("vcpus", "-1")] {
            let fields = [("project", "lab"), ("user", user), limit];
            let granted = browser.fill("/quotas", "/quotas", &fields).await;
            assert!(granted.leads().starts_with("/quotas?project=lab"));
        }
        let url = format!("{}/bedplate/v1/quotas?project_id=lab&user_id=mia", given.clusters);
        let (_, reported) = given.api(&url).await;
        let account = if user.is_empty() { &reported["project"] } else { &reported["user"] };
        let limits = ["vms", "gpus", "vcpus"].map(|name| account[name]["limit"].as_i64());
        assert_eq!(limits, [Some(5), Some(2), Some(-1)], "{reported}");
    }
    let nothing = [("project", "lab")];
    browser.fill("/quotas", "/quotas", &nothing).await;
    let (_, reported) =
        given.api(&format!("{}/bedplate/v1/quotas?project_id=lab", given.clusters)).await;
    assert_eq!(reported["project"]["vms"]["limit"], 5);
}

//! The audit trail of requests whose only effects are records: the first record carries the request's row.

use crate::api::{Api, ID, NEWEST};

/// Requests to the routes that declare `only_records`.
fn changes() -> [(&'static str, String, &'static str); 4] {
    let node = format!("/v1/nodes/{ID}");
    [
        ("POST", "/v1/nodes".to_owned(), r#"{"driver": "fake-hardware", "name": "other"}"#),
        ("PATCH", node.clone(), r#"[{"op": "add", "path": "/description", "value": "d"}]"#),
        ("PUT", format!("{node}/states/power"), r#"{"target": "power on"}"#),
        ("PUT", format!("{node}/states/provision"), r#"{"target": "manage"}"#),
    ]
}

#[tokio::test]
async fn a_request_has_its_row_before_the_row_with_its_result_whether_it_writes_or_not() {
    let (api, _around) = Api::on_a_file().await;
    api.enroll("").await;
    for (method, path, body) in changes() {
        let status = api.send(method, &path, NEWEST, body).await.status;
        assert!(status.is_success(), "{method} {path}: {status}");
    }
    let refused = r#"{"target": "provide"}"#;
    let path = format!("/v1/nodes/{ID}/states/provision");
    api.send("PUT", &path, NEWEST, refused).await.has(400);
    let rows = api.get("/bedplate/v1/audit?sort_dir=asc").await.has(200).json();
    let mut seen: Vec<(&str, Vec<(&str, i64)>)> = Vec::new();
    for row in rows["audit"].as_array().unwrap() {
        let request = row["request_id"].as_str().unwrap();
        let known = (row["outcome"].as_str().unwrap(), row["status"].as_i64().unwrap());
        match seen.iter_mut().find(|it| it.0 == request) {
            Some(of_request) => of_request.1.push(known),
            None => seen.push((request, vec![known])),
        }
    }
    let seen: Vec<_> = seen.into_iter().map(|of_request| of_request.1).collect();
    let both = |status| vec![("asked", 0), ("answered", status)];
    assert_eq!(seen, [201, 201, 200, 202, 202, 400].map(both));
}

#[tokio::test]
async fn a_request_that_cannot_be_recorded_changes_nothing() {
    let (api, around) = Api::on_a_file().await;
    api.enroll("").await;
    let before = api.get("/v1/nodes/detail").await.has(200).json();
    api.get("/bedplate/v1/audit").await.has(200);
    for sql in ["DROP TRIGGER audit_is_not_cut", "DELETE FROM audit WHERE number = 2"] {
        around.execute_batch(sql).unwrap();
    }
    for (method, path, body) in changes() {
        let refused = api.send(method, &path, NEWEST, body).await.has(503);
        assert!(refused.headers.contains_key("retry-after"), "{method} {path}");
        let said = refused.json().to_string();
        let words = "cannot be recorded in the audit trail, so it was not carried out";
        assert!(said.contains(words), "{method} {path}: {said}");
    }
    assert_eq!(api.get("/v1/nodes/detail").await.has(200).json(), before);
}

//! The walk of Ironic's API against `baremetald`.

use compat::Service;
use ironic::difference::{compare, counts};
use ironic::walker::{InternalErrors, Walker};
use ironic::{CONFIGURATION, PATIENCE, known, path, reasons, recording, walk};

#[test]
fn baremetald_answers_like_a_real_ironic_except_for_known_differences() {
    let walk = walk::read(&path("walk")).expect("the walk can be read");
    let recorded = recording::read(&path("recorded"), walk.keys()).expect("answers are recorded");
    let service = Service::machines_with(CONFIGURATION);
    let errors = InternalErrors::Defects;
    let answered = Walker::new(&service.url, PATIENCE).walk(&walk, &recorded, errors);
    let found = compare(&recorded, &answered, errors);
    for (kind, count) in counts(&found) {
        eprintln!("{count:6} {kind}");
    }
    let problems = known::problems(&path("differences.yaml"), &found).expect("there is a list");
    assert!(
        problems.is_empty(),
        "{} problems; if they are right: cargo run -p ironic -- compare --accept\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn each_known_difference_has_a_reason() {
    let problems = reasons::problems(&path("reasons.yaml"), &path("differences.yaml"));
    let problems = problems.expect("there are reasons and a list");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

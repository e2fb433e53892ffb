use super::*;

pub(crate) const OURS: DrainOwner = DrainOwner::Request;
pub(crate) const THEIRS: DrainOwner = DrainOwner::Operator;

pub(crate) fn leaving(then: AfterDrain, stage: DrainStage) -> DrainRequest {
    DrainRequest {
        steps: None,
        disables_ramdisk: false,
        host: "h1".to_owned(),
        then,
        forced: Vec::new(),
        asked_by: Some("ann".to_owned()),
        project: None,
        asked_at: Timestamp::UNIX_EPOCH,
        stage,
    }
}

pub(crate) fn off() -> AfterDrain {
    AfterDrain::Power { change: PowerChange::ForceOff, timeout: Duration::from_secs(60) }
}

//! Changes of RAID volumes, while the service is killed.

use bmc_emulator::PowerRequest;
use lab::{Lab, Settings};
use peers::kill_every;
use serde_json::json;

use super::{EVERY, StateBefore, settings};
use crate::bmc_steps::accepted;
use crate::raid_volumes::{blueprint, choose, recorded, set_target, step, two_disks};

/// Makes, replaces and deletes the volumes of a machine of this family while the service is killed. No change is requested twice. Each change
/// costs `starts` starts of the machine.
async fn volumes_survive_kills(name: &str, profile: &str, starts: usize) {
    let lab = Lab::with_mortal(Settings { ask_again: "500ms", ..settings() }).await;
    let machine = lab.rack(blueprint(name, profile)).await;
    let node = lab.manageable(&machine).await;
    choose(&lab, node).await;
    set_target(&lab, node, &two_disks()).await;
    let (create, delete) = (["RAID1 of S1 S2", "RAID5 of H1 H2 H3"], ["delete 1", "delete 2"]);
    let (again, nothing) = ([&delete[..], &create[..]].concat(), json!({}));
    let replace = json!({"delete_existing": true});
    for (name, args, changes, left) in [
        ("create_configuration", &nothing, create.to_vec(), 2),
        ("create_configuration", &replace, again, 2),
        ("delete_configuration", &nothing, delete.to_vec(), 0),
    ] {
        let before = StateBefore::of(&lab, node, &machine).await;
        let earlier = accepted(&machine).len();
        let steps = step(name, args);
        let body = json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": true});
        let ask = async || lab.ask_once(node, &before.node, &body).await;
        let done = async || lab.ends(node, &before.node, "manageable").await;
        let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
        assert!(points.len() >= 2, "{points:#?}");
        let all = accepted(&machine).split_off(earlier);
        let made: Vec<&String> = all.iter().filter(|it| it.contains(' ')).collect();
        assert_eq!(made, changes.iter().collect::<Vec<_>>(), "killed at {points:#?}");
        let power = before.power(&machine);
        let on = power.iter().filter(|power| **power == PowerRequest::On).count();
        assert_eq!(on, changes.len() * starts, "{power:?} killed at {points:#?}");
        let told = recorded(&lab, node).await;
        assert_eq!(told.as_array().map(Vec::len), Some(left), "{told} killed at {points:#?}");
        assert_eq!(machine.chassis().volumes().len(), left);
        if left > 0 {
            assert_eq!(told[0], json!(["os", "1", 50, true]), "killed at {points:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_that_are_made_at_once_survive_kills() {
    volumes_survive_kills("r1u27", "generic", 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_that_wait_for_a_start_survive_kills() {
    volumes_survive_kills("r1u28", "dell-idrac", 1).await;
}

//! How soon the work of a process that was killed or stopped goes on elsewhere.

use lab::{Postgres, Settings};

use super::three::{Process, Three};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_process_that_ends_goes_on_elsewhere_in_time() {
    let Some(server) = Postgres::start(&["baremetald", "clusterd", "consoled"]).await else {
        return peers::skip("never_down", "no PostgreSQL is installed");
    };
    // No systemd starts a process again that finds no answer of the database at its start.
    let settings = Settings { database_timeout: "5s", ..Settings::default() };
    let Some(three) = Three::start(|name| server.url(name), settings).await else {
        return peers::skip("never_down", "no haproxy is installed");
    };
    for process in [Process::Baremetald(1), Process::Clusterd(2)] {
        let killed = three.kill(process).await;
        three.start_again(process).await;
        let stopped = three.stop(process).await;
        three.start_again(process).await;
        eprintln!("{process:?}: taken over {killed:?} after SIGKILL, {stopped:?} after SIGTERM");
    }
}

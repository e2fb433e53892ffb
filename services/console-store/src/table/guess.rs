//! The table `guesses`: how many passwords may be tried for a name, or from an address.

use std::time::Duration;

use database::{Connection, Result, values};
use jiff::Timestamp;

/// A bucket, which a guess takes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuessLimit {
    /// A digest of the name or the address.
    pub id: String,
    /// The interval of guesses, on average.
    pub every: Duration,
    /// How many guesses a full bucket has.
    pub at_once: u32,
}

/// Takes a guess from each bucket, or from none of them if one is empty. Returns the time until none is empty, which is zero if the guesses
/// were taken.
pub(crate) async fn take(
    connection: &mut Connection,
    limits: &[GuessLimit],
    now: Timestamp,
) -> Result<Duration> {
    const FIND: &str = "SELECT full_at FROM guesses WHERE id = $1";
    const WRITE: &str = "INSERT INTO guesses (id, full_at) VALUES ($1, $2) \
         ON CONFLICT (id) DO UPDATE SET full_at = $2";
    const FULL: &str = "DELETE FROM guesses WHERE full_at <= $1";
    let now = now.as_microsecond();
    let (mut after, mut wait) = (Vec::new(), 0);
    for limit in limits {
        let row = connection.row(FIND, values![limit.id.as_str()]).await?;
        let full_at = row.map_or(Ok(now), |row| row.int(0))?.max(now);
        let full_at = full_at.saturating_add(micros(limit.every));
        let empty_at = now.saturating_add(micros(limit.every * limit.at_once));
        wait = wait.max(full_at - empty_at);
        after.push((limit.id.as_str(), full_at));
    }
    if wait > 0 {
        return Ok(Duration::from_micros(wait.unsigned_abs()));
    }
    connection.execute(FULL, values![now]).await?;
    for (id, full_at) in after {
        connection.execute(WRITE, values![id, full_at]).await?;
    }
    Ok(Duration::ZERO)
}

/// Gives a guess back to each bucket: it was right, or could not be verified.
pub(crate) async fn give_back(connection: &mut Connection, limits: &[GuessLimit]) -> Result<()> {
    const GIVE_BACK: &str = "UPDATE guesses SET full_at = full_at - $2 WHERE id = $1";
    for limit in limits {
        connection.execute(GIVE_BACK, values![limit.id.as_str(), micros(limit.every)]).await?;
    }
    Ok(())
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

//! From logical disks to the volumes of storage controllers: the choice of controllers and drives.
//!
//! The rules are those of `_find_configuration` in `ironic/drivers/modules/redfish/raid.py`. Two are stricter: drives of volumes that are kept
//! are not free, and a logical disk of the size `MAX` needs no `physical_disks`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use hardware::{NewVolume, RaidDrive, RaidLevel, RaidVolume, StorageController};

use crate::VolumeChange;
use crate::logical_disk::{LogicalDisk, RaidStepProblem};
use crate::raid_request::RaidRequest;

const GIB: u64 = 1 << 30;
/// The unit in which controllers give out the space of a drive (ironic, `stripe_size_kb`).
const STRIPE: u64 = 64 << 20;
/// The most choices of drives that are compared, so that no configuration keeps the conductor busy.
const MOST_CHOICES: usize = 5_000;

/// Returns the changes that make the requested volumes, in order: all deletions first.
///
/// `prefix` begins the names of volumes for which the client has no name.
///
/// # Errors
///
/// Names the field of the first logical disk that cannot be made.
pub fn plan_raid(
    controllers: &[StorageController],
    request: &RaidRequest,
    prefix: &str,
) -> Result<Vec<VolumeChange>, RaidStepProblem> {
    let kept = |volume: &&RaidVolume| !(request.deletes_existing && volume.is_raid);
    let mut changes = Vec::new();
    for controller in controllers {
        let deleted = controller.volumes.iter().filter(|volume| !kept(volume));
        changes.extend(deleted.map(|volume| VolumeChange::Delete {
            storage: controller.path.clone(),
            volume: volume.path.clone(),
            label: volume.name.clone().unwrap_or_else(|| volume.id.clone()),
            applies: controller.applies,
        }));
    }
    let mut choice = DriveChoice {
        controllers,
        free: free_space(controllers, kept),
        named: BTreeSet::new(),
        reserved: BTreeSet::new(),
        tried: 0,
        stuck: 0,
    };
    let chosen = choice.choose(&request.disks)?;
    for ((number, disk), (controller, drives)) in request.disks.iter().zip(chosen) {
        let volume = NewVolume {
            storage: controller.path.clone(),
            level: disk.level,
            drives: drives.iter().map(|drive| drive.path.clone()).collect(),
            size_bytes: disk.size_gib.map(|size| size.saturating_mul(GIB)),
            name: disk.name.clone().unwrap_or_else(|| format!("{prefix}-{number}")),
            name_is_optional: disk.name.is_none(),
            applies: controller.applies,
        };
        changes.push(VolumeChange::Create { volume, is_root: disk.is_root });
    }
    Ok(changes)
}

/// The free space of drives in bytes, by the path of the drive.
type FreeSpace = BTreeMap<String, u64>;

/// The controller and the drives of a logical disk.
type Place<'a> = (&'a StorageController, Vec<&'a RaidDrive>);

/// A place, and the size of the volume there.
type Candidate<'a> = (Place<'a>, u64);

struct DriveChoice<'a> {
    controllers: &'a [StorageController],
    free: FreeSpace,
    /// The paths of drives that logical disks name.
    named: BTreeSet<String>,
    /// The paths of those drives that are not shared.
    reserved: BTreeSet<String>,
    /// How many choices were compared.
    tried: usize,
    /// The furthest logical disk that found no drives, as its place in the order of the search.
    stuck: usize,
}

impl<'a> DriveChoice<'a> {
    /// Chooses the drives of all logical disks: named drives first, then those of a known size, then those that take the rest.
    fn choose(
        &mut self,
        disks: &[(usize, LogicalDisk)],
    ) -> Result<Vec<Place<'a>>, RaidStepProblem> {
        let mut places: Vec<Option<Place<'a>>> = vec![None; disks.len()];
        for at in in_order(disks) {
            let (number, disk) = &disks[at];
            self.check_controller(&Fields(*number), disk)?;
            let Some(named) = &disk.drives else { continue };
            let place = self.named(&Fields(*number), disk, named)?;
            let paths = place.1.iter().map(|drive| drive.path.clone());
            self.named.extend(paths.clone());
            if !disk.shares_drives {
                self.reserved.extend(paths);
            }
            places[at] = Some(place);
        }
        self.take_named(disks, &places, |disk| disk.size_gib.is_some())?;
        let open: Vec<usize> = in_order(disks).filter(|at| places[*at].is_none()).collect();
        let wanted: Vec<&LogicalDisk> = open.iter().map(|at| &disks[*at].1).collect();
        let free = self.free.clone();
        let Some((found, left)) = self.search(&wanted, 0, &free) else {
            let (number, disk) = &disks[open[self.stuck]];
            return Err(Fields(*number).too_few(disk));
        };
        self.free = left;
        self.take_named(disks, &places, |disk| disk.size_gib.is_none())?;
        for (at, place) in open.into_iter().zip(found) {
            places[at] = Some(place);
        }
        Ok(places.into_iter().flatten().collect())
    }

    /// Takes the space of the logical disks that have their drives already, among those that `is_meant` selects.
    fn take_named(
        &mut self,
        disks: &[(usize, LogicalDisk)],
        places: &[Option<Place<'a>>],
        is_meant: impl Fn(&LogicalDisk) -> bool,
    ) -> Result<(), RaidStepProblem> {
        for ((number, disk), place) in disks.iter().zip(places) {
            if let Some(place) = place.as_ref().filter(|_| is_meant(disk)) {
                self.free = self.taken(&Fields(*number), disk, place)?;
            }
        }
        Ok(())
    }

    /// Checks that a controller can make the logical disk at all.
    fn check_controller(&self, names: &Fields, disk: &LogicalDisk) -> Result<(), RaidStepProblem> {
        let makes_some = |it: &&StorageController| it.levels.as_ref() != Some(&Vec::new());
        let able: Vec<_> = self.controllers.iter().filter(makes_some).collect();
        let ids = able.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(", ");
        let meant = |it: &&&StorageController| {
            disk.controller.as_ref().is_none_or(|wanted| it.id == *wanted)
        };
        let meant: Vec<_> = able.iter().filter(meant).collect();
        if able.is_empty() {
            let problem = "the BMC lists no storage controller that makes RAID volumes";
            return Err(names.refuse("controller", problem));
        }
        if meant.is_empty() {
            let wanted = disk.controller.as_deref().unwrap_or_default();
            let problem =
                format!("the BMC lists no storage controller {wanted} for RAID; it lists {ids}");
            return Err(names.refuse("controller", problem));
        }
        if meant.iter().all(|it| !makes(it, disk.level)) {
            let level = disk.level.as_str();
            let ids = meant.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(", ");
            let problem = format!("the storage controller {ids} makes no volumes of level {level}");
            return Err(names.refuse("raid_level", problem));
        }
        Ok(())
    }

    /// Finds the drives that a logical disk names.
    fn named(
        &self,
        names: &Fields,
        disk: &LogicalDisk,
        wanted: &[String],
    ) -> Result<Place<'a>, RaidStepProblem> {
        let refuse = |problem: String| names.refuse("physical_disks", problem);
        let is_meant = |it: &&StorageController| disk.controller.as_ref() == Some(&it.id);
        let controller = self.controllers.iter().find(is_meant);
        let controller =
            controller.ok_or_else(|| refuse("no storage controller is named".to_owned()))?;
        let mut drives: Vec<&RaidDrive> = Vec::new();
        for id in wanted {
            let found = controller.drives.iter().find(|drive| drive.id == *id);
            let drive = found.ok_or_else(|| {
                let ids: Vec<&str> = controller.drives.iter().map(|it| it.id.as_str()).collect();
                let (of, ids) = (&controller.id, ids.join(", "));
                refuse(format!("the storage controller {of} lists no drive {id}; it lists {ids}"))
            })?;
            if drives.iter().any(|other| other.path == drive.path) {
                return Err(refuse(format!("names the drive {id} twice")));
            }
            if !drive.is_usable {
                return Err(refuse(format!("the drive {id} is absent, failing or a spare")));
            }
            if !fits(disk, drive) {
                let problem =
                    format!("the drive {id} is not of the wanted disk_type or interface_type");
                return Err(refuse(problem));
            }
            let is_taken = self.reserved.contains(&drive.path)
                || !disk.shares_drives
                    && (self.space(drive) < drive.size_bytes || self.named.contains(&drive.path));
            if is_taken {
                return Err(refuse(format!(
                    "the drive {id} belongs to another volume; delete that volume, or set share_physical_disks"
                )));
            }
            drives.push(drive);
        }
        Ok((controller, drives))
    }

    /// Returns the free space once a logical disk has its place.
    fn taken(
        &self,
        names: &Fields,
        disk: &LogicalDisk,
        (_, drives): &Place<'_>,
    ) -> Result<FreeSpace, RaidStepProblem> {
        let frees = drives.iter().map(|drive| self.space(drive));
        let largest = largest(disk.level, drives.len(), frees.min().unwrap_or(0));
        let wanted = disk.size_gib.map_or(largest.max(1), |size| size.saturating_mul(GIB));
        if wanted > largest {
            let most = largest / GIB;
            let problem = format!(
                "the physical disks have {most} GiB left for level {}",
                disk.level.as_str()
            );
            return Err(names.refuse("size_gb", problem));
        }
        let mut free = self.free.clone();
        occupy(&mut free, disk.level, wanted, drives);
        Ok(free)
    }

    fn space(&self, drive: &RaidDrive) -> u64 {
        self.free.get(&drive.path).copied().unwrap_or(0)
    }

    /// Finds places for `wanted` from `at` on, and returns the free space that is left.
    fn search(
        &mut self,
        wanted: &[&LogicalDisk],
        at: usize,
        free: &FreeSpace,
    ) -> Option<(Vec<Place<'a>>, FreeSpace)> {
        let Some(disk) = wanted.get(at) else { return Some((Vec::new(), free.clone())) };
        for (place, size) in self.candidates(disk, free) {
            self.tried += 1;
            if self.tried > MOST_CHOICES {
                return None;
            }
            let mut left = free.clone();
            occupy(&mut left, disk.level, size, &place.1);
            if let Some((mut rest, left)) = self.search(wanted, at + 1, &left) {
                rest.insert(0, place);
                return Some((rest, left));
            }
        }
        self.stuck = self.stuck.max(at);
        None
    }

    /// Lists the places for a logical disk, each with the size of its volume, the best first: as few drives as possible, of the smallest kind
    /// that is large enough, or of the largest kind for a logical disk that takes all space.
    fn candidates(&self, disk: &LogicalDisk, free: &FreeSpace) -> Vec<Candidate<'a>> {
        let is_meant = |it: &&StorageController| {
            makes(it, disk.level) && disk.controller.as_ref().is_none_or(|id| it.id == *id)
        };
        let mut found: Vec<Candidate<'a>> = Vec::new();
        for controller in self.controllers.iter().filter(is_meant) {
            let kinds = self.kinds(controller, disk, free).into_iter();
            let places = kinds.filter_map(|drives| fewest(disk, drives, free));
            found.extend(places.map(|(drives, size)| ((controller, drives), size)));
        }
        match disk.size_gib {
            Some(_) => found.sort_by_key(|((_, drives), _)| drives[0].size_bytes),
            None => found.sort_by_key(|(_, size)| Reverse(*size)),
        }
        found
    }

    /// Groups the drives that a logical disk may use by what makes them equal.
    fn kinds(
        &self,
        controller: &'a StorageController,
        disk: &LogicalDisk,
        free: &FreeSpace,
    ) -> Vec<Vec<&'a RaidDrive>> {
        let mut kinds: Vec<Vec<&RaidDrive>> = Vec::new();
        for drive in &controller.drives {
            let space = free.get(&drive.path).copied().unwrap_or(0);
            let is_free = disk.shares_drives || space == drive.size_bytes;
            if !drive.is_usable
                || !is_free
                || !fits(disk, drive)
                || self.reserved.contains(&drive.path)
            {
                continue;
            }
            let key = |it: &RaidDrive| (it.media, it.protocol.clone(), it.size_bytes);
            match kinds.iter_mut().find(|kind| key(kind[0]) == key(drive)) {
                Some(kind) => kind.push(drive),
                None => kinds.push(vec![drive]),
            }
        }
        kinds
    }
}

/// Returns the places of logical disks in the order of the search: named drives first, then a known size, then those that take the rest.
fn in_order(disks: &[(usize, LogicalDisk)]) -> impl Iterator<Item = usize> + use<> {
    let mut order: Vec<usize> = (0..disks.len()).collect();
    order.sort_by_key(|at| {
        let disk = &disks[*at].1;
        (disk.drives.is_none(), disk.size_gib.is_none())
    });
    order.into_iter()
}

/// The names of the fields of one logical disk.
struct Fields(usize);

impl Fields {
    fn refuse(&self, name: &str, problem: impl Into<String>) -> RaidStepProblem {
        RaidStepProblem::new(format!("logical_disks[{}].{name}", self.0), problem)
    }

    fn too_few(&self, disk: &LogicalDisk) -> RaidStepProblem {
        let size = disk.size_gib.map_or("a volume".to_owned(), |size| format!("{size} GiB"));
        let problem = format!(
            "too few free physical disks of one kind and size for {size} of level {}; delete_existing frees those of other volumes",
            disk.level.as_str()
        );
        RaidStepProblem::new(format!("logical_disks[{}]", self.0), problem)
    }
}

/// Returns as few of `drives` as the logical disk needs, which are all of one kind, and the size of the volume on them.
fn fewest<'a>(
    disk: &LogicalDisk,
    mut drives: Vec<&'a RaidDrive>,
    free: &FreeSpace,
) -> Option<(Vec<&'a RaidDrive>, u64)> {
    let space = |drive: &&RaidDrive| free.get(&drive.path).copied().unwrap_or(0);
    match disk.size_gib {
        Some(_) => drives.sort_by_key(space),
        None => drives.sort_by_key(|drive| Reverse(space(drive))),
    }
    let is_count = |count: &usize| {
        disk.number_of_drives.is_none_or(|wanted| wanted == *count)
            && disk.level.data_drives(*count).is_some()
    };
    (1..=drives.len()).filter(is_count).find_map(|count| {
        let Some(size) = disk.size_gib else {
            let chosen = drives[..count].to_vec();
            let size = largest(disk.level, count, chosen.iter().map(space).min()?);
            return (size > 0).then_some((chosen, size));
        };
        let size = size.saturating_mul(GIB);
        let each = usage(disk.level, count, size)?;
        let enough = drives.iter().copied().filter(|drive| space(drive) >= each);
        let chosen: Vec<&RaidDrive> = enough.take(count).collect();
        (chosen.len() == count).then_some((chosen, size))
    })
}

fn makes(controller: &StorageController, level: RaidLevel) -> bool {
    controller.levels.as_ref().is_none_or(|levels| levels.contains(&level))
}

fn fits(disk: &LogicalDisk, drive: &RaidDrive) -> bool {
    disk.media.is_none_or(|media| drive.media == Some(media))
        && disk.protocol.as_ref().is_none_or(|protocol| drive.protocol.as_ref() == Some(protocol))
}

/// Returns the free space of all drives beside the RAID volumes that are `kept`.
fn free_space(controllers: &[StorageController], kept: impl Fn(&&RaidVolume) -> bool) -> FreeSpace {
    let drives = controllers.iter().flat_map(|it| &it.drives);
    let mut free: FreeSpace = drives.map(|it| (it.path.clone(), it.size_bytes)).collect();
    let volumes = controllers.iter().flat_map(|it| &it.volumes);
    for volume in volumes.filter(|volume| volume.is_raid).filter(kept) {
        let count = volume.drives.len();
        let each = volume.level.zip(volume.size_bytes);
        let each = each.and_then(|(level, size)| usage(level, count, size));
        for drive in &volume.drives {
            if let Some(space) = free.get_mut(drive) {
                // A volume of another level may use any part of its drives.
                *space = each.map_or(0, |each| space.saturating_sub(each.max(1)));
            }
        }
    }
    free
}

/// Returns how much of each of its drives a volume uses; `None` if the level cannot have so many drives.
fn usage(level: RaidLevel, drives: usize, size: u64) -> Option<u64> {
    let data = level.data_drives(drives)? as u64;
    Some(size.div_ceil(STRIPE).div_ceil(data).saturating_mul(STRIPE))
}

/// Returns the size of the largest volume on drives with this much free space each.
fn largest(level: RaidLevel, drives: usize, least: u64) -> u64 {
    let data = level.data_drives(drives).unwrap_or(0) as u64;
    (least / STRIPE * STRIPE).saturating_mul(data)
}

fn occupy(free: &mut FreeSpace, level: RaidLevel, size: u64, drives: &[&RaidDrive]) {
    let each = usage(level, drives.len(), size).unwrap_or(u64::MAX);
    for drive in drives {
        if let Some(space) = free.get_mut(&drive.path) {
            *space = space.saturating_sub(each);
        }
    }
}

#[cfg(test)]
mod tests;

//! A node group whose members are replaced: which of them are outdated, and which are pairs of a member and its replacement.

use crate::{GroupParameters, NodeGroup};

impl NodeGroup {
    /// Returns the parameters that a roll can change.
    pub fn parameters(&self) -> GroupParameters {
        GroupParameters {
            flavor: self.flavor.clone(),
            size: self.size,
            image: self.image.clone(),
            labels: self.labels.clone(),
            labels_compared: self.labels_compared.clone(),
        }
    }

    /// Returns the group with other parameters.
    pub(crate) fn with_parameters(self, parameters: GroupParameters) -> NodeGroup {
        let GroupParameters { flavor, size, image, labels, labels_compared } = parameters;
        NodeGroup { flavor, size, image, labels, labels_compared, ..self }
    }

    /// Whether members of the group are still to be replaced.
    pub fn is_rolling(&self) -> bool {
        !self.outdated.is_empty()
    }

    /// Whether this member replaces another one that is still there.
    pub(crate) fn is_replacement(&self, number: u32) -> bool {
        self.replacing.values().any(|new| *new == number)
    }

    /// Adds the replacement of an outdated member, which stays until the replacement is ready. Returns the number of the new member.
    pub(crate) fn surge(&mut self, old: u32) -> u32 {
        let new = self.add_machine().number;
        self.replacing.insert(old, new);
        new
    }

    /// Removes a member, together with its replacement or the member that it replaces. Returns false when the group has no such member.
    pub(crate) fn remove_machine(&mut self, number: u32) -> bool {
        if !self.machines.remove(&number) {
            return false;
        }
        let pair = self.replacing.iter().find(|(old, new)| **old == number || **new == number);
        if let Some((old, new)) = pair.map(|(old, new)| (*old, *new)) {
            self.replacing.remove(&old);
            for member in [old, new] {
                self.machines.remove(&member);
                self.outdated.remove(&member);
            }
        }
        self.outdated.remove(&number);
        true
    }

    /// Removes an outdated member whose replacement is ready.
    pub(crate) fn complete(&mut self, old: u32) {
        self.replacing.remove(&old);
        self.outdated.remove(&old);
        self.machines.remove(&old);
    }

    /// Returns the member that a smaller group loses first: an outdated one, then the newest.
    pub(crate) fn first_to_go(&self) -> Option<u32> {
        let has_pair =
            |number: u32| self.replacing.iter().any(|(old, new)| *old == number || *new == number);
        let outdated = self.outdated.iter().rev().find(|&&number| !has_pair(number));
        let newest = || self.machines.iter().rev().find(|&&number| !has_pair(number));
        outdated.or_else(newest).or(self.machines.last()).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sample::Sample;

    /// A group with the members 0, 1 and 2, of which 0 and 1 are outdated, and 3 replaces 0.
    fn rolling() -> NodeGroup {
        let mut group = Sample::highly_available().groups.remove(0);
        group.outdated = [0, 1].into();
        assert_eq!(group.surge(0), 3);
        group
    }

    fn numbers(group: &NodeGroup) -> (Vec<u32>, Vec<u32>, u32) {
        let list = |of: &BTreeSet<u32>| of.iter().copied().collect();
        (list(&group.machines), list(&group.outdated), group.node_count())
    }

    #[test]
    fn a_replacement_does_not_count_until_its_member_is_removed() {
        let mut group = rolling();
        assert_eq!(numbers(&group), (vec![0, 1, 2, 3], vec![0, 1], 3));
        group.complete(0);
        assert_eq!(numbers(&group), (vec![1, 2, 3], vec![1], 3));
        assert!(group.replacing.is_empty() && group.is_rolling());
    }

    #[test]
    fn a_member_is_removed_with_its_replacement() {
        for number in [0, 3] {
            let mut group = rolling();
            assert!(group.remove_machine(number));
            assert_eq!(numbers(&group), (vec![1, 2], vec![1], 2), "{number}");
        }
        let mut group = rolling();
        assert!(group.remove_machine(2) && !group.remove_machine(2));
        assert_eq!(numbers(&group), (vec![0, 1, 3], vec![0, 1], 2));
    }

    #[test]
    fn a_smaller_group_loses_outdated_members_first() {
        let mut group = rolling();
        let mut lost = Vec::new();
        while let Some(number) = group.first_to_go() {
            assert!(group.remove_machine(number));
            lost.push((number, group.node_count()));
        }
        assert_eq!(lost, [(1, 2), (2, 1), (3, 0)]);
    }

    #[test]
    fn repair_replaces_a_lost_member_of_a_pair_once() {
        let mut group = rolling();
        assert!(group.replace_machine(0));
        assert_eq!(numbers(&group), (vec![1, 2, 3], vec![1], 3), "its replacement is there");
        let mut group = rolling();
        assert!(group.replace_machine(3));
        assert_eq!(numbers(&group), (vec![0, 1, 2, 4], vec![0, 1], 3));
        assert_eq!(group.replacing[&0], 4);
        let mut group = rolling();
        assert!(group.replace_machine(1));
        assert_eq!(
            numbers(&group),
            (vec![0, 2, 3, 4], vec![0], 3),
            "the new member is not outdated"
        );
        assert!(!group.replace_machine(1));
    }
}

//! The tests of a daemon as a process.

/// Makes the tests that a daemon passes as a process.
#[macro_export]
macro_rules! daemon_tests {
    ($daemon:ty) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_rotation_killed_at_any_point_loses_nothing_and_completes() {
            $crate::key_rotation::killed_at_any_point::<$daemon>().await;
        }

        #[tokio::test]
        async fn a_missing_key_file_is_not_replaced_while_secrets_need_it() {
            $crate::refused_starts::missing_key_file::<$daemon>().await;
        }

        #[tokio::test]
        async fn another_key_with_the_same_number_is_refused() {
            $crate::refused_starts::another_key_with_the_same_number::<$daemon>().await;
        }

        #[tokio::test]
        async fn a_key_file_that_others_can_read_is_refused() {
            $crate::refused_starts::readable_key_file::<$daemon>().await;
        }

        #[tokio::test]
        async fn a_damaged_database_is_refused_by_name() {
            $crate::refused_starts::damaged_database::<$daemon>().await;
        }

        #[test]
        fn unusable_files_are_refused_by_their_keys() {
            $crate::refused_starts::unusable_files::<$daemon>();
        }

        #[tokio::test]
        async fn the_file_of_listeners_is_replaced_as_a_whole() {
            $crate::listeners_file::replaced_as_a_whole::<$daemon>().await;
        }
    };
}

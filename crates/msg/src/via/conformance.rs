//! One suite for every device: what the specification says a consumer sees.
//!
//! A case runs in two processes at once, each with a NIC of its own; it says what it found where that is
//! not what must be. Whoever runs the suite runs every case of [`CASES`] at every level of [`levels`].

mod connecting;
mod consumer;
mod errors;
mod local;
mod moving;
mod rig;

use alloc::string::String;
use alloc::vec::Vec;

use super::{NicAttributes, Reliability};
pub use consumer::Consumer;
use rig::Rig;

/// Which of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It waits for the connection, and mostly receives.
    Server,
    /// It asks for the connection, and mostly sends.
    Client,
}

/// What was found is not what must be; or the two processes lost each other.
pub type Verdict = Result<(), String>;

macro_rules! ensure {
    ($left:expr, $right:expr, $($what:tt)+) => {{
        let (left, right) = ($left, $right);
        if left != right {
            let what = alloc::format!($($what)+);
            return Err(alloc::format!("{what}: {left:?}, and not {right:?} (line {})", line!()));
        }
    }};
}
pub(crate) use ensure;

macro_rules! cases {
    ($($module:ident::$name:ident,)*) => {
        /// The names of all cases.
        pub const CASES: &[&str] = &[$(stringify!($name)),*];

        /// Runs one case over a NIC that is open; the device comes back when both have ended it.
        ///
        /// # Errors
        /// What was found, with the case, the level and the process.
        pub async fn run<C: Consumer>(
            case: &str,
            level: Reliability,
            side: Side,
            consumer: C,
        ) -> Result<C::Device, String> {
            let mut rig = Rig::new(consumer, level, side).map_err(|error| alloc::format!("{error}"))?;
            let verdict = match case {
                $(stringify!($name) => $module::$name(&mut rig).await,)*
                _ => Err(String::from("no such case")),
            };
            let ended = match verdict {
                Ok(()) => rig.end().await,
                Err(found) => Err(found),
            };
            ended.map_err(|found| alloc::format!("{case}, {level:?}, {side:?}: {found}"))
        }
    };
}

cases! {
    moving::messages_of_every_size_arrive,
    moving::data_are_gathered_and_scattered,
    moving::immediate_data_arrive_with_or_without_others,
    moving::both_directions_at_once_do_not_meet,
    moving::descriptors_complete_in_order,
    moving::rdma_write_needs_no_receive,
    moving::rdma_write_with_immediate_takes_a_receive,
    moving::rdma_read_brings_remote_memory,
    moving::a_fence_waits_for_reads,
    moving::completion_queues_tell_which_queue,
    moving::notification_takes_the_descriptor_once,
    errors::a_message_without_a_receive_is_told_of,
    errors::a_message_longer_than_its_receive_is_a_length_error,
    errors::a_send_longer_than_allowed_is_a_length_error,
    errors::memory_that_is_not_the_vis_is_a_protection_error,
    errors::a_receive_into_foreign_memory_is_a_protection_error,
    errors::descriptors_that_are_not_well_formed_are_told_of,
    errors::rdma_to_memory_not_allowed_is_told_of,
    errors::rdma_read_of_memory_not_allowed_is_told_of,
    errors::what_is_posted_in_the_wrong_place_is_told_of,
    errors::too_many_descriptors_are_an_overrun,
    errors::memory_deregistered_under_a_descriptor_is_told_of,
    errors::memory_given_back_while_data_come_is_written_no_more,
    errors::a_completion_queue_that_is_full_is_told_of,
    errors::a_read_that_a_disconnection_breaks_off_is_told_of,
    connecting::attributes_must_agree,
    connecting::a_request_is_rejected_or_finds_nobody,
    connecting::waits_end_when_their_time_is_over,
    connecting::peers_connect_when_both_ask,
    connecting::peers_whose_attributes_differ_do_not,
    connecting::what_is_posted_without_a_connection_is_flushed,
    connecting::the_remote_end_of_a_disconnection_is_in_error,
    connecting::a_vi_is_connected_again_after_an_error,
    local::attributes_not_supported_are_refused,
    local::handles_that_are_none_are_refused,
    local::resources_end_and_come_back,
    local::what_is_in_use_stays,
    local::names_are_found_while_their_service_is_open,
}

/// The levels that a NIC has.
pub fn levels(attributes: &NicAttributes) -> Vec<Reliability> {
    Reliability::ALL.into_iter().filter(|&level| attributes.reliability.has(level)).collect()
}

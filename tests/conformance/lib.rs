//! What every world that offers `Comm` must do: one body, run by each.
//!
//! A world gives a function that runs an async body on so many ranks, and names it to
//! [`conformance!`], which makes one test for each body below.

mod echo;
mod groups;
mod matching;
mod refusal;
mod traffic;

pub use echo::{
    every_size_comes_back_unchanged, every_size_of_a_datagram_comes_back_unchanged, exchange_meets_head_on,
};
pub use groups::{
    a_barrier_waits_for_the_last, a_message_to_a_group_goes_to_its_members, groups_are_refused_by_name,
    groups_that_are_misused_say_so, members_of_a_group_are_numbered,
};
pub use matching::{
    a_receive_says_what_it_got, a_wildcard_takes_from_everyone_in_order,
    messages_of_one_sender_keep_their_order, posted_receives_are_served_in_the_order_of_posting,
    source_and_tag_choose_among_what_has_come,
};
pub use refusal::{
    a_message_too_long_is_truncated_and_the_next_is_whole, a_rank_that_is_not_there_is_refused,
};
pub use traffic::{
    a_message_to_oneself_arrives, a_ring_shifts, one_message_goes_to_several,
    random_traffic_arrives_unchanged,
};

/// The byte at `at` of message `number`: tells both.
#[must_use]
pub fn byte(number: u64, at: usize) -> u8 {
    ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number.wrapping_mul(0xff51_afd7_ed55_8ccd))
        >> 32) as u8
}

/// Message `number`, of this length.
#[must_use]
pub fn message(number: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| byte(number, at)).collect()
}

/// One test for each body, run by `$run(ranks, body)`; with `groups`, of an interface that has them.
#[macro_export]
macro_rules! conformance {
    ($run:path) => {
        $crate::conformance!(@all $run);
        $crate::conformance!($run; 2 groups_are_refused_by_name,);
    };
    ($run:path, groups) => {
        $crate::conformance!(@all $run);
        $crate::conformance!($run;
            4 members_of_a_group_are_numbered,
            3 a_barrier_waits_for_the_last,
            5 a_message_to_a_group_goes_to_its_members,
            2 groups_that_are_misused_say_so,
        );
    };
    (@all $run:path) => {
        $crate::conformance!($run;
            2 every_size_comes_back_unchanged,
            2 exchange_meets_head_on,
            2 messages_of_one_sender_keep_their_order,
            3 source_and_tag_choose_among_what_has_come,
            5 a_wildcard_takes_from_everyone_in_order,
            2 posted_receives_are_served_in_the_order_of_posting,
            2 a_receive_says_what_it_got,
            2 a_message_too_long_is_truncated_and_the_next_is_whole,
            3 a_rank_that_is_not_there_is_refused,
            1 a_message_to_oneself_arrives,
            5 a_ring_shifts,
            4 random_traffic_arrives_unchanged,
            4 one_message_goes_to_several,
        );
    };
    ($run:path; $($ranks:literal $body:ident,)*) => {
        $(#[test]
        fn $body() {
            $run($ranks, $crate::$body);
        })*
    };
}

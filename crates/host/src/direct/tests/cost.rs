//! What a message of 8 bytes costs both its ends together: instructions, allocations, system calls.

use std::process::Command;

use super::*;

/// How many messages the test below exchanges.
const COUNT: &str = "WIRETWIN_TEST_MESSAGES";

#[test]
#[ignore = "only the test below runs it, under valgrind"]
fn messages_to_and_fro() {
    let count: usize = std::env::var(COUNT).expect("a number of messages").parse().expect("a number");
    let mut ends = pair(Ways::SharedMemory);
    let addresses = [ends[0].address(), ends[1].address()];
    let peers = [ends[0].peer(addresses[1]), ends[1].peer(addresses[0])];
    let mut buffer = [0; 8];
    for number in 0..count {
        let (from, to) = (number % 2, 1 - number % 2);
        // SAFETY: the buffer outlives the completion, which is waited for; without a context, the bytes of a message
        // are needed during the call alone.
        unsafe {
            ends[to].receive(any(1), into(&mut buffer, 7));
            ends[from].send(peers[from], outgoing(&number.to_le_bytes(), 1, None)).expect("room");
        }
        while ends[to].completion().is_none() {
            ends[to].progress();
            if number < 2 {
                // The ends have not met yet.
                ends[from].progress();
            }
        }
    }
}

/// Runs the exchange under a tool of valgrind: what it says.
fn under(tool: &str, messages: usize) -> String {
    let output = Command::new("valgrind")
        .args([&format!("--tool={tool}"), "--trace-syscalls=yes"])
        .args((tool == "callgrind").then_some("--callgrind-out-file=/dev/null"))
        .arg(std::env::current_exe().expect("this test"))
        .args(["--exact", "direct::tests::cost::messages_to_and_fro", "--ignored"])
        .env(COUNT, messages.to_string())
        .output()
        .expect("`valgrind` (Debian: valgrind)");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// The first number that follows these words.
fn after(said: &str, words: &str) -> i64 {
    let at = said.find(words).unwrap_or_else(|| panic!("no {words:?} in {said}")) + words.len();
    let digits = said[at..].trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == ',');
    digits.filter(char::is_ascii_digit).collect::<String>().parse().expect("a number")
}

#[test]
fn a_short_message_through_memory_takes_few_instructions_no_allocation_and_hardly_a_system_call() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("left out: no valgrind");
        return;
    }
    const FEW: usize = 1000;
    const MANY: usize = 5000;
    let each = |of: &dyn Fn(usize) -> i64| (of(MANY) - of(FEW)) as f64 / (MANY - FEW) as f64;
    let instructions = each(&|messages| after(&under("callgrind", messages), "Collected :"));
    let allocations = each(&|messages| after(&under("memcheck", messages), "total heap usage:"));
    let calls = each(&|messages| under("memcheck", messages).matches("SYSCALL[").count() as i64);
    println!("{instructions} instructions, {allocations} allocations, {calls} system calls a message");
    assert!(instructions < MOST_INSTRUCTIONS, "{instructions} instructions");
    assert!(allocations < 0.01, "{allocations} allocations");
    // The clock is read, and new peers are looked for, every so many turns.
    assert!(calls < 0.1, "{calls} system calls");
}

/// As counted in this build, which is not wholly optimized, and a twentieth more.
const MOST_INSTRUCTIONS: f64 = 3064.0;

//! The arguments of a bench.

/// Words that the name of a workload must have, and whether fewer turns will do.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// `--quick` was among them.
    pub quick: bool,
    /// Those that are no options.
    pub words: Vec<String>,
}

impl Arguments {
    /// Those of this process; `--bench`, which `cargo bench` adds, says nothing.
    #[must_use]
    pub fn of_process() -> Self {
        let (options, words) = std::env::args().skip(1).partition::<Vec<_>, _>(|word| word.starts_with("--"));
        Self { quick: options.iter().any(|option| option == "--quick"), words }
    }

    /// Whether a workload's name has all the words, each whole: `10000` is not in `hold 1000000`.
    #[must_use]
    pub fn wanted(&self, name: &str) -> bool {
        self.words.iter().all(|word| has(name, word))
    }

    /// So many turns: `quick` ones where fewer will do.
    #[must_use]
    pub fn turns(&self, all: usize, quick: usize) -> usize {
        if self.quick { quick } else { all }
    }
}

fn has(name: &str, word: &str) -> bool {
    name.match_indices(word).any(|(at, _)| {
        let before = name[..at].chars().next_back();
        let after = name[at + word.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_looked_for_whole() {
        let name = "net/16-port cell switch by event";
        assert!(["16-port", "by event", "net", "cell"].into_iter().all(|word| has(name, word)));
        assert!(!["6-port", "even", "slot"].into_iter().any(|word| has(name, word)));
        assert!(!has("engine/hold exponential 1000000", "10000"));
    }
}
